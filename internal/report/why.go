package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/record"
)

// cause is a violated rule with its effects.
type cause struct {
	rule, load, observed, hint string // load: of the example observed; empty: a whole trial
	trials                     map[string]bool
	targets                    []string
	number                     string // the number that it can have moved most: "half p99"
	share                      float64
	invalid                    bool
	under                      []*cause
}

// Why prints why numbers are doubted: each cause once for all trials, with its effects below it and
// the hint for the cause.
func Why(w io.Writer, records []*record.Record) error {
	p := &format.Page{}
	causes := causesOf(records)
	if len(causes) == 0 {
		p.Line("why: no finding can have changed a result")
		return p.To(w)
	}
	p.Line("Why results are in doubt (each cause with its effects below it):")
	for _, c := range causes {
		p.Line("")
		c.print(p, "")
		p.Line("%s", format.Wrap("  do: ", c.hint, format.Width, 6))
	}
	return p.To(w)
}

func (c *cause) print(p *format.Page, indent string) {
	example := "for example"
	if c.load != "" {
		example += " in " + c.load
	}
	text := fmt.Sprintf("in %s of %s, %s: %s", units.Plural(len(c.trials), "trial"),
		units.Plural(len(c.targets), "target"), example, c.observed)
	switch {
	case c.invalid:
		text += "; INVALID"
	case c.share > 0:
		text += fmt.Sprintf("; %s may be off by up to %s", c.number, units.AtMost(c.share))
	}
	p.Line("%s", format.Wrap(indent+c.rule+": ", text, format.Width, len(indent)+2))
	for _, u := range c.under {
		u.print(p, indent+"  ")
	}
}

// causesOf collects findings that count, each below its cause, over all trials; the most frequent
// first.
func causesOf(records []*record.Record) []*cause {
	root := &cause{}
	for _, r := range records {
		for _, f := range r.Verdict.Findings {
			if f.Grade == record.Valid {
				continue
			}
			entry := root
			for _, link := range verdict.Chain(r.Verdict, f) {
				entry = entry.below(link)
				entry.meet(r, link)
			}
		}
	}
	root.sort()
	return root.under
}

func (c *cause) below(f record.Finding) *cause {
	for _, u := range c.under {
		if u.rule == f.Rule {
			return u
		}
	}
	w := wording.Finding(f)
	u := &cause{rule: f.Rule, load: f.Load, observed: w.Observed, hint: w.Hint,
		trials: map[string]bool{}}
	c.under = append(c.under, u)
	return u
}

func (c *cause) meet(r *record.Record, f record.Finding) {
	c.trials[r.Trial] = true
	c.targets = table.AddNew(c.targets, table.RowName(r.Target))
	c.invalid = c.invalid || f.Grade == record.Invalid
	for _, m := range f.PossibleBias {
		if m.Share > c.share {
			c.share, c.number = m.Share, strings.TrimSpace(f.Load+" "+m.Metric)
		}
	}
}

func (c *cause) sort() {
	slices.SortStableFunc(c.under, func(a, b *cause) int {
		return cmp.Or(cmp.Compare(len(b.trials), len(a.trials)), cmp.Compare(b.share, a.share))
	})
	for _, u := range c.under {
		u.sort()
	}
}
