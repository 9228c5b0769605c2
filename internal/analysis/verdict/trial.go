package verdict

import (
	"math"
	"slices"

	"prony.example/internal/base/runtimes"
	"prony.example/record"
	"prony.example/record/metric"
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

// warmup's finding is VALID unless compilers were active in the window. In a service that does not
// compile while it serves, drift and settled bound what has not settled. A compiler that was busy
// but not all the time was not behind with the important code: the window is off by the compiler's
// share of the service's time, and by the difference of the window's end from its mean. The same
// holds for a compiler that stopped and started again, even if Prony cannot observe it. If the
// compiler never stopped, or always had work waiting, the effect is unknown.
func warmup(r *record.Record, _ *load) *record.Finding {
	f := unsteady(r.Warmup)
	if !runtimes.Of(r.Target.Runtime).Compiles {
		return named(f)
	}
	l, end, ok := ending(r)
	c := compiled(l)
	if r.Warmup.CompilersIdleAtNs > 0 { // they stopped and started again
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
		f = orCause(*f, andProcessorTime(evenly(l, c.ownShare+end)))
		f.Load = l.Name
	case c.known && !c.busy:
		return named(f)
	}
	return f
}

// andProcessorTime adds to bounds of a closed load that its processor time per request moves by as
// much as its throughput: time that compilers take from requests counts as the service's.
func andProcessorTime(all []record.Bias) []record.Bias {
	for _, b := range all {
		if b.Metric == metric.Throughput {
			return append(all, record.Bias{Metric: metric.CPU, Share: b.Share})
		}
	}
	return all
}

// named returns a finding with the grade VALID.
func named(f *record.Finding) *record.Finding {
	if f != nil {
		f.Grade = record.Valid
	}
	return f
}

// ending returns the first load whose end is comparable with its mean, and their difference as a
// share. If there is no such load, it returns the first load, or nil, and false.
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

// CompilerShare returns the least share by which a service gets faster when its compilers are done,
// by their share of its time in the first window; 0: nothing compiled, or it is unknown.
func CompilerShare(r *record.Record) float64 {
	l, _, _ := ending(r)
	return compiled(l).ownShare
}

// compilation describes the compilers' work in a window.
type compilation struct {
	known        bool // the threads' names identify compilers
	busy, behind bool // they had work; they had work waiting all the time
	ownShare     float64
	match        record.Finding
}

// compiled describes the compilers in a load's window. Their share of the service's time is the
// least by which the service gets faster when they are done.
func compiled(l *record.Load) (c compilation) {
	if l == nil || l.Service.Roles == nil || l.Service.Roles.CompilerNs == 0 ||
		l.Service.CPUNs <= 0 {
		return c
	}
	u, r := &l.Service, l.Service.Roles
	c.known = true
	c.busy = !runtimes.Silent(r.CompilerNs, r.CompilerWaitNs, u.WindowNs)
	c.behind = runtimes.Behind(r.CompilerNs, r.CompilerWaitNs, u.WindowNs)
	elapsed := min(float64(r.CompilerNs)/float64(u.CPUNs), 0.9) // enough for a bound
	c.ownShare = elapsed / (1 - elapsed)
	part := func(ns int64) float64 { return float64(ns) / float64(max(u.WindowNs, 1)) }
	c.match = record.Finding{Case: "compiles", Value: part(r.CompilerNs), Unit: record.UnitShare,
		Facts: record.Facts{Name: l.Name, WaitingShare: part(r.CompilerWaitNs)}}
	return c
}

// atEnd returns the share by which the last quarter of a closed window differs from its mean, and
// false if the window has too few intervals or its load changes.
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

// quiet makes no finding if the machine was not observed. Disturbance before the trial may not
// continue in the window, which has rules of its own.
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

// chatty reports that parts of the service's output are missing, and that a service in production
// would not write as much.
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

// podCores checks the result of a static CPU manager. The rule cores covers the load's cores.
func podCores(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || len(r.Pod.CoresSharedWith) == 0 {
		return nil
	}
	return suspect(with(record.Facts{Messages: r.Pod.CoresSharedWith}, record.Finding{}))
}

// readerLate is the largest delay of a reading after the window's edge, as a share of the window:
// the counts between two readings are scaled to the window, and the load has ended with the window.
const readerLate = 0.01

// readings checks the readings of a reader on another node.
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

// clusterAway bounds no number, because Prony sends no request to a cluster during a load.
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
