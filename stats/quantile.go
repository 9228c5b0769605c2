package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// QuantileRanks gives the 1-based ranks of the two order statistics of n requests between which the
// population's q-quantile lies with this confidence (0.99 is p99). ok is false, and both ranks are
// 0, when n is too small for both to exist; QuantileNeeds says what would do.
//
// It speaks of one trial: how well the trial knows its own percentile, not how well a second trial
// would repeat it; that is Summarize's business.
//
// The n requests are worth share x n independent ones: slow answers come in company, so that many
// of them rest on few events. Share 1 is independence, and then it is the least doubt, not the
// whole; above 1 counts as 1; what is no positive number gives no interval.
//
// Method: j, k = nq -+ z sqrt(nq(1-q)), rounded outwards: the normal approximation of the binomial
// number of requests below the quantile, as in Lancet's get_ci (David & Nagaraja, "Order
// Statistics", 3rd ed., 2003, §7.1, have the exact form). At 0.95 the exact binomial confidence of
// these ranks is at least 0.95 for p90, p99 and p99.9 and at least 0.947 for the median. Where
// requests depend on each other that number varies 1/share as much, so j, k = nq -+
// z sqrt(nq(1-q)/share) (Heidelberger & Lewis, "Quantile estimation in dependent sequences",
// Operations Research 32, 1984, pp. 185-209). Both ranks exist when share x n does for independent
// requests: with half of them lost p99 needs 761.
func QuantileRanks(n int64, share, q, confidence float64) (lo, hi int64, ok bool) {
	mustBeShare("quantile", q)
	mustBeShare("confidence", confidence)
	if n < 1 || !(share > 0) {
		return 0, 0, false
	}
	z := mathext.NormalQuantile((1 + confidence) / 2)
	mean := float64(n) * q
	reach := z * math.Sqrt(mean*(1-q)/min(share, 1))
	below, above := math.Floor(mean-reach), math.Ceil(mean+reach)
	if below < 1 || above > float64(n) {
		return 0, 0, false
	}
	return int64(below), int64(above), true
}

// maxRequests bounds the search of QuantileNeeds; beyond it float64 skips whole numbers.
const maxRequests = 1 << 53

// QuantileNeeds is the least n of independent requests for which QuantileRanks has both ranks. For
// upper percentiles that is n(1-q) >= z^2 q: at 0.95 (z^2 = 3.8415) p99 needs 381 and p99.9 needs
// 3838. (3837, which is sometimes quoted, comes of rounding z^2 to 3.84; its upper rank would be
// 3837.0003.) The answer is 2^53 when that is not enough.
func QuantileNeeds(q, confidence float64) int64 {
	mustBeShare("quantile", q)
	mustBeShare("confidence", confidence)
	n := sort.Search(maxRequests, func(n int) bool {
		_, _, ok := QuantileRanks(int64(n), 1, q, confidence)
		return ok
	})
	return int64(n)
}
