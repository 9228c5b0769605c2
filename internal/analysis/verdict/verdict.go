// Package verdict judges measurements: it does not judge whether the service did well, but whether
// the numbers mean what they seem to mean. Each rule is a small pure function over a record, with
// its source named; a violated rule makes a finding, and the worst finding is the verdict.
package verdict

import (
	"slices"
	"time"

	"prony.example/record"
)

// Rule describes one condition that a measurement must meet.
type Rule struct {
	Name   string
	Meets  string // the condition, in words
	Bound  string // by how much numbers can be off otherwise; "" if that is unknown
	Else   string // the grade of a record that does not meet it
	Source string // publication or report that shows that it matters
	check  func(*record.Record, *load) *record.Finding
}

// keepSmall names the rules whose findings are kept as causes even if their effect is too small to
// count.
var keepSmall = []string{"warm-up", "generator", "ceiling", "errors", "censored", "slice answers"}

// Judge applies all rules to a record. A bounded finding counts if all bounds on a number together
// exceed its uncertainty (see weigh); other findings always count.
func Judge(r *record.Record) record.Verdict {
	v := record.Verdict{Grade: record.Valid, Resolution: r.Verdict.Resolution}
	apply(&v, r, nil, ended)
	if len(v.Findings) > 0 {
		v.Grade = record.Invalid
		return v
	}
	apply(&v, r, nil, trialRules...)
	for i := range r.Loads {
		l := loadOf(&r.Loads[i])
		apply(&v, r, l, boundRules...)
		apply(&v, r, l, loadRules...)
		if Withheld(v, l.Name) == nil {
			apply(&v, r, l, latencyRules...)
		}
		apply(&v, r, l, sliceRules...)
		weigh(&v, l)
		weighSlices(&v, l)
	}
	for _, f := range v.Findings {
		v.Grade = worse(v.Grade, f.Grade)
	}
	return v
}

// apply adds the findings of rules on a record, or on one of its loads.
func apply(v *record.Verdict, r *record.Record, l *load, rules ...Rule) {
	for _, rule := range rules {
		f := worthTelling(rule.check(r, l), slices.Contains(keepSmall, rule.Name), v.Resolves())
		if f == nil {
			continue
		}
		f.Rule = rule.Name
		if l != nil {
			f.Load = l.Name
			f.Phase = phaseOf(l, f)
		}
		v.Findings = append(v.Findings, *f)
	}
}

// phaseOf returns the phase of a load that a finding is about: the window, unless its rule sets
// slices. It is both if the service cheats, or if the generator is the limit and nothing shows that
// it is not in slices.
func phaseOf(l *load, f *record.Finding) string {
	limit := f.Rule == "generator" || f.Rule == "ceiling"
	switch {
	case l.Slices == nil, f.Phase != "", f.Rule == "backend calls",
		limit && !generatorCounted(l.Slices):
		return f.Phase
	}
	return record.PhaseWindow
}

// Withheld returns the finding because of which a load's latency must not be printed, or nil. For
// example, above capacity response times only depend on the length of the test; the finding has the
// growth of the backlog, which is printed instead.
func Withheld(v record.Verdict, load string) *record.Finding {
	for i := range v.Findings {
		f := &v.Findings[i]
		bound := f.Rule == ended.Name || slices.ContainsFunc(boundRules, func(r Rule) bool {
			return r.Name == f.Rule
		})
		if bound && f.Grade == record.Invalid && (f.Load == load || f.Load == "") {
			return f
		}
	}
	return nil
}

func worse(a, b string) string {
	order := map[string]int{record.Valid: 0, record.Suspect: 1, record.Invalid: 2}
	if order[b] > order[a] {
		return b
	}
	return a
}

func suspect(f record.Finding) *record.Finding { return graded(record.Suspect, f) }

func invalid(f record.Finding) *record.Finding { return graded(record.Invalid, f) }

func graded(grade string, f record.Finding) *record.Finding {
	f.Grade = grade
	return &f
}

// share returns a finding of a share that exceeds its limit.
func share(value, limit float64) record.Finding {
	return record.Finding{Value: value, Limit: limit, Unit: record.UnitShare, Side: record.Above}
}

// nanoseconds returns a finding of a time that exceeds its limit.
func nanoseconds[T int64 | time.Duration](value, limit T) record.Finding {
	return record.Finding{Value: float64(value), Limit: float64(limit), Unit: record.UnitNs,
		Side: record.Above}
}

// in sets the case of a finding, the way in which its rule is violated.
func in(way string, f record.Finding) record.Finding {
	f.Case = way
	return f
}

// with sets the facts of a finding.
func with(facts record.Facts, f record.Finding) record.Finding {
	f.Facts = facts
	return f
}

// follows lists for a rule which other rules' findings may be its cause, the likeliest first. A
// finding without another as its cause has the hint that helps.
var follows = map[string][]string{
	"run delay":       {"cores", "neighbors", "steal"},
	"generator":       {"cores"},
	"ceiling":         {"generator", "run delay"},
	"slice generator": {"cores"},
	"timer":           {"quiet"},
	"neighbors":       {"quiet"},
	"lag":             {"cores", "generator", "run delay", "neighbors", "steal", "timer"},
	"waited": {"capacity", "throttled", "lag", "steal", "neighbors", "idle targets",
		"memory"},
	"rate":      {"lag", "waited"},
	"arrivals":  {"lag"},
	"bursts":    {"lag"},
	"batch":     {"generator", "lag"},
	"delivered": {"capacity", "waited", "lag"},
	"capacity":  {"errors", "throttled"},
	"censored":  {"capacity", "waited"},
	"little":    {"capacity", "censored"},
	"drift":     {"warm-up", "throttled", "steal", "neighbors", "idle targets"},
	"settled":   {"warm-up", "throttled", "steal", "neighbors", "idle targets"},
	"samples":   {"steal", "warm-up"},
}

// Chain returns a finding preceded by its causes in the same verdict, the first cause first. A
// finding on the whole trial may be the cause of one on any of its loads.
func Chain(v record.Verdict, f record.Finding) []record.Finding {
	chain := []record.Finding{f}
	for {
		last := chain[0]
		before := slices.IndexFunc(follows[last.Rule], func(rule string) bool {
			return find(v, rule, last.Load, chain) != nil
		})
		if before < 0 {
			return chain
		}
		chain = slices.Insert(chain, 0, *find(v, follows[last.Rule][before], last.Load, chain))
	}
}

// find returns a rule's finding on a load or on the whole trial, or nil if there is none or the
// chain already has it.
func find(v record.Verdict, rule, load string, chain []record.Finding) *record.Finding {
	for i := range v.Findings {
		f := &v.Findings[i]
		if f.Rule == rule && (f.Load == load || f.Load == "") &&
			!slices.ContainsFunc(chain, func(c record.Finding) bool { return c.Rule == rule }) {
			return f
		}
	}
	return nil
}
