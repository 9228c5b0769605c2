package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"prony/internal/result"
	"prony/internal/runtimes"
	"prony/internal/stats"
)

func failed(r *result.Record, _ *result.Load) *result.Finding {
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
// begin again, and how much faster it would make the service no window says.
func warmup(r *result.Record, _ *result.Load) *result.Finding {
	f := unsteady(r.Warmup)
	if f != nil && !runtimes.Of(r.Target.Runtime).Compiles {
		f.Grade = result.Valid
	}
	return f
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
func quiet(r *result.Record, _ *result.Load) *result.Finding {
	if r.Before.WindowNs == 0 || r.Before.Quiet {
		return nil
	}
	waited := time.Duration(r.Before.WaitedNs).Round(100 * time.Millisecond)
	return cause(fmt.Sprintf("before the trial %s, and %v did not help", r.Before.Why, waited),
		"a quiet host", "end what else runs; see prony doctor")
}

func limits(r *result.Record, _ *result.Load) *result.Finding {
	if len(r.Limits.Missing) == 0 {
		return nil
	}
	return suspect("not in force: "+strings.Join(r.Limits.Missing, ", "), "all in force",
		"run as root, or have cgroups delegated to you")
}

func cores(r *result.Record, _ *result.Load) *result.Finding {
	for _, c := range r.Limits.ServiceCores {
		if slices.Contains(r.Limits.LoadCores, c) {
			return suspect(fmt.Sprintf("both on core %d", c), "disjoint cores",
				"give the machine a second core")
		}
	}
	return nil
}
