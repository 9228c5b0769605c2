package verdict

import (
	"math"
	"slices"

	"prony.example/record"
)

const (
	p99Needs     = 381 // samples
	driftSigmas  = 3   // of the counts' difference
	driftHalf    = 4   // intervals; with fewer there is no result
	settledPairs = 0.9 // of the pairs of intervals that must agree which half is slower
	settledHalf  = 8   // intervals; with fewer there is no result
)

// samples counts responses by their effective number: correlated slow responses say less about the
// tail than as many independent ones. Numbers of one trial lack a percentile with too few of them;
// tables over trials count all responses, because their intervals are those between trials.
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

// drift allows for the counts' own randomness: in a steady state the difference of two counts has a
// variance of at most their sum, and drift permits three standard deviations. It excludes a shorter
// last interval. If one half is the requested state, the window's mean is off by half the
// difference.
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

// whole returns the responses of each interval of full length.
func whole(l *record.Load) []int64 {
	n := len(l.Series.Done)
	if l.Series.IntervalNs > 0 {
		n = min(n, int(l.WindowNs/l.Series.IntervalNs))
	}
	return l.Series.Done[:n]
}

// settled compares response times between the halves of an open window, interval by interval. A
// queue's own variation makes the halves differ too, so a finding needs a relevant difference and
// nearly all pairs of intervals must agree on it. An interval without a response is in no pair. The
// window's times are off by half the difference, as with drift.
func settled(_ *record.Record, l *load) *record.Finding {
	p50 := l.Series.P50Ns
	half := len(p50) / 2
	known := func(all []int64) []int64 {
		return slices.DeleteFunc(slices.Clone(all), func(ns int64) bool { return ns == 0 })
	}
	first, second := known(p50[:half]), known(p50[len(p50)-half:])
	if l.Model != record.Open || !steady(l.Load) || min(len(first), len(second)) < settledHalf {
		return nil
	}
	slower, pairs := 0.0, float64(len(first)*len(second))
	for _, a := range first {
		for _, b := range second {
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
	a, b := first[len(first)/2], second[len(second)/2]
	low, high := min(a, b), max(a, b)
	agree := max(slower, pairs-slower)
	if agree < settledPairs*pairs {
		return nil
	}
	return bounded(record.Finding{Facts: record.Facts{TimesNs: []int64{a, b}}},
		evenly(l.Load, float64(high-low)/float64(high+low)))
}
