package verdict

import (
	"math"
	"slices"

	"prony.example/internal/base/runtimes"
	"prony.example/record"
	"prony.example/stats"
)

func failed(r *record.Record, _ *load) *record.Finding {
	if r.Outcome == record.Measured {
		return nil
	}
	if r.Failure == nil {
		return invalid(in("unknown", record.Finding{}))
	}
	return invalid(with(record.Facts{Step: r.Failure.Step, Messages: []string{r.Failure.Error},
		Hint: r.Failure.Hint}, record.Finding{}))
}

// warmup is no doubt of its own where nothing compiles while it serves: what such a service has not
// settled to shows in the window, where drift and settled bound it; nor where compilers were silent
// in the window. One that had something to do, but not all the time, was not behind with what
// matters most: the window is off by the time that it took from the service, and by what the
// window's end differs from its mean. So it is where a compiler fell silent and began again, though
// nobody can hear it. If it never was silent, or always had something to do, the effect is unknown.
func warmup(r *record.Record, _ *load) *record.Finding {
	f := unsteady(r.Warmup)
	if !runtimes.Of(r.Target.Runtime).Compiles {
		return named(f)
	}
	l, end, ok := ending(r)
	c := compiled(l)
	if r.Warmup.CompilersIdleAtNs > 0 { // they were silent, and began again
		c.match.Case = "compiles again"
	}
	switch {
	case c.behind:
		return suspect(c.match)
	case f == nil && c.busy:
		f = suspect(c.match)
	}
	switch {
	case f == nil:
	case ok && (c.known || r.Warmup.Steady):
		f = orCause(*f, evenly(l, c.ownShare+end))
		f.Load = l.Name
	case c.known && !c.busy:
		return named(f)
	}
	return f
}

// named is a finding that is no doubt.
func named(f *record.Finding) *record.Finding {
	if f != nil {
		f.Grade = record.Valid
	}
	return f
}

// ending is the first load whose end can be held against its mean, with what they differ by; where
// there is none, the first load; nil: there is none at all.
func ending(r *record.Record) (l *record.Load, amount float64, ok bool) {
	for i := range r.Loads {
		if change, ok := atEnd(&r.Loads[i]); ok {
			return &r.Loads[i], change, true
		}
	}
	if len(r.Loads) > 0 {
		l = &r.Loads[0]
	}
	return l, 0, false
}

// compilation is what compilers did in a window.
type compilation struct {
	known        bool // threads' names tell
	busy, behind bool // they had something to do, they always had
	ownShare     float64
	match        record.Finding
}

// compiled looks at the compilers of a load's window. What they had of the service's time is the
// least that it gets faster by when they are done.
func compiled(l *record.Load) (c compilation) {
	if l == nil || l.Service.Roles == nil || l.Service.Roles.CompilerNs == 0 ||
		l.Service.CPUNs <= 0 {
		return c
	}
	u, r := &l.Service, l.Service.Roles
	c.known = true
	c.busy = !runtimes.Silent(r.CompilerNs, r.CompilerWaitNs, u.WindowNs)
	c.behind = runtimes.Behind(r.CompilerNs, r.CompilerWaitNs, u.WindowNs)
	elapsed := min(float64(r.CompilerNs)/float64(u.CPUNs), 0.9) // the rest is bound enough
	c.ownShare = elapsed / (1 - elapsed)
	part := func(ns int64) float64 { return float64(ns) / float64(max(u.WindowNs, 1)) }
	c.match = record.Finding{Case: "compiles", Value: part(r.CompilerNs), Unit: record.UnitShare,
		Facts: record.Facts{Name: l.Name, WaitingShare: part(r.CompilerWaitNs)}}
	return c
}

// atEnd is by which share the last quarter of a closed window differs from the whole; false where
// it has too few intervals, or none that should be alike.
func atEnd(l *record.Load) (share float64, ok bool) {
	done := whole(l)
	quarter := len(done) / 4
	if l.Model != record.Closed || !steady(l) || quarter < driftHalf/2 || l.Done == 0 {
		return 0, false
	}
	sum, last := 0.0, 0.0
	for i, n := range done {
		sum += float64(n)
		if i >= len(done)-quarter {
			last += float64(n)
		}
	}
	mean := sum / float64(len(done))
	return math.Abs(last/float64(quarter)-mean) / mean, mean > 0
}

func unsteady(w record.Warmup) *record.Finding {
	after := func(way string, ns int64) *record.Finding {
		return suspect(record.Finding{Case: way, Value: float64(ns), Unit: record.UnitNs})
	}
	switch {
	case !w.Steady:
		return after("never steady", w.DurationNs)
	case w.Kind == stats.Unsteady:
		return after("steady before", w.DurationNs)
	case w.SteadyAtNs > w.DurationNs:
		return after("steady late", w.SteadyAtNs-w.DurationNs)
	}
	return nil
}

// quiet is silent where nobody looked. What the machine did before it may not do in the window, and
// what it does there has rules of its own.
func quiet(r *record.Record, _ *load) *record.Finding {
	if r.HostBefore.WindowNs == 0 || r.HostBefore.Quiet {
		return nil
	}
	return cause(with(record.Facts{Messages: []string{r.HostBefore.Reason},
		AtNs: r.HostBefore.WaitedNs},
		record.Finding{}))
}

func limits(r *record.Record, _ *load) *record.Finding {
	if len(r.Limits.Missing) == 0 {
		return nil
	}
	return suspect(with(record.Facts{Limits: r.Limits.Missing}, record.Finding{}))
}

// chatty says what is not there for whoever looks for it, and that a service which writes that much
// is not what anybody has in production.
func chatty(r *record.Record, _ *load) *record.Finding {
	if r.LogDroppedBytes == 0 {
		return nil
	}
	return cause(record.Finding{Value: float64(r.LogDroppedBytes), Unit: record.UnitBytes,
		Side: record.Above})
}

func cores(r *record.Record, _ *load) *record.Finding {
	for _, c := range r.Limits.ServiceCores {
		if slices.Contains(r.Limits.LoadCores, c) {
			return suspect(with(record.Facts{Core: c}, record.Finding{}))
		}
	}
	return nil
}

// podCores wants what a static CPU manager gives. The load's cores are another rule's.
func podCores(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || len(r.Pod.CoresSharedWith) == 0 {
		return nil
	}
	return suspect(with(record.Facts{Messages: r.Pod.CoresSharedWith}, record.Finding{}))
}

// readerLate is what part of a window a reading may come after its edge: the answers between two
// readings are those of the window in proportion, and a load has ended when the window has.
const readerLate = 0.01

// readings are those of a reader on another node.
func readings(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || r.Pod.Reader == nil {
		return nil
	}
	if lost := r.Pod.Reader.Lost; len(lost) > 0 {
		return suspect(in("lost", with(record.Facts{Messages: lost}, record.Finding{})))
	}
	late := float64(r.Pod.Reader.LateMaxNs)
	for _, l := range r.Loads {
		if most := readerLate * float64(l.WindowNs); late > most {
			return suspect(in("late", record.Finding{Value: late, Limit: most, Unit: record.UnitNs,
				Side: record.Above, Facts: record.Facts{Name: l.Name}}))
		}
	}
	return nil
}

// clusterAway moves no number: nothing is asked of a cluster while a load is offered.
func clusterAway(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || len(r.Pod.APIOutages) == 0 {
		return nil
	}
	var sum int64
	for _, a := range r.Pod.APIOutages {
		sum += a.DurationNs
	}
	return cause(record.Finding{Value: float64(sum), Unit: record.UnitNs, Side: record.Above})
}
