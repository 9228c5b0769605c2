package table

import (
	"fmt"
	"math"

	"prony/internal/metric"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/unit"
)

// partsTable tells what each process of the targets that are systems used under the load that
// ranks, a row a process; without systems it has no rows. Shares are of what all of them used, so
// that a glance shows where the time goes.
func (sc *Scenario) partsTable(o Options) Table {
	column := columnOf("parts")
	load := sc.anchor()
	t := Table{Kind: PartsKind, Title: "Where it goes: each process of a system", Columns: []Column{
		column("target", "target", "", print.Left), column("process", "process", "", print.Left),
		column("share", "of its CPU", unit.One, print.Right),
		column("cpu", "CPU", unit.One, print.Right),
		column("request", "CPU µs/req", unit.Ns, print.Right),
		column("rss", "RSS", unit.Octet, print.Right),
		column("threads", "threads", unit.One, print.Right),
		column("ready", "ready", unit.Ns, print.Right),
	}}
	for _, target := range sc.Targets {
		trials := target.offers(load)
		if len(trials) == 0 {
			continue
		}
		for _, p := range trials[0].load.Service.Parts {
			t.Rows = append(t.Rows, partRow(target.Name, p.Name, trials, o.Confidence))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = []string{fmt.Sprintf("Medians of the trials, at %s. CPU: 100 %% is one "+
			"processor. Ready: from the exec of that process.", load)}
	}
	return t
}

// partRow is one process of one target.
func partRow(target, name string, trials []offer, confidence float64) Row {
	cell := func(print func(float64) string, of func(offer, result.Part) float64) Cell {
		return medianOf(trials, func(o offer) float64 { return of(o, partOf(o.load, name)) },
			print, confidence)
	}
	return Row{Name: target, Cells: []Cell{
		words(target), words(name),
		cell(unit.Processors, func(o offer, p result.Part) float64 {
			all := 0.0
			for _, other := range o.load.Service.Parts {
				all += metric.Known(float64(other.CPUNs))
			}
			return metric.Known(float64(p.CPUNs)) / all
		}),
		cell(unit.Processors, func(o offer, p result.Part) float64 {
			return metric.Known(float64(p.CPUNs)) / float64(o.load.Service.WindowNs)
		}),
		cell(micros(1), func(o offer, p result.Part) float64 {
			u := o.load.Service
			return metric.Known(float64(p.CPUNs)) * u.CPUPerRequestNs / float64(u.CPUNs)
		}),
		cell(unit.Bytes, func(_ offer, p result.Part) float64 {
			return metric.Positive(float64(p.RSSBytes))
		}),
		cell(unit.Whole, func(_ offer, p result.Part) float64 {
			return metric.Positive(float64(p.Threads))
		}),
		cell(unit.Duration, func(o offer, _ result.Part) float64 {
			for _, s := range o.record.Processes {
				if s.Name == name {
					return metric.Positive(float64(s.ReadyNs))
				}
			}
			return math.NaN()
		}),
	}}
}

// medianOf is a cell with the centre of what the trials say; where none does it is absent.
func medianOf[T any](trials []T, of func(T) float64, print func(float64) string,
	confidence float64,
) Cell {
	var xs []float64
	for _, t := range trials {
		if x := of(t); unit.Known(x) {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 {
		return words(unit.Absent)
	}
	s := stats.Summarize(xs, confidence)
	return Cell{Text: print(s.Center), Value: s.Center, Lo: s.Lo, Hi: s.Hi, N: s.N}
}

func partOf(l *result.Load, name string) result.Part {
	for _, p := range l.Service.Parts {
		if p.Name == name {
			return p
		}
	}
	return result.Part{}
}
