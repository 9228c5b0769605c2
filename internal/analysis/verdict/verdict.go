// Package verdict judges a measurement: not whether the service did well, but whether the numbers
// say what they seem to say. Each rule is a small pure function over a record, with its source
// named; what does not hold becomes a finding, and the worst finding is the verdict.
package verdict

import (
	"slices"
	"time"

	"prony.example/record"
)

// Rule is one condition that a measurement must meet.
type Rule struct {
	Name   string
	Meets  string // the condition, in words
	Bound  string // by how much numbers can be off otherwise; "" if that is unknown
	Else   string // what a record becomes that does not meet it
	Source string // who found that it matters
	check  func(*record.Record, *load) *record.Finding
}

// keepSmall are the rules whose findings are kept, as causes, where they can only have moved too
// little.
var keepSmall = []string{"warm-up", "generator", "ceiling", "errors", "censored", "slice answers"}

// Judge applies all rules to a record. What a rule can bound counts where all bounds of a number
// together exceed its uncertainty (see weigh), the rest wherever it does not hold.
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

// apply adds what rules find of a record, or of a load of it.
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

// bothPhases are the rules on a load whose findings hold for its slices as for its window: the
// service cheats, or the generator is the limit, in both.
var bothPhases = []string{"backend calls", "generator", "ceiling"}

// phaseOf is the phase of a load that a finding is about. A rule looks at the window unless it says
// that it looks at slices.
func phaseOf(l *load, f *record.Finding) string {
	if l.Slices == nil || f.Phase != "" || slices.Contains(bothPhases, f.Rule) {
		return f.Phase
	}
	return record.PhaseWindow
}

// Withheld returns the finding for which a load has no latency that may be printed, or nil. Above
// capacity, to name the usual one, response times say how long the test was; the finding says how
// fast the backlog grew, which is what there is to print instead.
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

// share is a finding of a share, which is above its limit.
func share(value, limit float64) record.Finding {
	return record.Finding{Value: value, Limit: limit, Unit: record.UnitShare, Side: record.Above}
}

// nanoseconds is a finding of a time, which is above its limit.
func nanoseconds[T int64 | time.Duration](value, limit T) record.Finding {
	return record.Finding{Value: float64(value), Limit: float64(limit), Unit: record.UnitNs,
		Side: record.Above}
}

// in is a finding with the way in which its rule does not hold.
func in(way string, f record.Finding) record.Finding {
	f.Case = way
	return f
}

// with is a finding with its facts.
func with(facts record.Facts, f record.Finding) record.Finding {
	f.Facts = facts
	return f
}

// follows says which findings may be what another one comes from, the likeliest first. What no
// other brings about is a cause of its own, and its hint the advice that helps.
var follows = map[string][]string{
	"run delay": {"cores", "neighbors", "steal"},
	"generator": {"cores"},
	"ceiling":   {"generator", "run delay"},
	"timer":     {"quiet"},
	"neighbors": {"quiet"},
	"lag":       {"cores", "generator", "run delay", "neighbors", "steal", "timer"},
	"waited":    {"capacity", "throttled", "lag", "steal", "neighbors", "memory"},
	"rate":      {"lag", "waited"},
	"arrivals":  {"lag"},
	"bursts":    {"lag"},
	"batch":     {"generator", "lag"},
	"delivered": {"capacity", "waited", "lag"},
	"capacity":  {"errors", "throttled"},
	"censored":  {"capacity", "waited"},
	"little":    {"capacity", "censored"},
	"drift":     {"warm-up", "throttled", "steal", "neighbors"},
	"settled":   {"warm-up", "throttled", "steal", "neighbors"},
	"samples":   {"steal", "warm-up"},
}

// Chain is a finding with what it follows from in the same verdict, the cause first. One on the
// whole trial may be the cause of any of its loads.
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

// find looks for a rule's finding on a load or on the whole trial that a chain does not have yet.
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
