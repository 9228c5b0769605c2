package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/units"
	"prony.example/record"
)

const (
	clockWrong = 100 * time.Millisecond // invalid above, as for a thread that stands still
	wallOff    = 100 * time.Millisecond // told above
	namesMax   = 3                      // generators that a finding names
)

// ownRules are about the health of whoever offers a load: what one of several generators is judged
// by alone. What the others say is of the service, which all of them ask.
var ownRules = []string{"stood still", "delivered", "generator", "run delay", "lag", "batch"}

// Alone judges one of several generators by its part of the load. Of what is found, that which is
// not VALID is told.
func Alone(l *record.Load) []record.Finding {
	v := record.Verdict{Grade: record.Valid}
	rules := slices.DeleteFunc(slices.Concat(boundRules, loadRules, latencyRules),
		func(r Rule) bool { return !slices.Contains(ownRules, r.Name) })
	of := loadOf(l)
	apply(&v, &record.Record{Outcome: record.Measured}, of, rules...)
	weigh(&v, of)
	return slices.DeleteFunc(v.Findings, func(f record.Finding) bool {
		return f.Grade == record.Valid
	})
}

// called is a generator in words.
func called(g *record.Generator) string {
	return fmt.Sprintf("generator %d (%s)", g.Index, g.Name)
}

// generators wants each of several to have done its part, and to have been well.
func generators(_ *record.Record, l *load) *record.Finding {
	var lost, ill []string
	grade, hint := record.Valid, ""
	for i := range l.Generators {
		g := &l.Generators[i]
		if g.Fault != "" {
			lost = append(lost, called(g)+" "+g.Fault)
			continue
		}
		for _, f := range g.Findings {
			grade, hint = worse(grade, f.Grade), f.Hint
			ill = append(ill, fmt.Sprintf("%s: %s: %s", called(g), f.Rule, f.Observed))
		}
	}
	limit := fmt.Sprintf("%d that do their part", len(l.Generators))
	switch {
	case len(lost) > 0:
		return invalid(some(lost), limit,
			"a part of the schedule was not offered as it was to be: see that generator's log")
	case len(ill) > 0:
		f := suspect(some(ill), limit, hint)
		f.Grade = grade
		return f
	}
	return nil
}

// some are the first of several texts.
func some(texts []string) string { return strings.Join(units.First(texts, namesMax), "; ") }

// clocks bounds by how much parts of one schedule can have been shifted against each other. Each
// response time is one clock's, so that only the pattern of arrivals is moved: by as much as the
// rule on gaps permits, nothing.
func clocks(_ *record.Record, l *load) *record.Finding {
	worst, apart := -1, time.Duration(0)
	for i := range l.Generators {
		c := &l.Generators[i].Clock
		off := time.Duration(max(c.ErrorNs, max(c.DriftNs, -c.DriftNs)+c.DriftErrorNs))
		if worst < 0 || off > apart {
			worst, apart = i, off
		}
	}
	if worst < 0 {
		return nil
	}
	limit := gapFloor
	if l.Model == record.Open && l.RatePerS > 0 {
		limit = max(limit, time.Duration(gapShare*1e9/l.RatePerS)).Round(time.Microsecond)
	}
	g := &l.Generators[worst]
	observed := fmt.Sprintf("%s: its clock is up to %v off, and drifted by %v", called(g),
		apart.Round(time.Microsecond), time.Duration(g.Clock.DriftNs).Round(time.Microsecond))
	hint := "its part of the schedule came at other moments than it was due: let one service of " +
		"time set both machines' clocks, and use a quieter network"
	switch {
	case apart > clockWrong:
		return invalid(observed, clockWrong.String(), hint)
	case apart > limit && l.Model == record.Open:
		return suspect(observed, limit.String(), hint)
	}
	for i := range l.Generators {
		off := time.Duration(l.Generators[i].Clock.WallNs)
		if off.Abs() > wallOff {
			return cause(fmt.Sprintf("%s: its wall clock is %v off", called(&l.Generators[i]),
				off.Round(time.Millisecond)), wallOff.String(),
				"no number is moved, but what is logged there is dated by it")
		}
	}
	return nil
}
