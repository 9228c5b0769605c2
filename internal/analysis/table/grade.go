package table

import (
	"cmp"
	"slices"

	"prony.example/record"
	"prony.example/record/metric"
)

// Doubt is what can have moved a metric by more than it is uncertain by itself.
type Doubt struct {
	Share float64  `json:"share,omitempty"` // at most, as a share of it; 0: the effect is unknown
	Rules []string `json:"rules"`           // what did, the most first
}

// Grade is VALID, SUSPECT or UnknownGrade, or empty where there is no number. A number whose
// interval is Wide is not known, whatever moved it; one without an interval is never VALID.
func (m *Metric) Grade() string {
	s := m.Summary
	switch {
	case !m.Known():
		return ""
	case s.HasInterval() && Wide(s.Lo, s.Hi):
		return UnknownGrade
	case m.Doubt != nil:
		return record.Suspect
	case !s.HasInterval() && !m.constant():
		return UnknownGrade
	}
	return record.Valid
}

// constant tells whether several trials found the same number, such as a warm-up of 0 s, of which
// no log-normal interval can be made. As a positive constant's, its interval is the number itself.
func (m *Metric) constant() bool {
	return len(m.Points) > 1 && !slices.ContainsFunc(m.Points, func(p Point) bool {
		return p.Value != m.Points[0].Value
	})
}

// doubt weighs what the findings of a metric's trials say against its interval, or the resolution
// that was asked for where that is more. What a finding bounds is shared by all trials, so that the
// mean of the bounds is the bound of their middle; what nobody can bound counts where it is.
func (t *Target) doubt(m *Metric) {
	m.Doubt = nil
	if !m.Known() || len(m.Points) == 0 {
		return
	}
	limit := 0.0
	name, stallFree := m.Name, m.StallFree
	if name == metric.ThroughputWithoutStalls {
		name, stallFree = metric.Throughput, true
	}
	byName := map[string]float64{}
	var rules, unbounded []string
	for _, p := range m.Points {
		r := t.trial(p)
		if r == nil {
			continue
		}
		limit = max(limit, r.Verdict.Resolves())
		for _, f := range t.bearing(r, m.Load) {
			for _, move := range f.PossibleBias {
				if move.Metric == name {
					rules = append(rules, f.Rule)
					byName[f.Rule] += move.Bound(stallFree) / float64(len(m.Points))
				}
			}
			if len(f.PossibleBias) == 0 && findingGrade(r, f) == record.Suspect && !m.before(f) {
				unbounded = append(unbounded, f.Rule)
			}
		}
		if l := loadOf(r, m.Load); l != nil && m.StallFree {
			if x := m.stallFreeOf(l.StallFree); x != nil && x.TooHigh() > 0 {
				rules = append(rules, shortStalls)
				byName[shortStalls] += x.TooHigh() / float64(len(m.Points))
			}
		}
	}
	if s := m.Summary; s.HasInterval() && s.Center != 0 {
		limit = max(limit, halfWidth(s.Center, s.Lo, s.Hi))
	}
	m.Doubt = weighed(rules, byName, unbounded, limit)
}

// shortStalls stands among the rules of a doubt for stalls that were too short to be recorded.
const shortStalls = "short stalls"

// stallFreeOf returns the entry of a percentile; nil if it is unknown, or the metric is none.
func (m *Metric) stallFreeOf(all []record.StallFree) *record.StallFree {
	return record.StallFreeOf(all, metric.Named(m.Name, m.Unit).Quantile)
}

// weighed is the doubt that bounds by rule make of a number, which may be moved by limit at most,
// with rules whose findings nobody can bound; nil where there is none.
func weighed(rules []string, byName map[string]float64, unbounded []string, limit float64) *Doubt {
	rules = AddNew(nil, rules...)
	slices.SortStableFunc(rules, func(a, b string) int { return cmp.Compare(byName[b], byName[a]) })
	sum := 0.0
	for _, rule := range rules {
		sum += byName[rule]
	}
	d := Doubt{Rules: AddNew(nil, unbounded...)}
	for remaining, i := sum, 0; remaining > limit && i < len(rules); i++ {
		d.Share, d.Rules = sum, AddNew(d.Rules, rules[i])
		remaining -= byName[rules[i]]
	}
	if len(d.Rules) > 0 {
		return &d
	}
	return nil
}

// warmUp is the rule on services that were not steady before the first window.
const warmUp = "warm-up"

// before tells whether a number was known before what a finding is about: a start has ended, and an
// artifact was built, before the service was warmed up.
func (m *Metric) before(f record.Finding) bool {
	warmed := []string{metric.SteadyAt, metric.TimeToPeak, metric.WarmupCost}
	return f.Rule == warmUp && m.Load == "" && !slices.Contains(warmed, m.Name)
}

// bearing is what bears on a load of a record; on what is of the whole trial, the trial's own.
func (t *Target) bearing(r *record.Record, load string) []record.Finding {
	if load != "" {
		return slices.DeleteFunc(FindingsOn(r, load), func(f record.Finding) bool {
			return f.Phase == record.PhaseSlices
		})
	}
	return slices.DeleteFunc(slices.Clone(r.Verdict.Findings), func(f record.Finding) bool {
		return !ofWhole(r, f)
	})
}

// Numbers counts those that a table shows, by their grade.
type Numbers struct {
	Valid   int `json:"valid"`
	Suspect int `json:"suspect"`
	Unknown int `json:"unknown"` // their interval is not known
}

// All is how many there are.
func (n Numbers) All() int { return n.Valid + n.Suspect + n.Unknown }

// CountNumbers counts those that the comparisons among these tables show.
func CountNumbers(tables []Table) (n Numbers) {
	for _, tab := range tables {
		if tab.Kind == "" {
			n.count(tab.Rows)
		}
	}
	return n
}

func (n *Numbers) count(rows []Row) {
	for _, row := range rows {
		for _, c := range row.Cells {
			switch {
			case c.Grade == record.Valid:
				n.Valid++
			case c.Grade == record.Suspect:
				n.Suspect++
			case c.Grade == UnknownGrade:
				n.Unknown++
			}
		}
	}
}

// doubts says of a row's numbers, load by load, how far they may be off: "half may be off: p99 by
// up to 40 % (lag), mean by up to 12 % (lag)".
func (r *Row) doubts(columns []Column) (out []Note) {
	load, offs := "", Offs{}
	reply := func() {
		if len(offs) > 0 {
			out = append(out, Note{Kind: NoteMayBeOff, Load: load, Args: []any{LoadOf(load), offs}})
		}
	}
	for i, c := range r.Cells {
		if c.deviation == nil {
			continue
		}
		deviation := *c.deviation
		deviation.Key = columns[i].Key
		if c.load != load {
			reply()
			load, offs = c.load, nil
		}
		offs = append(offs, deviation)
	}
	reply()
	return out
}
