package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
)

// Compare prints a comparison as one HTML file, with the same bundle and policy as HTML. All its
// figures are markup, so it reads and prints without scripts.
func Compare(w io.Writer, c compare.Comparison, o HTMLOptions) error {
	v := compareOf(c, o)
	empty := pageData{Targets: []string{}, Scenarios: []pageScenario{}}
	return write(w, "page_compare.gohtml", empty, &v.frame, &v)
}

// compareView is a comparison with the page's texts and figures.
type compareView struct {
	frame
	compare.Comparison
	Title     string
	Says      string
	First     []string // the most serious warnings
	Further   []string // the remaining warnings
	Gate      *compare.Gate
	Pairs     []pairView
	Method    []string
	Reproduce []string
	Prony     string
}

type pairView struct {
	Number  int
	Repeat  string // the unit of small dots: "block" or "start"
	Center  string // the kind of both sides' values; empty: single figures
	Heading string
	Sides   []sideView
	Forest  *strip
	Table   []compareRow
	Levels  []strip
	Notes   []string
}

type sideView struct {
	Letter string
	Facts  []fact
}

type compareRow struct{ Name, A, B, Change, Interval, P, Word, Outcome string }

// shownWarnings is the number of warnings above the first figure.
const shownWarnings = 3

func compareOf(c compare.Comparison, o HTMLOptions) compareView {
	v := compareView{Comparison: c, Title: cmp.Or(o.Title, c.Title), Says: compareSays(c),
		Gate: o.Gate, Method: methodLines(c)}
	v.Tab, v.Description = v.Title, v.Says
	v.First = c.Warnings[:min(len(c.Warnings), shownWarnings)]
	v.Further = c.Warnings[len(v.First):]
	for _, r := range c.Reproduce {
		if r != "" {
			v.Reproduce = table.AddNew(v.Reproduce, r)
		}
	}
	for i, p := range c.Pairs {
		v.Prony = p.B.Prony
		v.Pairs = append(v.Pairs, pairOf(c, p, i+1, o.Gate))
	}
	return v
}

// compareSays summarizes the outcome: which metrics changed, and how many did not.
func compareSays(c compare.Comparison) string {
	var changed []string
	alike := 0
	for _, p := range c.Pairs {
		for _, r := range p.Rows {
			switch r.Outcome {
			case compare.Better, compare.Worse:
				text := fmt.Sprintf("%s %s (%s)", r.Name(), units.Change(1+r.Change()),
					r.OutcomeText())
				if len(c.Pairs) > 1 {
					text = p.B.Target + ": " + text
				}
				changed = append(changed, text)
			case compare.Indistinguishable, compare.Equal:
				alike++
			}
		}
	}
	const said = 6
	changed = units.First(changed, said)
	if c.Published && c.Tests == 0 {
		return "No metric has a verdict, because these are single runs."
	}
	if len(changed)+alike == 0 {
		return "No metric could be compared."
	}
	if len(changed) == 0 {
		return fmt.Sprintf("B compared with A: no significant difference in %s.",
			units.Plural(alike, "metric"))
	}
	text := "B against A: " + strings.Join(changed, "; ") + "."
	if alike > 0 {
		text += " No significant difference in " + units.Plural(alike, "other metric") + "."
	}
	return text
}

func pairOf(c compare.Comparison, p compare.Pair, number int, g *compare.Gate) pairView {
	v := pairView{Number: number, Repeat: c.Repeat(),
		Heading: strings.TrimPrefix(p.Scenario+": "+p.Targets(), ": "),
		Sides:   []sideView{{"A", sideFacts(p.A)}, {"B", sideFacts(p.B)}},
		Forest:  forest(c, p, g)}
	if !c.Published || c.Tests > 0 {
		v.Center = "geometric mean"
	}
	for _, r := range p.Rows {
		v.Table = append(v.Table, compareRowOf(r))
		if s, ok := levels(r, c.Repeat()); ok {
			v.Levels = append(v.Levels, s)
		}
	}
	v.Notes = p.Notes()
	return v
}

func sideFacts(x compare.Subject) []fact {
	v := factsView{}
	v.add("target", x.Target)
	v.add("run", strings.TrimSpace(x.Run+" "+x.Time))
	if x.ConfigHash == "" { // published
		v.add("measured by", x.Tool)
		return v.Facts
	}
	v.add("suite", x.Suite)
	v.add("commit", x.Commit)
	v.add("artifact", x.Artifact)
	v.add("machine", x.Machine)
	v.add("prony", x.Prony)
	v.add(x.Repeat()+"s", fmt.Sprint(x.Blocks))
	n := x.Counts
	trials := fmt.Sprintf("%d without findings, %d with findings, %d INVALID, %d failed",
		n.Valid, n.Suspect, n.Invalid, n.Failed)
	if n.Stopped > 0 {
		trials += fmt.Sprintf(", %d stopped", n.Stopped)
	}
	v.add("trials", trials)
	v.add("method", x.ConfigHash)
	v.add("left out", strings.Join(x.Excluded, "; "))
	return v.Facts
}

// forest draws every ratio with its interval and, if trials are paired, the ratio of each block.
func forest(c compare.Comparison, p compare.Pair, g *compare.Gate) *strip {
	all := []float64{}
	blocks := 0
	for _, r := range p.Rows {
		if !drawable(r) {
			continue
		}
		all = append(all, r.Ratio.Center, r.Ratio.Lo, r.Ratio.Hi)
		for _, b := range r.Blocks {
			all, blocks = append(all, b.Ratio), max(blocks, b.Block)
		}
		if most, ok := marginOf(g, p, r); ok {
			all = append(all, 1-most, 1+most)
		}
	}
	all = slices.DeleteFunc(all, math.IsNaN)
	if len(all) == 0 {
		return nil
	}
	r := span(all, true)
	s := &strip{Caption: "Ratios of B to A with their intervals", Name: "metric",
		Axis: "B divided by A, logarithmic axis; 1 means no difference", Value: "change, interval",
		Ticks: r.marks(ratioText), Mark: r.place(1), Class: "forest", Blocks: blocks,
		Says: pairSays(c, p)}
	var group stripGroup
	for _, row := range p.Rows {
		if drawable(row) {
			group.Rows = append(group.Rows, forestRow(row, r, blocks, c.Repeat(), g, p))
		}
	}
	s.Groups = []stripGroup{group}
	s.thin()
	return s
}

