package arrivalcheck

import (
	"cmp"
	"slices"

	"prony.example/record"
)

const (
	// answersMin is the least number that an interval of p99 needs when all are independent; of
	// fewer, nothing is said.
	answersMin = 381

	// batches is how many the answers are cut into. Their number alone decides how well the
	// variance between them is known: 32 know it to a quarter. More would be shorter, and what
	// lasts longer than a batch is not seen.
	batches = 32
)

// Correlation says how much one answer tells of the next, from response times in the order in which
// the requests left; those of 0, which have not come, are left out.
//
// Effective is for p99: a quantile is as uncertain as the number of answers beyond it, and that
// number varies more between stretches of the load when slow answers come in company. The share is
// the variance that independent answers would have between batches by the variance found (P.
// Heidelberger and P. A. W. Lewis, Operations Research 32(1), 1984).
func Correlation(response []int64) record.Autocorrelation {
	elapsed := make([]int64, 0, len(response))
	for _, ns := range response {
		if ns > 0 {
			elapsed = append(elapsed, ns)
		}
	}
	m := record.Autocorrelation{Samples: int64(len(elapsed))}
	if len(elapsed) < answersMin {
		return m
	}
	order := make([]int32, len(elapsed))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(elapsed[a], elapsed[b]) })
	m.Lag1 = neighbours(ranks(elapsed, order))
	p99, top := elapsed[order[rank(0.99, len(elapsed))]], elapsed[order[len(elapsed)-1]]
	// Where so many are the slowest that none is slower than p99, they are the tail themselves.
	m.EffectiveShare = effective(elapsed, func(ns int64) bool { return ns > p99 || ns == top })
	return m
}

// ranks are those of the values, in their place; equal ones share the mean of theirs.
func ranks(values []int64, order []int32) []float64 {
	out := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, k := range order[from:to] {
			out[k] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}

// neighbours is the autocorrelation at lag 1; 0 where nothing varies.
func neighbours(x []float64) float64 {
	mean := float64(len(x)-1) / 2 // of ranks
	var with, ownShare float64
	for k, v := range x {
		ownShare += (v - mean) * (v - mean)
		if k > 0 {
			with += (v - mean) * (x[k-1] - mean)
		}
	}
	if ownShare == 0 {
		return 0
	}
	return with / ownShare
}

// effective is the share that so many independent answers are of these, as far as the number of
// slow ones goes; at most 1.
func effective(elapsed []int64, slow func(int64) bool) float64 {
	size := len(elapsed) / batches
	var counts [batches]float64
	total := 0.0
	for k, ns := range elapsed[:size*batches] {
		if slow(ns) {
			counts[k/size]++
			total++
		}
	}
	mean := total / batches
	count := 0.0
	for _, n := range counts {
		count += (n - mean) * (n - mean) / (batches - 1)
	}
	independent := mean * (1 - mean/float64(size))
	if count <= independent {
		return 1
	}
	return independent / count
}
