package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"prony/internal/result"
	"prony/internal/runtimes"
	"prony/internal/stats"
)

func failed(r *result.Record, _ *load) *result.Finding {
	if r.Outcome == result.Measured {
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
// settled to shows in the window, where drift and settled bound it. A compiler may fall silent and
// begin again: where it once was silent for as long as a steady state takes, the closed window is
// off by what its end differs from its mean, and where it never was, nobody can say.
func warmup(r *result.Record, _ *load) *result.Finding {
	f := unsteady(r.Warmup)
	switch {
	case f == nil:
	case !runtimes.Of(r.Target.Runtime).Compiles:
		f.Grade = result.Valid
	case r.Warmup.Steady:
		for i := range r.Loads {
			l := &r.Loads[i]
			if by, ok := atEnd(l); ok {
				f = orCause(f.Observed, f.Hint, evenly(l, by))
				f.Load = l.Name
				break
			}
		}
	}
	return f
}

// atEnd is by which share the last quarter of a closed window differs from the whole; false where
// it has too few intervals, or none that should be alike.
func atEnd(l *result.Load) (share float64, ok bool) {
	done := whole(l)
	quarter := len(done) / 4
	if l.Model != result.Closed || !steady(l) || quarter < driftHalf/2 || l.Done == 0 {
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

func unsteady(w result.Warmup) *result.Finding {
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
func quiet(r *result.Record, _ *load) *result.Finding {
	if r.Before.WindowNs == 0 || r.Before.Quiet {
		return nil
	}
	waited := time.Duration(r.Before.WaitedNs).Round(100 * time.Millisecond)
	return cause(fmt.Sprintf("before the trial %s, and %v did not help", r.Before.Why, waited),
		"a quiet host", "end what else runs; see prony doctor")
}

func limits(r *result.Record, _ *load) *result.Finding {
	if len(r.Limits.Missing) == 0 {
		return nil
	}
	return suspect("not in force: "+strings.Join(r.Limits.Missing, ", "), "all in force",
		"run as root, or have cgroups delegated to you")
}

func cores(r *result.Record, _ *load) *result.Finding {
	for _, c := range r.Limits.ServiceCores {
		if slices.Contains(r.Limits.LoadCores, c) {
			return suspect(fmt.Sprintf("both on core %d", c), "disjoint cores",
				"give the machine a second core")
		}
	}
	return nil
}
