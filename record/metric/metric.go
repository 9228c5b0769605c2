// Package metric lists the metrics of a run. Each row of All has the name, how to read the metric
// from a record, which direction is better, whether it is shown by default, its optional column,
// and its line in the documentation. Add a row to add a metric.
//
// Non-goals: statistics, layout of tables (see package table), and the live metrics for the
// collector (package telemetry has a list of those).
package metric

import (
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// Names of metrics that other code refers to.
const (
	Throughput = "throughput"
	// ThroughputWithoutStalls is that of a closed load, without the machine's stalls.
	ThroughputWithoutStalls = "throughput_without_stalls"

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

// Metric describes a quantity with one value per trial.
type Metric struct {
	Name, Unit string
	Model      string // model of loads that have it; empty: all

	// Load returns its value for a load of a trial. For metrics of whole trials, Trial is set
	// instead. NaN means unknown; Missing then says why.
	Load    func(*record.Load) float64
	Trial   func(*record.Record) float64
	Missing string
	// Slices returns its value for the slices of a load, from which ratios between targets of a
	// start are computed; NaN means unknown. Nil: ratios come only from the window. Percentiles are
	// read from the histogram of open slices.
	Slices  func(*record.Sliced) float64
	Watched bool // only for loads with additional instruments
	// Quantile is the share of faster requests, for a percentile of the response time, which is
	// read from histograms instead; 0 for other metrics.
	Quantile float64

	Label  string // for readers: "CPU per request"
	Short  string // short form of Label; empty: the name
	Higher bool   // higher is better
	Better string // word for an improvement: "faster", "less"
	Worse  string

	Lab   bool // it describes the generator, not the service
	Asked bool // shown only on request, because other metrics say it better
	Exact bool // one trial is enough, and equal values are normal
	// Peak: the name alone refers to closed loads. In other loads the value follows from the load:
	// half of a peak is served at half of that peak's rate.
	Peak bool

	Column *Column // optional column for suites; nil: none
	Told   string  // name of the metric for the collector, per load; empty: not sent
	Doc    string  // docs/formats/report-csv.md
}

// Column is an optional column that a suite can request.
type Column struct {
	Name, Heading string
	Place         Place
	Rank          int                  // order among columns of its place, from 1
	Print         func(float64) string // nil: as other times
}

// Value returns the metric's value for a load in a record, or for the whole trial.
func (m Metric) Value(r *record.Record, l *record.Load) float64 {
	if m.Trial != nil {
		return m.Trial(r)
	}
	return m.Load(l)
}

// ofClosed returns a value only for closed slices, because the rate of open ones is equal for all
// targets.
func ofClosed(value func(*record.Sliced) float64) func(*record.Sliced) float64 {
	return func(s *record.Sliced) float64 {
		if s.RatePerS > 0 {
			return math.NaN()
		}
		return value(s)
	}
}

// Place is the table of a column.
type Place int

// Places of columns.
const (
	OfLoad  Place = iota // with each load
	OfCost               // with resource use under the ranking load
	OfTrial              // with start times and artifacts
)

// KeptUp is the share of an open load's arrivals that must be answered within the window. Below it
// the backlog grows, and response times depend on the length of the test rather than the service
// (Schroeder et al., "Open Versus Closed", NSDI 2006).
const KeptUp = 0.99

// Named returns the metric with a name. For an unknown name it returns a metric with that name and
// unit; rates are better if higher, all others if lower.
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

// Percentiles returns the metrics that are percentiles, lowest first.
func Percentiles() []Metric {
	return slices.DeleteFunc(slices.Clone(All), func(m Metric) bool { return m.Quantile == 0 })
}

// Columns returns the metrics with a column, in table order.
func Columns() []Metric {
	out := slices.DeleteFunc(slices.Clone(All), func(m Metric) bool { return m.Column == nil })
	slices.SortFunc(out, func(a, b Metric) int {
		return 100*int(a.Column.Place-b.Column.Place) + a.Column.Rank - b.Column.Rank
	})
	return out
}

// ColumnNames returns the names by which suites request columns.
func ColumnNames() (out []string) {
	for _, m := range Columns() {
		out = append(out, m.Column.Name)
	}
	return out
}

// Known returns x, or NaN if x is negative, which some record fields use for "unknown".
func Known(x float64) float64 {
	if x < 0 {
		return math.NaN()
	}
	return x
}

// Positive returns x, or NaN if x is not finite and positive; record fields use zero for "unknown".
func Positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return math.NaN()
}
