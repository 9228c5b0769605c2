//go:build linux && !portable

package main

import (
	"fmt"
	"math"

	"prony.example/internal/base/units"
	"prony.example/internal/generator/selftest"
	"prony.example/record"
)

// outcomeRow is the format of a line in the self-test's table.
const outcomeRow = "  %-26s %-29s %10s %10s %10s %7s  %s\n"

// printOutcomes prints a block for each case: the known values, then a line per number.
func (a *app) printOutcomes(outcomes []selftest.Outcome) {
	w, tookNs := a.stdout, int64(0)
	for _, o := range outcomes {
		fmt.Fprintf(w, "%s: %s\n", o.Case, o.Known)
		fmt.Fprintf(w, outcomeRow, "", "", "known", "measured", "off by", "limit", "")
		for _, l := range o.Lines {
			fmt.Fprintf(w, outcomeRow, l.What, l.Formula, amount(l.Known, l.Unit),
				amount(l.Measured, l.Unit), offBy(l), limit(l), state(l))
		}
		if o.Disturbed != "" {
			fmt.Fprintf(w, "  disturbed: %s\n", o.Disturbed)
		}
		fmt.Fprintln(w)
		tookNs += o.TookNs
	}
	states := count(outcomes)
	fmt.Fprintf(w, "%d of %d cases are ok, %d wrong, %d disturbed; the test took %s%s\n",
		states[selftest.OK], len(outcomes), states[selftest.Wrong], states[selftest.Disturbed],
		units.Duration(float64(tookNs)), idleText(outcomes))
}

// idleText says that idle cores polled, which is the same in all cases.
func idleText(outcomes []selftest.Outcome) string {
	if len(outcomes) > 0 && outcomes[0].Machine.Idle == record.IdlePolls {
		return "; idle cores polled"
	}
	return ""
}

// state returns the state of a line, with the range that the machine explains.
func state(l selftest.Line) string {
	text := l.State
	if l.KeptShare > 0 {
		text += fmt.Sprintf(", without %.1f %% of the requests, which were due near "+
			"stalls", 100*(1-l.KeptShare))
	}
	if l.State != selftest.OK && l.Lowest < l.Highest {
		text += fmt.Sprintf(", delays of the machine explain %s to %s", amount(l.Lowest, l.Unit),
			amount(l.Highest, l.Unit))
	}
	return text
}

// amount formats a value with its unit. It does not round counts, because each one matters.
func amount(v float64, of string) string {
	switch {
	case of == selftest.Ns:
		return units.Duration(v)
	case of == selftest.PerS:
		return fmt.Sprintf("%.1f/s", v)
	case v == math.Trunc(v):
		return units.Count(int64(v))
	}
	return fmt.Sprintf("%.2f", v)
}

func offBy(l selftest.Line) string {
	if l.Known == 0 {
		return amount(l.OffBy, l.Unit)
	}
	return fmt.Sprintf("%+.2f %%", 100*l.OffBy)
}

func limit(l selftest.Line) string {
	if l.Limit == 0 {
		return "none"
	}
	return fmt.Sprintf("±%.2g %%", 100*l.Limit)
}
