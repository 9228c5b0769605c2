package stallfree

import (
	"slices"
	"time"

	"prony.example/internal/observe/stalls"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/record"
	"prony.example/stats"
)

const (
	// closedSample is how many requests of a closed load are kept one by one. More are offered, but
	// these show whether stalls depend on the service.
	closedSample = 1 << 20
	// saturated is the share of its core from which on a service is always busy: the kernel's work
	// in interrupts is not counted as the service's.
	saturated = 0.9
)

// PeriodOf returns the period of the clock for loads of a model. A closed load needs only the sum
// of its stalls, and the clock takes time from its throughput.
func PeriodOf(model string) time.Duration {
	if model == record.Closed {
		return stalls.SumPeriod
	}
	return stalls.Period
}

// SampleOf is how many requests of a load are to be kept one by one.
func SampleOf(s *load.Spec) int {
	if s.Model == record.Closed {
		return closedSample
	}
	return Sample(Expected(s))
}

// Window is a load that was offered in a window.
type Window struct {
	Load   *record.Load
	Sample arrivalcheck.Times // since FromNs
	Room   int                // for the sample
	FromNs int64              // begin of the window
	// Utilization is the share of its cores that the service used, 0 to 1; Cores is their number.
	Utilization float64
	Cores       int
}

// Keep adds the stalls to the record of a load, and its values without them: percentiles of an open
// load, the usual ones and some more, or the throughput of a closed one.
func (l *Log) Keep(w Window, quantiles ...float64) {
	w.Load.Stalls = l.Summary()
	switch {
	case !l.Recorded():
	case w.Load.Model == record.Closed:
		w.Load.Stalls.Unseen = nil // from another clock than that of open loads
		w.Load.WithoutStalls = l.throughput(w)
	case len(w.Sample.Due) < w.Room:
		w.Load.StallFree = l.Percentiles(w.Sample, w.FromNs, l.Spans(), w.Utilization, quantiles...)
	}
}

// throughput returns the throughput of a closed load without stalls; nil if there is none.
func (l *Log) throughput(w Window) *record.WithoutStalls {
	if w.Load.Done == 0 {
		return nil
	}
	all := stats.ClosedLoad{FromNs: w.FromNs, ToNs: w.FromNs + w.Load.WindowNs,
		Good: w.Load.Done, Connections: w.Load.Connections}
	for i, response := range w.Sample.Response {
		if response > 0 { // 0: it failed
			all.EndsNs = append(all.EndsNs, w.FromNs+w.Sample.Due[i]+response)
		}
	}
	slices.Sort(all.EndsNs)
	ranNs := w.Load.WindowNs
	for _, x := range l.all {
		if slices.Contains(l.watcher.setup.Service, x.Core) {
			all.Service = append(all.Service, statsOf(x))
			ranNs -= x.LeastNs
		} else {
			all.Load = append(all.Load, statsOf(x))
		}
	}
	all.Saturated = w.Cores == 1 &&
		w.Utilization*float64(w.Load.WindowNs) >= saturated*float64(ranNs)
	r := all.WithoutStalls()
	return &record.WithoutStalls{PerS: r.PerS, LowestPerS: r.LowestPerS,
		HighestPerS: r.HighestPerS, RanShare: r.Share, Unknown: r.Unknown}
}
