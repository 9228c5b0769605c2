package verdict

import (
	"slices"
	"time"

	"prony.example/record"
)

const (
	clockWrong = 100 * time.Millisecond // invalid above, as for a thread that stands still
	wallOff    = 100 * time.Millisecond // named above
)

// ownRules judge the health of one generator out of several. The other rules are about the service,
// which all generators load.
var ownRules = []string{"stalled", "delivered", "generator", "run delay", "lag", "batch"}

// Alone judges one of several generators by its part of the load and returns the findings that are
// not VALID.
func Alone(l *record.Load) []record.Finding {
	v := record.Verdict{Grade: record.Valid}
	rules := slices.DeleteFunc(slices.Concat(boundRules, loadRules, latencyRules),
		func(r Rule) bool { return !slices.Contains(ownRules, r.Name) })
	item := loadOf(l)
	apply(&v, &record.Record{Outcome: record.Measured}, item, rules...)
	weigh(&v, item)
	return slices.DeleteFunc(v.Findings, func(f record.Finding) bool {
		return f.Grade == record.Valid
	})
}

// generators checks that each of several generators sent its part of the load and that none has a
// finding of its own.
func generators(_ *record.Record, l *load) *record.Finding {
	var lost, ill []record.PartFinding
	grade := record.Valid
	for i := range l.Generators {
		g := &l.Generators[i]
		if g.Fault != "" {
			lost = append(lost, record.PartFinding{Generator: g.Index, Name: g.Name,
				Fault: g.Fault})
			continue
		}
		for _, f := range g.Findings {
			grade = worse(grade, f.Grade)
			ill = append(ill, record.PartFinding{Generator: g.Index, Name: g.Name, Rule: f.Rule,
				Case: f.Case, Value: f.Value, Limit: f.Limit, Unit: f.Unit, Side: f.Side,
				Count: f.Facts.Count, Total: f.Facts.Total, MaxNs: f.Facts.MaxNs})
		}
	}
	total := int64(len(l.Generators))
	switch {
	case len(lost) > 0:
		return invalid(in("lost", with(record.Facts{Total: total, Parts: lost}, record.Finding{})))
	case len(ill) > 0:
		return graded(grade, in("ill", with(record.Facts{Total: total, Parts: ill},
			record.Finding{})))
	}
	return nil
}

// clocks bounds the shift of the generators' schedules against each other. Each response time comes
// from one clock, so only the pattern of arrivals moves: within the limits of the rule arrivals
// this has no effect.
func clocks(_ *record.Record, l *load) *record.Finding {
	worst, gap := -1, time.Duration(0)
	for i := range l.Generators {
		c := &l.Generators[i].Clock
		deviation := time.Duration(max(c.ErrorNs, max(c.DriftNs, -c.DriftNs)+c.DriftErrorNs))
		if worst < 0 || deviation > gap {
			worst, gap = i, deviation
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
	facts := record.Facts{Generator: g.Index, Name: g.Name, DriftNs: g.Clock.DriftNs}
	switch {
	case gap > clockWrong:
		return invalid(with(facts, nanoseconds(gap, clockWrong)))
	case gap > limit && l.Model == record.Open:
		return suspect(with(facts, nanoseconds(gap, limit)))
	}
	for i := range l.Generators {
		deviation := time.Duration(l.Generators[i].Clock.WallNs)
		if deviation.Abs() > wallOff {
			facts := record.Facts{Generator: l.Generators[i].Index, Name: l.Generators[i].Name,
				DriftNs: int64(deviation)}
			return cause(in("wall", with(facts, nanoseconds(deviation.Abs(), wallOff))))
		}
	}
	return nil
}
