package verdict

import (
	"math"
	"slices"

	"prony.example/record"
)

const (
	p99Needs     = 381 // samples
	driftSigmas  = 3   // of the counts' difference
	driftHalf    = 4   // intervals; of fewer nothing is said
	settledPairs = 0.9 // of the pairs of intervals that must agree which half is slower
	settledHalf  = 8   // intervals; of fewer nothing is said
)

// samples counts answers by what they are worth together: answers that are slow in company say less
// about the tail than as many that are slow alone. A percentile with too few is withheld, which is
// all there is to say: it is no doubt about anything else.
func samples(_ *record.Record, l *load) *record.Finding {
	n := l.ResponseTime.Count
	if n < p99Needs && (n > 0 || l.Driver == "") {
		return cause(record.Finding{Value: float64(n), Limit: p99Needs, Unit: record.UnitCount,
			Side: record.Below})
	}
	share, _ := l.Autocorrelation.Worth()
	worth := int64(share * float64(n))
	if share == 1 || worth >= p99Needs {
		return nil
	}
	return cause(in("in company", record.Finding{Value: float64(worth), Limit: p99Needs,
		Unit: record.UnitCount, Side: record.Below, Facts: record.Facts{Count: n}}))
}

// drift allows for the counts' own randomness: the difference of two counts has a variance of at
// most their sum in a steady state, and three standard deviations are let pass. A shorter last
// interval is left out. The window's mean is off by half the difference of its halves where one of
// them is what was asked for.
func drift(_ *record.Record, l *load) *record.Finding {
	done := whole(l.Load)
	n := len(done)
	half := n / 2
	if l.Model != record.Closed || !steady(l.Load) || half < driftHalf {
		return nil
	}
	var first, second float64
	for i := range half {
		first += float64(done[i])
		second += float64(done[n-half+i])
	}
	change := second - first
	if math.Abs(change) <= driftSigmas*math.Sqrt(first+second) {
		return nil
	}
	f := record.Finding{Case: "begins with none"}
	switch {
	case first > 0 && change > 0:
		f = record.Finding{Case: "faster", Value: change / first, Unit: record.UnitShare}
	case first > 0:
		f = record.Finding{Case: "slower", Value: -change / first, Unit: record.UnitShare}
	}
	return bounded(f, evenly(l.Load, math.Abs(change)/(first+second)))
}

// whole are the answers of the intervals that are as long as the others.
func whole(l *record.Load) []int64 {
	n := len(l.Series.Done)
	if l.Series.IntervalNs > 0 {
		n = min(n, int(l.WindowNs/l.Series.IntervalNs))
	}
	return l.Series.Done[:n]
}

// settled compares response times, interval by interval, between the halves of an open window. A
// queue's own ups and downs make the halves differ too, so that two things are asked for: a
// difference worth speaking of, and that nearly all pairs of intervals agree on it. The window's
// times are off by half the difference, as with drift.
func settled(_ *record.Record, l *load) *record.Finding {
	p50 := l.Series.P50Ns
	half := len(p50) / 2
	if l.Model != record.Open || !steady(l.Load) || half < settledHalf {
		return nil
	}
	first, second := slices.Clone(p50[:half]), slices.Clone(p50[len(p50)-half:])
	slower, pairs := 0.0, 0.0
	for _, a := range first {
		for _, b := range second {
			if a == 0 || b == 0 { // an interval without an answer
				continue
			}
			pairs++
			switch {
			case b > a:
				slower++
			case b == a:
				slower += 0.5
			}
		}
	}
	slices.Sort(first)
	slices.Sort(second)
	a, b := first[half/2], second[half/2]
	low, high := min(a, b), max(a, b)
	agree := max(slower, pairs-slower)
	if agree < settledPairs*pairs || pairs == 0 || high == 0 {
		return nil
	}
	return bounded(record.Finding{Facts: record.Facts{TimesNs: []int64{a, b}}},
		evenly(l.Load, float64(high-low)/float64(high+low)))
}
