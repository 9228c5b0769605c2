package table

import (
	"fmt"
	"math"
	"slices"

	"prony/internal/metric"
	"prony/internal/print"
	"prony/internal/result"
	"prony/internal/unit"
)

// toldTable tells what targets sent about themselves, and what became of it: equal services under
// equal loads should say equally much. Without telemetry it has no rows.
func (sc *Scenario) toldTable(o Options) Table {
	column := columnOf("told")
	t := Table{Kind: ToldKind, Title: "What was sent about it", Columns: []Column{
		column("target", "target", "", print.Left), column("spans", "spans", unit.One, print.Right),
		column("points", "metric points", unit.One, print.Right),
		column("logs", "logs", unit.One, print.Right),
		column("bytes", "bytes", unit.Octet, print.Right),
		column("each", "bytes/req", unit.Octet, print.Right),
		column("refused", "refused", unit.One, print.Right),
		column("dropped", "not kept", unit.One, print.Right),
		column("lost", "lost by the sender", unit.One, print.Right),
		column("home", "home's CPU", unit.One, print.Right),
	}}
	sent := false
	for _, target := range sc.Targets {
		if trials := telling(target.Used...); len(trials) > 0 {
			t.Rows = append(t.Rows, toldRow(target.Name, trials, o.Confidence))
			sent = sent || slices.ContainsFunc(trials, func(r *result.Record) bool {
				return total(r, "", received) > 0
			})
		}
	}
	if !sent {
		t.Rows = nil
	}
	partial := sc.partial()
	for _, r := range sc.Observed {
		trials := telling(r)
		if r.Failure != nil {
			trials = nil
			partial = append(partial, fmt.Sprintf("%s failed in step %s: %s.", r.Trial,
				r.Failure.Step, r.Failure.Error))
		}
		if r.Failure != nil || len(trials) > 0 {
			name := RowName(r.Target) + ", observed"
			t.Rows = append(t.Rows, toldRow(name, trials, o.Confidence))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = []string{"Medians of whole trials, from start to stop, warm-up included. Bytes " +
			"are of OTLP before compression, per request that a load or the warm-up has counted. " +
			"Not kept: counted, and left out of what can be looked at later. Home's CPU: 100 % " +
			"is one processor, none of the service's."}
		t.Notes = append(t.Notes, partial...)
	}
	return t
}

// partial says which trials' telemetry is not whole, and why, each reason once.
func (sc *Scenario) partial() (notes []string) {
	add := func(r *result.Record) {
		if r.Telemetry == nil || r.Telemetry.Partial == "" {
			return
		}
		note := fmt.Sprintf("Not whole: %s (%s).", r.Trial, r.Telemetry.Partial)
		if len(notes) < partialMax {
			notes = append(notes, note)
		}
	}
	for _, t := range sc.Targets {
		for _, r := range t.Trials {
			add(r)
		}
	}
	for _, r := range sc.Observed {
		add(r)
	}
	return notes
}

// partialMax bounds the notes about telemetry that is not whole.
const partialMax = 5

// telling are the trials about which the home answered.
func telling(trials ...*result.Record) []*result.Record {
	return slices.DeleteFunc(slices.Clone(trials), func(r *result.Record) bool {
		return r.Telemetry == nil || len(r.Telemetry.Signals) == 0
	})
}

// toldRow is what these trials say; without any it is absent.
func toldRow(name string, trials []*result.Record, confidence float64) Row {
	cell := func(print func(float64) string, of func(*result.Record) float64) Cell {
		return medianOf(trials, of, print, confidence)
	}
	signal := func(name string, of func(result.Signal) int64) func(*result.Record) float64 {
		return func(r *result.Record) float64 { return float64(total(r, name, of)) }
	}
	bytes := signal("", func(s result.Signal) int64 { return s.Bytes })
	return Row{Name: name, Cells: []Cell{words(name),
		cell(unit.Whole, signal(result.Spans, received)),
		cell(unit.Whole, signal(result.Points, received)),
		cell(unit.Whole, signal(result.Logs, received)),
		cell(unit.Bytes, bytes),
		cell(unit.Bytes, func(r *result.Record) float64 { return bytes(r) / asked(r) }),
		cell(unit.Whole, signal("", func(s result.Signal) int64 { return s.Refused })),
		cell(unit.Whole, signal("", func(s result.Signal) int64 { return s.Dropped })),
		cell(unit.Whole, lostSpans),
		cell(unit.Processors, func(r *result.Record) float64 { return r.Telemetry.Home.CPUShare }),
	}}
}

func received(s result.Signal) int64 { return s.Received }

// total adds up a count over the signals, or takes that of one.
func total(r *result.Record, name string, of func(result.Signal) int64) (n int64) {
	for _, s := range r.Telemetry.Signals {
		if name == "" || s.Name == name {
			n += of(s)
		}
	}
	return n
}

// asked are the requests of a trial that were counted.
func asked(r *result.Record) float64 {
	n := r.Warmup.Requests
	for i := range r.Loads {
		n += r.Loads[i].Done + r.Loads[i].Errors.Total()
	}
	return metric.Positive(float64(n))
}

// lostSpans are those that senders say they dropped; NaN where none of them says.
func lostSpans(r *result.Record) float64 {
	sum := math.NaN()
	for _, v := range r.Telemetry.Voices {
		if v.LostSpans >= 0 {
			if math.IsNaN(sum) {
				sum = 0
			}
			sum += float64(v.LostSpans)
		}
	}
	return sum
}
