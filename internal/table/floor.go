package table

import (
	"cmp"
	"fmt"

	"prony/internal/metric"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/unit"
)

// Floor is what a target against itself (A/A) says of the noise in one metric: whatever differs
// between the two arms differs by chance, and so much may differ by chance between any two targets.
type Floor struct {
	Target, Load, Metric, Unit string
	Ratio                      stats.Ratio // arm b over arm a, paired within blocks
	// Detects is the smallest relative difference that as many blocks tell from none in four of
	// five runs, at this confidence; NaN when it is not known.
	Detects float64
}

// Noise of a pair grows with its distance in time; A/A arms lie as far apart as any two targets of
// the same shuffled block, so that theirs is that of any pair.

// floors measures the noise of what a table is read for: the ranking metric, response times of open
// loads, cost.
func (sc *Scenario) floors(o Options) []Floor {
	var out []Floor
	for _, t := range sc.Targets {
		if t.Info.Arm != "b" || t.Reference == "" {
			continue
		}
		for _, m := range t.Metrics {
			if m.Ratio == nil || !sc.headline(m) {
				continue
			}
			out = append(out, Floor{
				Target: t.Info.Name, Load: m.Load, Metric: m.Name, Unit: m.Unit, Ratio: *m.Ratio,
				Detects: m.Ratio.Detects(1-o.Confidence, planPower),
			})
		}
	}
	return out
}

func (sc *Scenario) headline(m Metric) bool {
	if m.Load == sc.Ranking.Load && (m.Name == sc.Ranking.Metric || m.Name == metric.CPU) {
		return true
	}
	return m.Model == result.Open && (m.Name == "p50" || m.Name == "p99")
}

// floorTable prints the floors, a row each.
func (sc *Scenario) floorTable(o Options) Table {
	effect := unit.Percent(o.Effect)
	column := columnOf("floor")
	t := Table{Kind: FloorKind, Title: "Noise floor: each target against itself", Columns: []Column{
		column("target", "target", "", print.Left), column("metric", "metric", "", print.Left),
		column("ratio", "b over a", unit.One, print.Right),
		column("blocks", "blocks", unit.One, print.Right),
		column("sd", "SD of a pair", unit.One, print.Right),
		column("detects", "resolves", unit.One, print.Right),
		column("needed", "blocks for "+effect, unit.One, print.Right),
	}}
	number := func(text string, x float64) Cell {
		c := words(text)
		c.Value = x
		return c
	}
	var notes noteBook
	for _, f := range sc.Floors {
		r := f.Ratio
		needed := r.Resolves(o.Effect, 1-o.Confidence, planPower)
		ratio := Cell{Text: unit.Absent, Value: r.Center, Lo: r.Lo, Hi: r.Hi, N: r.N}
		switch {
		case !r.HasInterval():
			ratio.Refs = notes.refs(noInterval(r.N, r.Warning))
		case Wide(r.Lo, r.Hi):
			ratio.Text, ratio.Refs = tooFewBlocks, notes.refs(unknownNote)
		default:
			ratio.Text = fmt.Sprintf("%.3f [%.3f, %.3f]", r.Center, r.Lo, r.Hi)
		}
		detects := number(Resolution(f.Detects), f.Detects)
		if detects.Text == tooFewBlocks {
			detects.Refs = notes.refs(unresolvedNote)
		}
		if r.HasInterval() && (r.Lo > 1 || r.Hi < 1) {
			alarm := fmt.Sprintf("a false alarm: the interval leaves out 1 though nothing "+
				"differs; so does one in %.0f by design, more of them would mean a broken method",
				1/(1-o.Confidence))
			ratio.Refs = append(ratio.Refs, notes.refs(alarm)...)
		}
		row := Row{Name: f.Target, Cells: []Cell{
			words(f.Target), words(metricWords(f)), ratio, number(fmt.Sprint(r.N), float64(r.N)),
			number(unit.Percent(r.SDLog), r.SDLog), detects,
			number(neededText(needed), float64(needed)),
		}}
		t.Rows = append(t.Rows, row)
	}
	t.Footnotes = notes
	t.Notes = []string{fmt.Sprintf("Resolves: the smallest difference between two targets that so "+
		"many blocks find in %.0f %% of runs, at %s confidence, on this machine as it was.",
		100*planPower, unit.Percent(o.Confidence))}
	return t
}

func metricWords(f Floor) string {
	return f.Load + " " + cmp.Or(metric.Named(f.Metric, f.Unit).Short, f.Metric)
}

var unresolvedNote = fmt.Sprintf(notKnown+": differences below a factor of %d are not told "+
	"from none (raise --blocks)", tooWide)

func neededText(n int) string {
	if n > planBlocks {
		return fmt.Sprintf("over %d", planBlocks)
	}
	return fmt.Sprint(n)
}
