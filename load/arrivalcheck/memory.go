package arrivalcheck

import (
	"cmp"
	"slices"

	"prony.example/record"
)

const (
	// answersMin is the lowest number of independent responses that an interval of p99 needs; fewer
	// responses are not tested.
	answersMin = 381

	// batches is the number of batches. It alone determines the precision of the variance between
	// batches: 32 batches estimate it to about a quarter. More batches would be shorter and miss
	// correlation that lasts longer than a batch.
	batches = 32
)

// Correlation measures how much a response time depends on the one before. It takes response times
// in the order in which requests left and ignores zeros, which are missing responses.
//
// EffectiveShare is for p99. A quantile is as uncertain as the number of responses beyond it, and
// this number varies more between stretches of the load if slow responses come in clusters. The
// share is the variance between batches that independent responses would have, divided by the
// observed variance (P. Heidelberger and P. A. W. Lewis, Operations Research 32(1), 1984).
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
	// If so many responses share the maximum that none exceeds p99, they are the tail.
	m.EffectiveShare = effective(elapsed, func(ns int64) bool { return ns > p99 || ns == top })
	return m
}

// ranks returns the rank of each value, in place order; ties share their mean rank.
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

// neighbours returns the autocorrelation of ranks at lag 1; 0 if all are equal.
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

// effective returns the share of independent responses that would give the same precision for the
// number of slow ones; at most 1.
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
