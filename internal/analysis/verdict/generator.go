package verdict

import (
	"strings"
	"time"

	"prony.example/record"
)

const (
	generatorMax = 0.80 // of a core
	runDelayMax  = 0.05 // of the window
	ceilingMax   = 0.70 // of the generator's rate against a null server
	batchMax     = 32   // responses
	batchShare   = 0.01 // of all responses
)

// lag bounds the effect of late sending on loads with send times: the arrivals of an open load, and
// the ends of users' pauses. If the generator recorded for each response how much its own lag can
// have delayed it, the bound is the difference to percentiles without this delay, which may be too
// large if the service always had something to do. Otherwise a request that left late is answered
// as much later, and so are requests that it held up: by the lag once more, and as many requests
// again until the service has worked off the backlog, at half of capacity or below. So if a share
// of the requests left later than some lag, a percentile is at least the percentile with twice this
// share removed, less twice the lag. This bound excludes requests that waited for a connection, and
// as many that they held up. lag uses the smaller of both bounds.
func lag(_ *record.Record, l *load) *record.Finding {
	if l.OwnLag.Count == 0 || l.ResponseTime.MeanNs <= 0 {
		return nil
	}
	bound := lateBy(l.times(), l.lags(), 0)
	if l.heldUpKnown() {
		waited := float64(l.Waited) / float64(l.ResponseTime.Count)
		ranked, t, least := lateBy(l.times(), l.lags(), 2*waited), l.times(), l.punctual()
		bound = func(q float64) float64 { return min(t.above(q, least.at(q)), ranked(q)) }
	}
	f := record.Finding{Value: float64(l.OwnLag.P99Ns), Unit: record.UnitNs,
		Facts: record.Facts{MaxNs: l.OwnLag.MaxNs}}
	return bounded(f, stallFree(l.StallFree, moves(l.Load,
		2*l.OwnLag.MeanNs/l.ResponseTime.MeanNs, bound), lateness))
}

// lateBy returns a function that bounds the share by which a percentile of times is too high
// because requests left late. It leaves out this share of the requests: without.
func lateBy(t, late ranks, without float64) func(q float64) float64 {
	return func(q float64) float64 {
		retained := t.at(q-without) - 2*late.at(1)
		for _, part := range []float64{0.01, 0.03, 0.1, 0.3, 0.6} {
			p := part * (1 - q)
			retained = max(retained, t.at(q-without-2*p)-2*late.at(1-p))
		}
		return t.above(q, retained)
	}
}

// networkDelay checks how precisely the generator delayed the network.
func networkDelay(_ *record.Record, l *load) *record.Finding {
	n := l.Network
	if n == nil || n.Added.Count == 0 {
		return nil
	}
	excess := n.Added.P50Ns - n.DelayNs
	limit := max(n.DelayNs/20, int64(100*time.Microsecond))
	if max(excess, -excess) <= limit {
		return nil
	}
	return suspect(nanoseconds(max(excess, -excess), limit))
}

// timer distinguishes a coarse timer from a disturbed core. It requires a lag, because a machine
// that sleeps deeply when idle wakes late before the load, but not necessarily during it.
func timer(r *record.Record, l *load) *record.Finding {
	before := l.Generator.Wakeup.P99Ns
	if before < l.OwnLag.P99Ns/2 || before == 0 ||
		worthTelling(lag(r, l), false, r.Verdict.Resolves()) == nil {
		return nil
	}
	return cause(record.Finding{Value: float64(before), Unit: record.UnitNs})
}

// withinRoom bounds what a faster generator would have measured: a service can serve at most what
// its unused processor time allows. If this time is unknown, or the load is open and requested no
// more, the threshold decides.
func withinRoom(l *record.Load, f record.Finding) *record.Finding {
	remaining, known := room(l)
	if !known || l.Model == record.Open {
		return suspect(f)
	}
	f.Case, f.Facts.UnusedShare = "with room", 1-l.Service.CPUShare
	return orCause(f, evenly(l, remaining))
}

// generatorBusy excludes the time in which a thread polls because nothing is due yet: the thread
// would have been free to work.
func generatorBusy(_ *record.Record, l *load) *record.Finding {
	busy := l.Generator.CPUShare
	if l.WindowNs > 0 {
		busy -= float64(l.Generator.SpinNs) / float64(l.WindowNs) / float64(max(l.Threads, 1))
	}
	if busy <= generatorMax {
		return nil
	}
	return withinRoom(l.Load, share(busy, generatorMax))
}

