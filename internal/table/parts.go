package table

import (
	"fmt"
	"math"

	"prony/internal/result"
	"prony/internal/stats"
)

// partsTable tells what each process of the targets that are systems used under the load that
// ranks, a row a process; without systems it has no rows. Shares are of what all of them used, so
// that a glance shows where the time goes.
func (sc *Scenario) partsTable(o Options, title string) Table {
	column := func(key, heading, unit string, align Align) Column {
		return Column{Key: "parts/" + key, Heading: heading, Unit: unit, Align: align}
	}
	load := sc.anchor()
	t := Table{Kind: PartsKind, Title: title, Columns: []Column{
		column("target", "target", "", Left), column("process", "process", "", Left),
		column("share", "of its CPU", unitOne, Right), column("cpu", "CPU", unitOne, Right),
		column("request", "CPU µs/req", unitNs, Right), column("rss", "RSS", unitBytes, Right),
		column("threads", "threads", unitOne, Right), column("ready", "ready", unitNs, Right),
	}}
	for i := range sc.Targets {
		target := &sc.Targets[i]
		for _, name := range target.parts(load) {
			t.Rows = append(t.Rows, target.partRow(load, name, o.Confidence))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = []string{fmt.Sprintf("Medians of the trials, at %s. CPU: 100 %% is one "+
			"processor. Ready: from the exec of that process.", load)}
	}
	return t
}

// parts are the names of a target's processes, in the order of their start.
func (t *Target) parts(load string) (names []string) {
	for _, r := range t.Used {
		if l := loadOf(r, load); l != nil && good(LoadGrade(r, load)) {
			for _, p := range l.Service.Parts {
				names = append(names, p.Name)
			}
			return names
		}
	}
	return nil
}

// partRow is one process of one target.
func (t *Target) partRow(load, name string, confidence float64) Row {
	cell := func(print func(float64) string, of func(*result.Record, *result.Load,
		result.Part) float64) Cell {
		var xs []float64
		for _, r := range t.Used {
			if l := loadOf(r, load); l != nil && good(LoadGrade(r, load)) {
				if x := of(r, l, partOf(l, name)); !math.IsNaN(x) {
					xs = append(xs, x)
				}
			}
		}
		if len(xs) == 0 {
			return Cell{Text: Absent, Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
		}
		s := stats.Summarize(xs, confidence)
		return Cell{Text: print(s.Center), Value: s.Center, Lo: s.Lo, Hi: s.Hi, N: s.N}
	}
	micros := func(ns float64) string { return fmt.Sprintf("%.1f", ns/1e3) }
	nan := math.NaN()
	words := func(text string) Cell { return Cell{Text: text, Value: nan, Lo: nan, Hi: nan} }
	return Row{Name: t.Name, Cells: []Cell{
		words(t.Name), words(name),
		cell(hundredths, func(_ *result.Record, l *result.Load, p result.Part) float64 {
			all := 0.0
			for _, other := range l.Service.Parts {
				all += known(other.CPUNs)
			}
			return known(p.CPUNs) / all
		}),
		cell(hundredths, func(_ *result.Record, l *result.Load, p result.Part) float64 {
			return known(p.CPUNs) / float64(l.Service.WindowNs)
		}),
		cell(micros, func(_ *result.Record, l *result.Load, p result.Part) float64 {
			return known(p.CPUNs) * l.Service.CPUPerRequestNs / float64(l.Service.CPUNs)
		}),
		cell(Bytes, func(_ *result.Record, _ *result.Load, p result.Part) float64 {
			return positive(float64(p.RSSBytes))
		}),
		cell(count, func(_ *result.Record, _ *result.Load, p result.Part) float64 {
			return positive(float64(p.Threads))
		}),
		cell(Duration, func(r *result.Record, _ *result.Load, _ result.Part) float64 {
			for _, s := range r.Processes {
				if s.Name == name {
					return positive(float64(s.ReadyNs))
				}
			}
			return math.NaN()
		}),
	}}
}

// known is a counter's difference, NaN where it could not be read.
func known(ns int64) float64 {
	if ns < 0 {
		return math.NaN()
	}
	return float64(ns)
}

func partOf(l *result.Load, name string) result.Part {
	for _, p := range l.Service.Parts {
		if p.Name == name {
			return p
		}
	}
	return result.Part{}
}
