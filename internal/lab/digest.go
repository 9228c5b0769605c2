package lab

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/unit"
	"prony/internal/verdict"
)

// Digest is a trial in a line: its name, the first numbers, the verdict and why.
func Digest(r *result.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s", r.Trial)
	if r.Outcome == result.Measured {
		fmt.Fprintf(&b, " %-19s", warmth(r.Warmup))
	}
	for _, l := range r.Loads {
		if l.Model == result.Closed {
			fmt.Fprintf(&b, " %s %s/s", l.Name, unit.Rate(l.ThroughputPerS))
		} else {
			p99 := unit.Absent
			if verdict.Withheld(r.Verdict, l.Name) == nil {
				p99 = unit.Duration(float64(l.ResponseTime.P99Ns))
			}
			fmt.Fprintf(&b, " · %s p99 %s", l.Name, p99)
		}
	}
	fmt.Fprintf(&b, "  %s", r.Verdict.Grade)
	counted := slices.DeleteFunc(slices.Clone(r.Verdict.Findings), func(f result.Finding) bool {
		return f.Grade == result.Valid
	})
	// The first of the worst: what made the grade.
	for _, f := range counted {
		if f.Grade == r.Verdict.Grade {
			of := f.Rule
			if f.Load != "" {
				of = f.Load + ": " + f.Rule
			}
			fmt.Fprintf(&b, ": %s: %s", of, f.Observed)
			break
		}
	}
	if n := len(counted); n > 1 {
		fmt.Fprintf(&b, " and %d more", n-1)
	}
	return b.String()
}

// warmth is what the warm-up came to.
func warmth(w result.Warmup) string {
	at := time.Duration(w.SteadyAtNs).Round(100 * time.Millisecond).Seconds()
	switch {
	case !w.Steady || w.Kind == stats.Unsteady:
		return "never steady,"
	case w.Kind == stats.Slowed:
		return "got slower,"
	case w.SteadyAtNs == 0:
		return "steady at once,"
	}
	return fmt.Sprintf("steady after %.1f s,", at)
}