// runDelay bounds the effect on a closed load by the share of time in which threads waited, but at
// most by what the service could have served. The rule lag covers open loads.
func runDelay(_ *record.Record, l *load) *record.Finding {
	if l.WindowNs <= 0 || l.Threads < 1 {
		return nil
	}
	part := min(float64(l.Generator.RunDelayNs)/float64(l.WindowNs)/float64(l.Threads), 0.9)
	amount := part / (1 - part)
	if remaining, known := room(l.Load); known {
		amount = min(amount, remaining)
	}
	if l.Model == record.Closed {
		return bounded(record.Finding{Value: part, Unit: record.UnitShare}, evenly(l.Load, amount))
	}
	if part <= runDelayMax {
		return nil
	}
	return cause(share(part, runDelayMax)) // the rule lag has the bound
}

func ceiling(_ *record.Record, l *load) *record.Finding {
	if l.CeilingPerS <= 0 || l.ThroughputPerS <= ceilingMax*l.CeilingPerS {
		return nil
	}
	return withinRoom(l.Load, share(l.ThroughputPerS/l.CeilingPerS, ceilingMax))
}

// batch finds responses that lay in their sockets while the thread read others, because the time of
// each is taken when it is read. Iterations without a response make the average small, so one large
// batch also counts if it is enough to move p99.
func batch(_ *record.Record, l *load) *record.Finding {
	g := &l.Generator
	if l.Model != record.Open || g.Iterations == 0 {
		return nil
	}
	mean := float64(l.Done) / float64(g.Iterations)
	f := record.Finding{Value: mean, Limit: batchMax, Unit: record.UnitCount, Side: record.Above}
	if mean > batchMax {
		return suspect(in("mean", f))
	}
	if g.BatchMax > batchMax && float64(g.BatchMax) > batchShare*float64(l.Done) {
		f.Value, f.Facts.Total = float64(g.BatchMax), l.Done
		return suspect(in("largest", f))
	}
	return nil
}

// foreign limits the grade of results from a tool that does not report how late it sends: a pause
// of the service or of the tool may have hidden requests from it (coordinated omission) without a
// trace in its output. A closed load cannot be late, and its throughput is a plain count.
// Histograms of wrk come without its invented samples.
func foreign(_ *record.Record, l *load) *record.Finding {
	if l.Driver == "" || !timed(&l.ResponseTime) && !timed(&l.ServiceTime) {
		return nil
	}
	f := record.Finding{Facts: record.Facts{Name: l.Driver}}
	if strings.HasPrefix(l.Driver, "wrk ") && l.ServiceTime.HDR == "" {
		return suspect(in("invented", f))
	}
	if l.Model != record.Open || l.OwnLag.Count > 0 {
		return nil
	}
	if !timed(&l.ResponseTime) {
		return suspect(in("late start", f))
	}
	return suspect(in("own lateness", f))
}

// timed reports whether a distribution has values. Tools print percentiles without a count.
func timed(d *record.Dist) bool { return d.Count > 0 || d.P99Ns > 0 }

// Limits for the time in which a load thread may stand still. The machine by itself causes shorter
// stops than stillLeast: slices of some dozen other threads, a period of a bandwidth limit (100
// ms), or a hypervisor that gives the core to another guest. Lag, run delay and steal cover these.
// None reaches stillMost: then somebody has stopped the process or the machine (SIGSTOP, Ctrl-Z, a
// snapshot), and the load that was offered differs from the requested one in either model.
const (
	stillLeast = 100 * time.Millisecond
	stillMost  = 500 * time.Millisecond
)

// stoodStill bounds the effect of a shorter stop on a closed window by its length, minus the
// thread's wait for a processor, which the rule run delay bounds. The rule lag covers open loads.
func stoodStill(_ *record.Record, l *load) *record.Finding {
	still := time.Duration(l.Generator.StallMaxNs)
	switch {
	case still >= stillMost:
		return invalid(nanoseconds(still, stillMost))
	case still < stillLeast || l.Model != record.Closed || l.WindowNs <= 0:
		return nil
	}
	delay := l.Generator.RunDelayNs / int64(max(l.Threads, 1))
	part := min(float64(max(int64(still)-delay, 0))/float64(l.WindowNs), 0.9)
	return bounded(record.Finding{Value: float64(still), Unit: record.UnitNs},
		evenly(l.Load, part/(1-part)))
}