func drawable(r compare.Row) bool {
	return r.Ratio != nil && !math.IsNaN(r.Ratio.Center)
}

func forestRow(row compare.Row, r ruler, blocks int, repeat string, g *compare.Gate,
	p compare.Pair) stripRow {
	out := ratioRow(row.Name(), *row.Ratio, r)
	out.Class, out.Note = row.Outcome, row.Better+" is better"
	out.Text = units.Change(row.Ratio.Center)
	if row.Ratio.HasInterval() {
		out.Range = compare.Interval(*row.Ratio)
	}
	for _, b := range row.Blocks {
		if r.beyond(b.Ratio) != "" {
			continue // at the edge it would show a wrong value
		}
		out.Dots = append(out.Dots, stripDot{X: r.place(b.Ratio), Y: blockPlace(b.Block, blocks),
			Title: fmt.Sprintf("%s %d: %s", repeat, b.Block, units.Change(b.Ratio))})
	}
	if most, ok := marginOf(g, p, row); ok {
		lo, hi := 1-most, 1.0
		if row.Better == compare.Lower {
			lo, hi = 1, 1+most
		}
		from, width := r.between(lo, hi)
		out.Shade = &shade{From: from, Width: width}
		out.Note += ", the gate allows " + units.Percent(most)
	}
	return out
}

// marginOf returns the margin by which a gate allows a row to get worse.
func marginOf(g *compare.Gate, p compare.Pair, r compare.Row) (float64, bool) {
	if g == nil {
		return 0, false
	}
	for _, k := range g.Checks {
		same := k.Pair != nil && k.Pair.Scenario == p.Scenario && k.Pair.B.Target == p.B.Target &&
			k.Pair.A.Target == p.A.Target
		if same && k.Row != nil && k.Row.Load == r.Load && k.Row.Metric == r.Metric {
			return k.Most, true
		}
	}
	return 0, false
}

// pairSays returns "" for the only pair, because the head of the page has the same text.
func pairSays(c compare.Comparison, p compare.Pair) string {
	if len(c.Pairs) < 2 {
		return ""
	}
	comparison := c
	comparison.Pairs = []compare.Pair{p}
	return compareSays(comparison)
}

// levels draws the trials of both sides of a row, on one axis.
func levels(row compare.Row, repeat string) (strip, bool) {
	all := []float64{}
	blocks := 0
	for _, v := range []compare.Value{row.A, row.B} {
		if v.Withheld != nil {
			return strip{}, false
		}
		all = append(all, v.Summary.Center, v.Summary.Lo, v.Summary.Hi)
		for _, p := range v.Points {
			all, blocks = append(all, p.Value), max(blocks, p.Block)
		}
	}
	all = slices.DeleteFunc(all, math.IsNaN)
	if len(all) == 0 || slices.Max(all) <= 0 {
		return strip{}, false
	}
	r, axis := near(all), row.Label
	if r.lo > 0 {
		axis += ", axis does not begin at zero"
	}
	s := strip{Caption: row.Name(), Name: "side", Axis: axis, Blocks: blocks,
		Value: "median, interval", Ticks: r.marksIn(row.Unit)}
	side := func(name string, v compare.Value) stripRow {
		return metricRow(name, table.Metric{Unit: row.Unit, Points: v.Points,
			Summary: v.Summary}, r, blocks, repeat)
	}
	s.Groups = []stripGroup{{Rows: []stripRow{side("A", row.A), side("B", row.B)}}}
	s.thin()
	return s, true
}

// near returns a ruler that does not start at zero: two sides of one target are too close together
// for that, and no length is drawn that a reader could compare.
func near(all []float64) ruler {
	lo, hi := slices.Min(all), slices.Max(all)
	room := max(hi-lo, 0.02*hi) * 0.1
	return ruler{max(lo-room, 0), hi + room, false}
}

func compareRowOf(r compare.Row) compareRow {
	out := compareRow{Name: r.Name(), A: compare.Level(r.A, r.Unit),
		B: compare.Level(r.B, r.Unit), Change: units.Absent, P: units.P(r.PHolm),
		Word: r.OutcomeText(), Outcome: r.Outcome}
	if r.Ratio != nil || r.Outcome != compare.Silent {
		out.Change = units.Change(1 + r.Change())
	}
	if r.HasRatio() {
		out.Interval = compare.Interval(*r.Ratio)
	}
	return out
}

// methodLines explains the numbers.
func methodLines(c compare.Comparison) []string {
	if c.Published && c.Tests == 0 {
		return []string{"B to A is the ratio of two single values. Its noise is unknown."}
	}
	out := []string{c.How() + " Statistics count trials, not requests."}
	if c.Control != "" {
		out = append(out, "Ratios are divided by those of the control "+c.Control+
			", so that changes of the machine cancel.")
	}
	if c.Tests > 1 {
		out = append(out, fmt.Sprintf("p is corrected for %d metrics (Holm).", c.Tests))
	}
	out = append(append(out, c.Sees()), c.Stalled()...)
	if c.ConfigHash != "" {
		out = append(out, "Both sides have the same configuration, "+c.ConfigHash+".")
	}
	return out
}
