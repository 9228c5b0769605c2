package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// QuantileRanksOf is QuantileRanks where n requests are worth share x n independent ones: slow
// answers come in company, so that many of them rest on few events. The ranks are among the n.
// Share 1 gives QuantileRanks; above 1 counts as 1; what is no positive number gives no interval.
//
// Method: the number of requests below the quantile varies 1/share as much, so j, k = nq -+
// z sqrt(nq(1-q)/share) (Heidelberger & Lewis, "Quantile estimation in dependent sequences",
// Operations Research 32, 1984, pp. 185-209). Both ranks exist when share x n does for independent
// requests: with half of them lost p99 needs 761.
func QuantileRanksOf(n int64, share, q, confidence float64) (lo, hi int64, ok bool) {
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
