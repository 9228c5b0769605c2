package table

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prony/internal/metric"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/unit"
)

// overheadTable tells what riding along costs: for each target that ran with variants, each
// variant under each load, as the change against the bare target, paired within blocks. Without
// variants it has no rows.
func (sc *Scenario) overheadTable(o Options) Table {
	column := columnOf("overhead")
	t := Table{Kind: OverheadKind, Title: "What riding along costs", Columns: []Column{
		column("target", "target", "", print.Left), column("variant", "variant", "", print.Left),
		column("load", "load", "", print.Left),
	}}
	for _, d := range overheads {
		t.Columns = append(t.Columns, column(d.metric, d.heading, unit.One, print.Right))
	}
	for _, bare := range sc.Targets {
		riders := sc.ridersOf(bare)
		if len(riders) == 0 {
			continue
		}
		for _, l := range sc.Loads {
			t.Rows = append(t.Rows, overheadRow(bare, bare, l, o))
			for _, r := range riders {
				t.Rows = append(t.Rows, overheadRow(bare, r, l, o))
			}
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = sc.overheadNotes(o)
	}
	return t
}

// ridersOf are the rows whose ratios refer to a bare one, in the order of their names.
func (sc *Scenario) ridersOf(bare *Target) (out []*Target) {
	for _, t := range sc.Targets {
		if t.Reference == bare.Name && t.Info.Name == bare.Info.Name && t.Info.Variant != "none" &&
			t.Info.Arm == "" && t.Info.Variant != "" {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *Target) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// overheads are the columns: a change in per cent, or the value itself where none or little of it
// is the rule and a ratio would say nothing.
var overheads = []struct {
	metric, heading string
	model           string // of loads that have it; empty: all
	whole           bool   // of the trial, not of a load
	absolute        func(float64) string
	print           func(float64) string // of the bare target
}{
	{metric.Throughput, "req/s", result.Closed, false, nil, unit.Rate},
	{"p50", "p50", result.Open, false, nil, unit.Duration},
	{"p90", "p90", result.Open, false, nil, unit.Duration},
	{"p99", "p99", result.Open, false, nil, unit.Duration},
	{metric.CPU, "CPU/req", "", false, nil, unit.Duration},
	{metric.Allocated, "alloc/req", "", false, nil, unit.Bytes},
	{metric.HeapAfterGC, "heap after GC", "", false, nil, unit.Bytes},
	{metric.GCPaused, "GC paused", "", false, unit.Percent, unit.Percent},
	{metric.RSS, "RSS", "", false, nil, unit.Bytes},
	{metric.Ready, "ready", "", true, nil, unit.Duration},
	{metric.SpansEach, "spans/req", "", false, figures, figures},
}

// overheadRow is a variant, or the bare target itself, under one load.
func overheadRow(bare, of *Target, l LoadInfo, o Options) Row {
	variant := cmp.Or(of.Info.Variant, "none")
	row := Row{Name: of.Name, Cells: []Cell{words(bare.Name), words(variant), words(l.Title)}}
	for _, d := range overheads {
		if d.model != "" && d.model != l.Model {
			row.Cells = append(row.Cells, words(unit.Absent))
			continue
		}
		load := l.Name
		if d.whole {
			load = ""
		}
		m, ok := of.Metric(load, d.metric)
		switch {
		case !ok || m.Withheld != "" || m.Summary.N == 0:
			row.Cells = append(row.Cells, words(unit.Absent))
		case of == bare:
			row.Cells = append(row.Cells, summaryCell(m, d.print))
		case d.absolute != nil:
			row.Cells = append(row.Cells, summaryCell(m, d.absolute))
		case m.Ratio == nil:
			row.Cells = append(row.Cells, words(unit.Absent))
		default:
			row.Cells = append(row.Cells, changeCell(m))
		}
	}
	return row
}

func summaryCell(m Metric, print func(float64) string) Cell {
	s := m.Summary
	return Cell{Text: print(s.Center), Value: s.Center, Lo: s.Lo, Hi: s.Hi, N: s.N}
}

// changeCell prints a ratio as a change in per cent with its interval.
func changeCell(m Metric) Cell {
	r := m.Ratio
	c := Cell{Text: change(r.Center), Value: r.Center - 1, Lo: r.Lo - 1, Hi: r.Hi - 1, N: r.N}
	switch {
	case !r.HasInterval():
		c.Text += " (one block)"
	case Wide(r.Lo, r.Hi):
		c.Text = tooFewBlocks
	default:
		c.Interval = fmt.Sprintf("%s to %s", change(r.Lo), change(r.Hi))
		c.Text += fmt.Sprintf(" [%s, %s]", points(r.Lo), points(r.Hi))
	}
	return c
}

// change prints a ratio as what it is above or below 1: +12 %, −3.1 %.
func change(ratio float64) string { return points(ratio) + " %" }

func points(ratio float64) string {
	p := (ratio - 1) * 100
	decimals := 1
	if math.Abs(p) >= 9.95 {
		decimals = 0
	}
	text := fmt.Sprintf("%+.*f", decimals, p)
	if text == "-0.0" {
		text = "+0.0" // rounded from below
	}
	return strings.Replace(text, "-", "−", 1)
}

// overheadNotes say how to read the table, and what its loads cannot say.
func (sc *Scenario) overheadNotes(o Options) []string {
	notes := []string{fmt.Sprintf("Changes against the same target bare, paired within blocks, "+
		"with their %g %% interval; the bare target's own values stand above them. An interval "+
		"that holds 0 shows no difference; unknown is one that spans more than a factor of %d, "+
		"and more blocks would narrow it.", math.Round(o.Confidence*1000)/10, tooWide)}
	for _, l := range sc.Loads {
		for _, t := range sc.Targets {
			if load := loadOfAny(t, l.Name); load != nil && load.Think != "" {
				notes = append(notes, fmt.Sprintf("%s is a closed load whose users think: its "+
					"throughput follows from its response times alone (users / (response + think "+
					"time)) and says nothing of capacity; and both arms are not offered the same "+
					"requests, for the slower one is asked less often.", l.Name))
				break
			}
			if l.Model == result.Closed {
				notes = append(notes, fmt.Sprintf("%s is closed: its req/s is the capacity with "+
					"so many connections; response times of it wait for the service.", l.Name))
				break
			}
		}
	}
	return notes
}

func loadOfAny(t *Target, name string) *result.Load {
	for _, r := range t.Used {
		if l := loadOf(r, name); l != nil {
			return l
		}
	}
	return nil
}

func figures(x float64) string { return unit.Digits(x, 3) }
