package stats

import "sort"

// QuantileRanks gives the 1-based ranks of the two order statistics of n independent requests
// between which the population's q-quantile lies with this confidence (0.99 is p99). ok is false,
// and both ranks are 0, when n is too small for both to exist; QuantileNeeds says what would do.
//
// It speaks of one trial: how well the trial knows its own percentile, not how well a second trial
// would repeat it; that is Summarize's business. Requests of one trial are correlated, so take
// it as the least doubt, not the whole.
//
// Method: j, k = nq -+ z sqrt(nq(1-q)), rounded outwards: the normal approximation of the binomial
// number of requests below the quantile, as in Lancet's get_ci (David & Nagaraja, "Order
// Statistics", 3rd ed., 2003, §7.1, have the exact form). At 0.95 the exact binomial confidence of
// these ranks is at least 0.95 for p90, p99 and p99.9 and at least 0.947 for the median.
func QuantileRanks(n int64, q, confidence float64) (lo, hi int64, ok bool) {
	return QuantileRanksOf(n, 1, q, confidence)
}

// maxRequests bounds the search of QuantileNeeds; beyond it float64 skips whole numbers.
const maxRequests = 1 << 53

// QuantileNeeds is the least n for which QuantileRanks has both ranks. For upper percentiles that
// is n(1-q) >= z^2 q: at 0.95 (z^2 = 3.8415) p99 needs 381 and p99.9 needs 3838. (3837, which is
// sometimes quoted, comes of rounding z^2 to 3.84; its upper rank would be 3837.0003.) The answer
// is 2^53 when that is not enough.
func QuantileNeeds(q, confidence float64) int64 {
	mustBeShare("quantile", q)
	mustBeShare("confidence", confidence)
	n := sort.Search(maxRequests, func(n int) bool {
		_, _, ok := QuantileRanks(int64(n), q, confidence)
		return ok
	})
	return int64(n)
}
