package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/runtimes"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

func failed(r *record.Record, _ *load) *record.Finding {
	if r.Outcome == record.Measured {
		return nil
	}
	f := invalid("the record does not say why", "the trial ends well", "read the service's log")
	if r.Failure != nil {
		f.Observed = r.Failure.Step + ": " + r.Failure.Error
		f.Hint = r.Failure.Hint
	}
	return f
}

// warmup is no doubt of its own where nothing compiles while it serves: what such a service has not
// settled to shows in the window, where drift and settled bound it; nor where compilers were silent
// in the window. One that had something to do, but not all the time, was not behind with what
// matters most: the window is off by the time that it took from the service, and by what the
// window's end differs from its mean. So it is where a compiler fell silent and began again, though
// nobody can hear it. Where it never was silent, or always had something to do, nobody can say.
func warmup(r *record.Record, _ *load) *record.Finding {
	f := unsteady(r.Warmup)
	if !runtimes.Of(r.Target.Runtime).Compiles {
		return named(f)
	}
	l, end, ok := ending(r)
	c := compiled(l)
	hint := "raise warmup.max, run as root so that compilers go first, or warm up on all cores"
	if r.Warmup.SilentAtNs > 0 { // they were silent, and began again
		hint = "raise warmup.min and measure"
	}
	switch {
	case c.behind:
		return suspect(c.told, "silent", hint)
	case f == nil && c.busy:
		f = suspect(c.told, "silent", hint)
	}
	switch {
	case f == nil:
	case ok && (c.known || r.Warmup.Steady):
		f = orCause(f.Observed, f.Hint, evenly(l, c.own+end))
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
func ending(r *record.Record) (l *record.Load, by float64, ok bool) {
	for i := range r.Loads {
		if by, ok := atEnd(&r.Loads[i]); ok {
			return &r.Loads[i], by, true
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
	own          float64
	told         string
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
	took := min(float64(r.CompilerNs)/float64(u.CPUNs), 0.9) // the rest is bound enough
	c.own = took / (1 - took)
	c.told = fmt.Sprintf("in the window of %s compilers ran for %s and waited for a core for %s "+
		"of the time", l.Name, share(r.CompilerNs, u.WindowNs), share(r.CompilerWaitNs, u.WindowNs))
	return c
}

func share(ns, ofNs int64) string { return percent(float64(ns) / float64(max(ofNs, 1))) }

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
	seconds := func(ns int64) time.Duration {
		return time.Duration(ns).Round(100 * time.Millisecond)
	}
	switch {
	case !w.Steady:
		return suspect(fmt.Sprintf("not steady after %v", seconds(w.DurationNs)), "steady",
			"raise warmup.max")
	case w.Kind == stats.Unsteady:
		return suspect(fmt.Sprintf("looked steady after %v, and was not in the window",
			seconds(w.DurationNs)), "steady", "raise warmup.min and measure")
	case w.SteadyAtNs > w.DurationNs:
		return suspect(fmt.Sprintf("the steady state began %v into the window",
			seconds(w.SteadyAtNs-w.DurationNs)), "before it", "raise warmup.min")
	}
	return nil
}

// quiet is silent where nobody looked. What the machine did before it may not do in the window, and
// what it does there has rules of its own.
func quiet(r *record.Record, _ *load) *record.Finding {
	if r.Before.WindowNs == 0 || r.Before.Quiet {
		return nil
	}
	waited := time.Duration(r.Before.WaitedNs).Round(100 * time.Millisecond)
	return cause(fmt.Sprintf("before the trial %s, and %v did not help", r.Before.Why, waited),
		"a quiet host", "end what else runs; see prony doctor")
}

func limits(r *record.Record, _ *load) *record.Finding {
	if len(r.Limits.Missing) == 0 {
		return nil
	}
	return suspect("not in force: "+strings.Join(wording.Limits(r.Limits.Missing), ", "), "all in force",
		"run as root, or have cgroups delegated to you")
}

// chatty says what is not there for whoever looks for it, and that a service which writes that much
// is not what anybody has in production.
func chatty(r *record.Record, _ *load) *record.Finding {
	if r.LogDroppedBytes == 0 {
		return nil
	}
	return cause(fmt.Sprintf("%d MB of the service's log are not kept", r.LogDroppedBytes/1e6),
		"all of it", "have it log less, as in production")
}

func cores(r *record.Record, _ *load) *record.Finding {
	for _, c := range r.Limits.ServiceCores {
		if slices.Contains(r.Limits.LoadCores, c) {
			return suspect(fmt.Sprintf("both on core %d", c), "disjoint cores",
				"give the machine a second core")
		}
	}
	return nil
}

// podCores wants what a static CPU manager gives. The load's cores are another rule's.
func podCores(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || len(r.Pod.Shared) == 0 {
		return nil
	}
	return suspect(strings.Join(r.Pod.Shared, "; "), "cores of its own",
		"have its node's kubelet run with cpuManagerPolicy: static, and ask for whole CPUs")
}

// readerLate is what part of a window a reading may come after its edge: the answers between two
// readings are those of the window in proportion, and a load has ended when the window has.
const readerLate = 0.01

// readings are those of a reader on another node.
func readings(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || r.Pod.Reader == nil {
		return nil
	}
	const hint = "have the lab and the node in one network, and the cluster's API answer"
	if lost := r.Pod.Reader.Lost; len(lost) > 0 {
		return suspect("what the service used is not known where a reading did not come: "+
			strings.Join(lost, "; "), "each reading", hint)
	}
	late := float64(r.Pod.Reader.LateMaxNs)
	for _, l := range r.Loads {
		if most := readerLate * float64(l.WindowNs); late > most {
			return suspect(fmt.Sprintf("a reading came %s late", units.Duration(late)),
				fmt.Sprintf("%s, 1 %% of load %s", units.Duration(most), l.Name), hint)
		}
	}
	return nil
}

// clusterAway moves no number: nothing is asked of a cluster while a load is offered.
func clusterAway(r *record.Record, _ *load) *record.Finding {
	if r.Pod == nil || len(r.Pod.Away) == 0 {
		return nil
	}
	var sum int64
	for _, a := range r.Pod.Away {
		sum += a.Ns
	}
	return cause(fmt.Sprintf("its API did not answer for %s", units.Duration(float64(sum))),
		"none", "what was measured does not depend on it")
}
