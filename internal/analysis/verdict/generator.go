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
	batchMax     = 32   // answers
	batchShare   = 0.01 // of all answers
)

// lag is about every load that has moments to send at: the arrivals of an open one, and the ends of
// users' pauses. Where the generator has said of each answer by how much its lag can have held it
// up, the bound is what percentiles would be less without; it may be too large where the service
// always had something to do. Else a request that left late is answered as much later, and behind
// it come those that were held up with it: once more the lag, and as many requests again until what
// they left is worked off, at half of capacity or below. So where a share of the requests left
// later than some lag, a percentile is at least the one below it by twice that share, less twice
// that lag. That knows nothing of those who waited for a connection behind it: they do not count,
// and as many again that were held up with them. Of both bounds the smaller one holds.
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

// lateBy bounds by which share a percentile of times is too high that began later than they should,
// where this share of them does not count.
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

// timer tells a timer that is coarse from a core that was disturbed. Lag is what counts: a machine
// that sleeps deeply when nothing runs wakes late before the load, and need not during it.
func timer(r *record.Record, l *load) *record.Finding {
	before := l.Generator.Wakeup.P99Ns
	if before < l.OwnLag.P99Ns/2 || before == 0 ||
		worthTelling(lag(r, l), false, r.Verdict.Resolves()) == nil {
		return nil
	}
	return cause(record.Finding{Value: float64(before), Unit: record.UnitNs})
}

// withinRoom bounds what a faster generator would have found: a service cannot serve more than the
// processor time allows that it left unused. Where that is not known, or an open load asked for no
// more, the threshold counts.
func withinRoom(l *record.Load, f record.Finding) *record.Finding {
	remaining, known := room(l)
	if !known || l.Model == record.Open {
		return suspect(f)
	}
	f.Case, f.Facts.UnusedShare = "with room", 1-l.Service.CPUShare
	return orCause(f, evenly(l, remaining))
}

// generator leaves out the time that a thread polls because nothing is due yet: it would have been
// free to work.
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

// runDelay takes from a closed load what the threads waited, but no more than the service could
// have served. What it did to an open one is its lag.
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
	return cause(share(part, runDelayMax)) // of what lag sees
}

func ceiling(_ *record.Record, l *load) *record.Finding {
	if l.CeilingPerS <= 0 || l.ThroughputPerS <= ceilingMax*l.CeilingPerS {
		return nil
	}
	return withinRoom(l.Load, share(l.ThroughputPerS/l.CeilingPerS, ceilingMax))
}

// batch looks for answers that lay in their sockets while the thread took others: the time of each
// is read when its turn comes. Turns in which nothing came make the average small, so that one
// large batch counts too, where it is enough to move p99.
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

// foreign caps what was measured by a tool that does not say how late it sends: a pause of the
// service, or of the tool, may have hidden requests from it (coordinated omission), and nothing in
// its output would tell. In the closed model there is nothing to be late for, and throughput is a
// plain count. Where there is a histogram of wrk's, its invented samples have been taken out.
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

// timed tells whether there is anything in a distribution; tools print percentiles of they do not
// say how many.
func timed(d *record.Dist) bool { return d.Count > 0 || d.P99Ns > 0 }

// How long a load thread may stand still. What a machine does to a thread of its own accord is
// shorter than the first: a slice of each of some dozen others, a period of a bandwidth limit (100
// ms), a hypervisor that gives the core to another guest; that is lag, run delay and steal. None of
// it reaches the second: somebody has stopped the process or the machine (SIGSTOP, Ctrl-Z, a
// snapshot), and a load that was cut off and came back with all that was due meanwhile is not the
// one that was asked for, in either model.
const (
	stillLeast = 100 * time.Millisecond
	stillMost  = 500 * time.Millisecond
)

// stoodStill bounds what a shorter stop took of a closed window by its length, but for what the
// thread waited for a processor, which run delay bounds. What it did to an open load is its lag.
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
