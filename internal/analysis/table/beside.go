package table

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// overheadTable returns the cost of variants: for each target that ran with variants, each variant
// under each load, as the change against the target without them, paired within blocks. Without
// variants it has no rows.
func (sc *Scenario) overheadTable(o Options) Table {
	column := columnOf("overhead")
	t := Table{Kind: OverheadKind, Columns: []Column{
		column("target", "", "", RoleName), column("variant", "variant", "", RoleWord),
		column("load", "load", "", RoleWord),
	}}
	for _, d := range overheads {
		t.Columns = append(t.Columns, column(d.metric, d.heading, units.One, RoleNumber))
	}
	for _, baseline := range sc.Targets {
		riders := sc.ridersOf(baseline)
		if len(riders) == 0 {
			continue
		}
		for _, l := range sc.Loads {
			for _, target := range append([]*Target{baseline}, riders...) {
				t.Rows = append(t.Rows, overheadRow(baseline, target, l))
			}
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = sc.overheadNotes(o)
	}
	return t
}

// ridersOf returns the rows with variants whose ratios refer to baseline, sorted by name.
func (sc *Scenario) ridersOf(baseline *Target) []*Target {
	out := slices.DeleteFunc(slices.Clone(sc.Targets), func(t *Target) bool {
		return t.Reference != baseline.Name || t.Info.Name != baseline.Info.Name ||
			t.Info.Variant == "none" || t.Info.Variant == "" || t.Info.Arm != ""
	})
	slices.SortFunc(out, func(a, b *Target) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// overheads are the columns: a change in percent, or the value itself if it is usually zero or
// small and a ratio would mean nothing.
var overheads = []struct {
	metric, heading string
	model           string // of loads that have it; empty: all
	complete        bool   // of the trial, not of a load
	absolute        func(float64) string
	print           func(float64) string // of the bare target
}{
	{metric.Throughput, "req/s", record.Closed, false, nil, units.Rate},
	{"p50", "p50", record.Open, false, nil, units.Duration},
	{"p90", "p90", record.Open, false, nil, units.Duration},
	{"p99", "p99", record.Open, false, nil, units.Duration},
	{metric.CPU, "CPU/req", "", false, nil, units.Duration},
	{metric.Allocated, "alloc/req", "", false, nil, units.Bytes},
	{metric.HeapAfterGC, "heap after GC", "", false, nil, units.Bytes},
	{metric.GCPaused, "GC paused", "", false, units.Percent, units.Percent},
	{metric.RSS, "RSS", "", false, nil, units.Bytes},
	{metric.Ready, "ready", "", true, nil, units.Duration},
	{metric.SpansEach, "spans/req", "", false, figures, figures},
}

// overheadRow returns a variant, or the target without one, under one load.
func overheadRow(baseline, target *Target, l LoadInfo) Row {
	variant := cmp.Or(target.Info.Variant, "none")
	row := Row{
		Name:  target.Name,
		Cells: []Cell{named(baseline.Name), named(variant), named(l.Title)},
	}
	for _, d := range overheads {
		load := l.Name
		if d.complete {
			load = ""
		}
		c := noValue(Absent)
		m, ok := target.Metric(load, d.metric)
		switch {
		case d.model != "" && d.model != l.Model, !ok,
			m.Source != FromSlices && (!m.Known() || m.Summary.N == 0):
		case target == baseline:
			c = levelCell(m.Summary, d.print)
		case d.absolute != nil:
			c = levelCell(m.Summary, d.absolute)
		case m.Ratio != nil:
			c = changeCell(m)
		}
		row.Cells = append(row.Cells, c)
	}
	return row
}

// levelCell returns a cell with a summary's center; its interval is not printed.
func levelCell(s stats.Summary, print func(float64) string) Cell {
	return Cell{State: Known, Value: s.Center, N: s.N, form: plainForm(print),
		Interval: intervalOf(s.HasInterval(), Wide(s.Lo, s.Hi), s.Lo, s.Hi)}
}

// changeCell returns a cell with a ratio as a change with its interval.
func changeCell(m Metric) Cell {
	r := m.Ratio
	c := Cell{State: Known, Value: r.Center - 1, N: r.N, form: changeForm,
		Interval: RatioInterval(*r)}
	c.Interval.Lo, c.Interval.Hi = r.Lo-1, r.Hi-1
	if c.Interval.State == Unknown {
		c.State = Unknown
	}
	return c
}

// change formats a share in percent with its sign: +12 %, −3.1 %.
func change(amount float64) string { return points(amount) + " %" }

func points(amount float64) string {
	p := amount * 100
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

// overheadNotes explains the table and what its loads cannot show.
func (sc *Scenario) overheadNotes(o Options) []Note {
	notes := []Note{NoteOf(NoteChanges, sc.Starts.Repeat(), Confidence(o.Confidence))}
	for _, l := range sc.Loads {
		for _, t := range sc.Targets {
			if load := loadOfAny(t, l.Name); load != nil && load.Think != "" {
				notes = append(notes, NoteOf(NoteUsersThink, l.Name))
				break
			}
			if l.Model == record.Closed {
				notes = append(notes, NoteOf(NoteLoadIsClosed, l.Name))
				break
			}
		}
	}
	return notes
}

func loadOfAny(t *Target, name string) *record.Load {
	for _, r := range t.Used {
		if l := loadOf(r, name); l != nil {
			return l
		}
	}
	return nil
}

func figures(x float64) string { return units.Digits(x, 3) }

// toldTable returns the telemetry that targets sent and what became of it: equal services under
// equal loads should send equal amounts. Without telemetry it has no rows.
func (sc *Scenario) toldTable(o Options) Table {
	column := columnOf("told")
	t := Table{Kind: ToldKind, Columns: []Column{
		column("target", "", "", RoleName), column("spans", "spans", units.One, RoleNumber),
		column("points", "metric points", units.One, RoleNumber),
		column("logs", "logs", units.One, RoleNumber),
		column("bytes", "bytes", units.Octet, RoleNumber),
		column("each", "bytes/req", units.Octet, RoleNumber),
		column("refused", "refused", units.One, RoleNumber),
		column("dropped", "not kept", units.One, RoleNumber),
		column("lost", "lost by the sender", units.One, RoleNumber),
		column("home", "home's CPU", units.One, RoleNumber),
	}}
	sent := false
	for _, target := range sc.Targets {
		if trials := telling(target.Used...); slices.ContainsFunc(target.Used, heard) {
			t.Rows = append(t.Rows, toldRow(target.Name, trials, o.Confidence))
			sent = sent || slices.ContainsFunc(trials, func(r *record.Record) bool {
				return total(r, "", received) > 0
			})
		}
	}
	partial := sc.partial()
	if !sent && len(partial) == 0 {
		t.Rows = nil
	}
	for _, r := range sc.Observed {
		trials := telling(r)
		if r.Failure != nil {
			trials = nil
			partial = append(partial, NoteOf(NoteStepFailed, r.Trial, r.Failure.Step,
				r.Failure.Error))
		}
		if r.Failure != nil || heard(r) {
			name := RowName(r.Target) + ", observed"
			t.Rows = append(t.Rows, toldRow(name, trials, o.Confidence))
		}
	}
	if len(t.Rows) > 0 {
		t.Notes = append([]Note{NoteOf(NoteTelemetry)}, partial...)
	}
	return t
}

// partial names the trials with incomplete telemetry and the reasons, each reason once.
func (sc *Scenario) partial() (notes []Note) {
	var all []*record.Record
	for _, t := range sc.Targets {
		all = append(all, t.Trials...)
	}
	for _, r := range append(all, sc.Observed...) {
		if telemetry := r.Telemetry; telemetry != nil && telemetry.Partial != "" &&
			len(notes) < partialMax {
			notes = append(notes, NoteOf(NoteNotWhole, r.Trial, telemetry.Partial))
		}
	}
	return notes
}

// partialMax bounds the notes about incomplete telemetry.
const partialMax = 5

// heard reports whether the collector reported on a trial, or should have done so.
func heard(r *record.Record) bool {
	return r.Telemetry != nil && (len(r.Telemetry.Signals) > 0 || r.Telemetry.Partial != "")
}

// telling returns the trials for which the collector reported signals.
func telling(trials ...*record.Record) []*record.Record {
	return those(trials, func(r *record.Record) bool {
		return r.Telemetry != nil && len(r.Telemetry.Signals) > 0
	})
}

// toldRow returns the medians of these trials; its cells are absent if no trial has a value.
func toldRow(name string, trials []*record.Record, confidence float64) Row {
	cell := func(print func(float64) string, value func(*record.Record) float64) Cell {
		return medianOf(trials, value, print, confidence)
	}
	signal := func(name string, value func(record.Signal) int64) func(*record.Record) float64 {
		return func(r *record.Record) float64 { return float64(total(r, name, value)) }
	}
	bytes := signal("", func(s record.Signal) int64 { return s.Bytes })
	return Row{Name: name, Cells: []Cell{named(name),
		cell(units.Whole, signal(record.Spans, received)),
		cell(units.Whole, signal(record.Points, received)),
		cell(units.Whole, signal(record.Logs, received)),
		cell(units.Bytes, bytes),
		cell(units.Bytes, func(r *record.Record) float64 { return bytes(r) / metric.Requests(r) }),
		cell(units.Whole, signal("", func(s record.Signal) int64 { return s.Refused })),
		cell(units.Whole, signal("", func(s record.Signal) int64 { return s.Dropped })),
		cell(units.Whole, lostSpans),
		cell(units.Processors,
			func(r *record.Record) float64 { return r.Telemetry.Collector.CPUShare }),
	}}
}

func received(s record.Signal) int64 { return s.Received }

// total adds up a count over all signals, or returns that of one signal if name is set.
func total(r *record.Record, name string, value func(record.Signal) int64) (n int64) {
	for _, s := range r.Telemetry.Signals {
		if name == "" || s.Name == name {
			n += value(s)
		}
	}
	return n
}

// lostSpans returns the spans that senders report as dropped; NaN if no sender reports them.
func lostSpans(r *record.Record) float64 {
	sum := math.NaN()
	for _, v := range r.Telemetry.Sources {
		if v.LostSpans >= 0 {
			if math.IsNaN(sum) {
				sum = 0
			}
			sum += float64(v.LostSpans)
		}
	}
	return sum
}

// partsTable returns what each process of systems used under the load that ranks, a row per
// process; without systems it has no rows. Shares refer to all processes of a system together.
func (sc *Scenario) partsTable(o Options) Table {
	column := columnOf("parts")
	load := sc.anchor().Name
	t := Table{Kind: PartsKind, Columns: []Column{
		column("target", "", "", RoleName), column("process", "process", "", RoleWord),
		column("share", "of its CPU", units.One, RoleNumber),
		column("cpu", "CPU", units.One, RoleNumber),
		column("request", "CPU µs/req", units.Ns, RoleNumber),
		column("rss", "RSS", units.Octet, RoleNumber),
		column("threads", "threads", units.One, RoleNumber),
		column("ready", "ready", units.Ns, RoleNumber),
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
		t.Notes = []Note{NoteOf(NoteProcesses, load)}
	}
	return t
}

// partRow returns the row of one process of one target.
func partRow(target, name string, trials []offer, confidence float64) Row {
	cell := func(print func(float64) string, value func(offer, record.Part) float64) Cell {
		return medianOf(trials, func(o offer) float64 { return value(o, partOf(o.load, name)) },
			print, confidence)
	}
	return Row{Name: target, Cells: []Cell{
		named(target), named(name),
		cell(units.Processors, func(o offer, p record.Part) float64 {
			all := 0.0
			for _, candidate := range o.load.Service.Parts {
				all += metric.Known(float64(candidate.CPUNs))
			}
			return metric.Known(float64(p.CPUNs)) / all
		}),
		cell(units.Processors, func(o offer, p record.Part) float64 {
			return metric.Known(float64(p.CPUNs)) / float64(o.load.Service.WindowNs)
		}),
		cell(micros(1), func(o offer, p record.Part) float64 {
			u := o.load.Service
			return metric.Known(float64(p.CPUNs)) * u.CPUPerRequestNs / float64(u.CPUNs)
		}),
		cell(units.Bytes, func(_ offer, p record.Part) float64 {
			return metric.Positive(float64(p.RSSBytes))
		}),
		cell(units.Whole, func(_ offer, p record.Part) float64 {
			return metric.Positive(float64(p.Threads))
		}),
		cell(units.Duration, func(o offer, _ record.Part) float64 {
			for _, s := range o.record.Processes {
				if s.Name == name {
					return metric.Positive(float64(s.ReadyNs))
				}
			}
			return math.NaN()
		}),
	}}
}

// medianOf returns a cell with the center of the trials' values; the cell is absent if no trial has
// a value.
func medianOf[T any](trials []T, value func(T) float64, print func(float64) string,
	confidence float64,
) Cell {
	var xs []float64
	for _, t := range trials {
		if x := value(t); units.Known(x) {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 {
		return noValue(Absent)
	}
	return levelCell(stats.Summarize(xs, confidence), print)
}

func partOf(l *record.Load, name string) record.Part {
	for _, p := range l.Service.Parts {
		if p.Name == name {
			return p
		}
	}
	return record.Part{}
}
