// Package metric is the one list of what a run is measured by: of each metric what it is called,
// how a record has it, what is better, whether it is shown unasked, the column that a suite may ask
// for, and its line in the documentation. Whoever adds one adds a row of All.
//
// Non-goals: it summarises nothing and lays no table out (package table does), and it has no part
// in what the home of telemetry is told second by second (package telemetry has a list of those).
package metric

import (
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Names of metrics that are more than a row of the list to somebody.
const (
	Throughput = "throughput"
	Achieved   = "achieved"
	CPU        = "cpu_per_request"
	RSS        = "rss_max"
	Ready      = "ready"
	SteadyAt   = "steady_at"
	TimeToPeak = "time_to_peak"
	WarmupCost = "warmup_cost"
	Capacity   = "capacity"

	Allocated   = "allocated_per_request"
	HeapAfterGC = "heap_after_gc"
	GCPaused    = "gc_paused"
	GCPauseMax  = "gc_pause_max"
	SpansEach   = "spans_per_request"
)

// Metric is what each trial has one value of.
type Metric struct {
	Name, Unit string
	Model      string // of loads that have it; empty: all

	// Load is its value in a load of a trial, Trial that of a whole trial, which it has instead;
	// NaN where it is not known. Missing says then what would give it.
	Load    func(*record.Load) float64
	Trial   func(*record.Record) float64
	Missing string
	// Slices is its value in the slices of a load, which ratios between targets of a start are made
	// of; NaN where it is not known. Nil: ratios are made of the window alone. Percentiles are read
	// from the histogram of open slices.
	Slices  func(*record.Sliced) float64
	Watched bool // of loads where the lab watched beside its samples
	// Quantile is the share of requests that are faster, for a percentile of the response time,
	// which is read from histograms instead; 0 for all else.
	Quantile float64

	Label  string // for people: "CPU per request"
	Short  string // the same, where there is little room; empty: the name
	Higher bool   // is better
	Better string // what it is called when it got better: "faster", "less"
	Worse  string

	Lab   bool // it tells of the lab and not of the service
	Asked bool // shown only where somebody asks: it says again what others say better
	Exact bool // one trial is enough, and equal values are no surprise
	// Peak: a bare name means closed loads. Those of others follow from the load: half of a peak
	// is served at half of that peak's rate.
	Peak bool

	Column *Column // that a suite may ask for
	Told   string  // what the home of telemetry has it as, of each load; empty: not at all
	Doc    string  // docs/formats/report-csv.md
}

// Column is one that a table has where a suite asks for it.
type Column struct {
	Name, Heading string
	Place         Place
	Rank          int                  // among those of its place, from 1
	Print         func(float64) string // nil: as the times beside it
}

// Value is that of a load in a record, or of the whole trial.
func (m Metric) Value(r *record.Record, l *record.Load) float64 {
	if m.Trial != nil {
		return m.Trial(r)
	}
	return m.Load(l)
}

// ofClosed is a value of closed slices. The rate of open ones is the same for all targets.
func ofClosed(value func(*record.Sliced) float64) func(*record.Sliced) float64 {
	return func(s *record.Sliced) float64 {
		if s.RatePerS > 0 {
			return math.NaN()
		}
		return value(s)
	}
}

// Place is where a column stands.
type Place int

// Places of columns.
const (
	OfLoad  Place = iota // with each load
	OfCost               // with what answering the ranking load cost
	OfTrial              // with the start, or with the artifact
)

// KeptUp is the share of an open load's arrivals that must be answered within the window. Below it
// the backlog grows, and a response time says how long the test was, not how fast the service is
// (Schroeder et al., "Open Versus Closed", NSDI 2006).
const KeptUp = 0.99

// Named is the metric of a name and a unit. One that the list does not know is called by its name;
// of its values, rates are better when higher and all else when lower.
func Named(name, base string) Metric {
	if i := slices.IndexFunc(All, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return All[i]
	}
	m := Metric{Name: name, Unit: base, Label: strings.ReplaceAll(name, "_", " "), Better: "less",
		Worse: "more"}
	switch base {
	case units.PerS:
		m.Higher, m.Better, m.Worse = true, "faster", "slower"
	case units.Ns:
		m.Better, m.Worse = "faster", "slower"
	}
	return m
}

// Percentiles are those that are metrics, the lowest first.
func Percentiles() []Metric {
	return slices.DeleteFunc(slices.Clone(All), func(m Metric) bool { return m.Quantile == 0 })
}

// Columns are the metrics that a suite may ask for, in the order of their places.
func Columns() []Metric {
	out := slices.DeleteFunc(slices.Clone(All), func(m Metric) bool { return m.Column == nil })
	slices.SortFunc(out, func(a, b Metric) int {
		return 100*int(a.Column.Place-b.Column.Place) + a.Column.Rank - b.Column.Rank
	})
	return out
}

// ColumnNames are what a suite calls them.
func ColumnNames() (out []string) {
	for _, m := range Columns() {
		out = append(out, m.Column.Name)
	}
	return out
}

// Known is x, or NaN when x is below zero, the record's other way to say "unknown".
func Known(x float64) float64 {
	if x < 0 {
		return math.NaN()
	}
	return x
}

// Positive is x, or NaN when x is zero (the record's way to say "unknown") or no number.
func Positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return math.NaN()
}
