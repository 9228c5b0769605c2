package summary

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"prony/internal/result"
	"prony/internal/unit"
)

// generatorsShown is how many of those who offered a load together are listed; JSON has all.
const generatorsShown = 8

// wallTold is how much a wall clock is off before it is told.
const wallTold = 10 * time.Millisecond

// generators are who offered the load, those with a fault first.
func (p *page) generators(l *result.Load) {
	all := slices.Clone(l.Generators)
	if len(all) == 0 {
		return
	}
	within := int64(0)
	for i := range all {
		c := &all[i].Clock
		within = max(within, c.ErrorNs, max(c.DriftNs, -c.DriftNs)+c.DriftErrorNs)
	}
	p.row("generators", "%d, their clocks known within %s", len(all),
		unit.Duration(float64(within)))
	slices.SortStableFunc(all, func(a, b result.Generator) int {
		return cmp.Compare(ailing(&b), ailing(&a))
	})
	for i := range all[:min(len(all), generatorsShown)] {
		g := &all[i]
		text := fmt.Sprintf("%d  %s: %s sent", g.Index, g.Name, unit.Count(g.Sent))
		if g.Fault != "" {
			text += ", " + g.Fault
		} else {
			text += fmt.Sprintf(", lag up to %s, %s of CPU", unit.Duration(float64(g.LagMaxNs)),
				unit.Percent(g.CPUShare))
		}
		// Monotonic clocks begin anywhere; where they are is of nobody's interest.
		if off := time.Duration(g.Clock.WallNs); off.Abs() > wallTold {
			text += ", wall clock " + off.Round(time.Millisecond).String() + " off"
		}
		p.row("", "%s", text)
	}
	if n := len(all) - generatorsShown; n > 0 {
		p.row("", "and %d more; --json has all", n)
	}
}

// ailing is how much is wrong.
func ailing(g *result.Generator) int {
	switch {
	case g.Fault != "":
		return 2
	case len(g.Findings) > 0:
		return 1
	}
	return 0
}
