package stats

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// QuantileRanks returns the 1-based ranks of the two order statistics of n requests between which
// the population's q-quantile lies with this confidence (0.99 is p99). ok is false, and both ranks
// are 0, if n is too small for both to exist; QuantileNeeds returns a sufficient n.
//
// It refers to one trial: how precisely the trial determines its own percentile, not how well a
// second trial would repeat it. Summarize is for the latter.
//
// The n requests are worth share x n independent ones, because slow responses cluster, so that many
// of them depend on few events. Share 1 assumes independence and gives the narrowest interval;
// values above 1 count as 1, and values that are not positive give no interval.
//
// Method: j, k = nq -+ z sqrt(nq(1-q)), rounded outwards: the normal approximation of the binomial
// number of requests below the quantile, as in Lancet's get_ci (David & Nagaraja, "Order
// Statistics", 3rd ed., 2003, §7.1, have the exact form). At 0.95 the exact binomial confidence of
// these ranks is at least 0.95 for p90, p99 and p99.9 and at least 0.947 for the median. If
// requests depend on each other, the variance of that number is 1/share times as large, so j, k =
// nq -+ z sqrt(nq(1-q)/share) (Heidelberger & Lewis, "Quantile estimation in dependent sequences",
// Operations Research 32, 1984, pp. 185-209). Both ranks exist if share x n independent requests
// suffice: at share 0.5, p99 needs 761.
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

// maxRequests bounds the search of QuantileNeeds; larger float64 values skip integers.
const maxRequests = 1 << 53

// QuantileNeeds returns the least n of independent requests for which QuantileRanks has both ranks.
// For upper percentiles that is n(1-q) >= z^2 q: at 0.95 (z^2 = 3.8415) p99 needs 381 and p99.9
// needs 3838. (The value 3837, which is sometimes quoted, results from rounding z^2 to 3.84; its
// upper rank would be 3837.0003.) It returns 2^53 if that is not enough.
func QuantileNeeds(q, confidence float64) int64 {
	mustBeShare("quantile", q)
	mustBeShare("confidence", confidence)
	n := sort.Search(maxRequests, func(n int) bool {
		_, _, ok := QuantileRanks(int64(n), 1, q, confidence)
		return ok
	})
	return int64(n)
}
