package table

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"prony/internal/result"
	"prony/internal/stats"
	"prony/internal/unit"
)

// Load models, as records name them.
const (
	closed = "closed"
	open   = "open"
)

// Names of metrics that the table shows; docs/formats/report-csv.md lists them all.
const (
	Throughput = "throughput"
	Achieved   = "achieved"
	CPU        = "cpu_per_request"
	RSS        = "rss_max"
	Ready      = "ready"
	SteadyAt   = "steady_at"
)

// Names of metrics that a suite may ask for as columns.
const (
	Mean          = "mean"
	Max           = "max"
	Requests      = "requests"
	ErrorShare    = "error_share"
	CPUUsed       = "cpu_used"
	Threads       = "threads_max"
	ArtifactSize  = "artifact_size"
	ImageSize     = "image_size"
	Listen        = "listen"
	FirstResponse = "first_response"
)

// KeptUp is the share of an open load's arrivals that must be answered within the window. Below it
// the backlog grows, and a response time says how long the test was, not how fast the service is
// (Schroeder et al., "Open Versus Closed", NSDI 2006).
const KeptUp = 0.99

// quantity is a metric that each trial has one value of.
type quantity struct {
	name, unit string
	model      string // empty: of any load
	of         func(r *result.Record, l *result.Load) float64
	missing    string // what to say when a trial has no value (NaN)
}

// noiseless are the quantities of which one trial is enough, and equal values are no surprise.
var noiseless = []string{ArtifactSize, ImageSize}

// Exact is the assumption of a noiseless quantity, beside those of package stats.
const Exact = "exact"

const noProbe = "the service was not sampled in that window (see limits and probe in the record)"

var loadQuantities = []quantity{
	{Throughput, unit.PerS, "", func(_ *result.Record, l *result.Load) float64 {
		return l.ThroughputPerS
	}, ""},
	{Achieved, unit.One, open, func(_ *result.Record, l *result.Load) float64 {
		return positive(float64(l.Done) / float64(l.Scheduled))
	}, "no arrival was due in the window"},
	{ErrorShare, unit.One, "", func(_ *result.Record, l *result.Load) float64 {
		failed := float64(l.Errors.Total())
		return failed / (failed + float64(l.Done))
	}, "no request ended in the window"},
	{CPU, unit.Ns, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(l.Service.CPUPerRequestNs)
	}, noProbe},
	{RSS, unit.Octet, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(float64(l.Service.RSSMaxBytes))
	}, noProbe},
	{"generator_cpu_per_request", unit.Ns, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(l.Generator.CPUPerRequestNs)
	}, "the generator did not report its CPU time"},
	{Mean, unit.Ns, "", func(_ *result.Record, l *result.Load) float64 {
		return ofTimes(l, l.ResponseTime.MeanNs)
	}, notKeptUp},
	{Max, unit.Ns, "", func(_ *result.Record, l *result.Load) float64 {
		return ofTimes(l, float64(l.ResponseTime.MaxNs))
	}, notKeptUp},
	{Requests, unit.One, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(float64(l.Done))
	}, "no request ended in the window"},
	{CPUUsed, unit.One, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(float64(l.Service.CPUNs) / float64(l.Service.WindowNs))
	}, noProbe},
	{Threads, unit.One, "", func(_ *result.Record, l *result.Load) float64 {
		return positive(float64(l.Service.ThreadsMax))
	}, noProbe},
	{"lag_p99", unit.Ns, open, func(_ *result.Record, l *result.Load) float64 {
		if l.Lag.Count == 0 {
			return math.NaN()
		}
		return float64(l.Lag.P99Ns)
	}, "the generator did not report its lag"},
	{"own_lag_p99", unit.Ns, open, func(_ *result.Record, l *result.Load) float64 {
		if l.OwnLag.Count == 0 {
			return math.NaN()
		}
		return float64(l.OwnLag.P99Ns)
	}, "the generator did not report its own lag"},
}

var trialQuantities = []quantity{
	{Listen, unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		return positive(float64(r.Start.ListenNs))
	}, "the start was not timed"},
	{Ready, unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		return positive(float64(r.Start.ReadyNs))
	}, "the start was not timed"},
	{FirstResponse, unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		return positive(float64(r.Start.FirstResponseNs))
	}, "the start was not timed"},
	{SteadyAt, unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		if w := r.Warmup; !w.Steady || w.Kind == stats.Unsteady {
			return math.NaN()
		}
		return float64(r.Warmup.SteadyAtNs)
	}, "no steady state is known (allow it a longer warm-up)"},
	{"time_to_peak", unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		return afterWarmup(r, r.Warmup.PeakAtNs)
	}, "no steady state is known (allow it a longer warm-up)"},
	{"warmup_cost", unit.Ns, "", func(r *result.Record, _ *result.Load) float64 {
		return afterWarmup(r, r.Warmup.CostNs)
	}, "no steady state is known (allow it a longer warm-up)"},
	{ArtifactSize, unit.Octet, "", func(r *result.Record, _ *result.Load) float64 {
		return positive(float64(r.Artifact.SizeBytes))
	}, "the artifact was not measured"},
	{ImageSize, unit.Octet, "", func(r *result.Record, _ *result.Load) float64 {
		return positive(float64(r.Artifact.ImageBytes))
	}, "no image of it was built (prony build --images)"},
}

const notKeptUp = "the load was not kept up with, and times grow with the test's length"

// ofTimes is a figure of response times, where they are not those of a growing backlog.
func ofTimes(l *result.Load, ns float64) float64 {
	if l.Model == open && float64(l.Done) < KeptUp*float64(l.Scheduled) {
		return math.NaN()
	}
	return positive(ns)
}

// afterWarmup is what the series of a trial's start says, where it has a steady state to compare
// with. A record without a kind was not looked at in that way.
func afterWarmup(r *result.Record, ns int64) float64 {
	if r.Warmup.Kind == "" || r.Warmup.Kind == stats.Unsteady {
		return math.NaN()
	}
	return float64(ns)
}

// positive is x, or NaN when x is zero (the record's way to say "unknown") or no number.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return math.NaN()
}

// summarize fills Metrics and Curves. A load's metrics are made of the trials in which that load is
// not INVALID; those of the whole trial go with the load that ranks, as its cost does.
func (t *Target) summarize(sc *Scenario, blocks blockOf, confidence float64) {
	if len(t.Used) == 0 {
		return
	}
	for _, info := range sc.Loads {
		var offered []offer
		known := false
		for _, r := range t.Trials {
			l := loadOf(r, info.Name)
			known = known || l != nil
			if grade := LoadGrade(r, info.Name); l != nil && good(grade) {
				offered = append(offered, offer{r, l, blocks(r), grade})
			}
		}
		if known {
			t.summarizeLoad(info, offered, confidence)
		}
	}
	anchor := sc.anchor()
	var whole []offer
	for _, r := range t.Used {
		if grade := LoadGrade(r, anchor); good(grade) {
			whole = append(whole, offer{r, nil, blocks(r), grade})
		}
	}
	for _, q := range trialQuantities {
		if len(whole) > 0 {
			t.Metrics = append(t.Metrics, q.across(whole, confidence))
		} else {
			t.Metrics = append(t.Metrics, lostMetric(q.name, q.unit, t.lost(anchor)))
		}
	}
}

func (t *Target) summarizeLoad(info LoadInfo, offered []offer, confidence float64) {
	why := ""
	if len(offered) == 0 {
		why = t.lost(info.Name)
	}
	add := func(m Metric) {
		m.Load, m.Model = info.Name, info.Model
		t.Metrics = append(t.Metrics, m)
	}
	for _, q := range loadQuantities {
		if q.model != "" && q.model != info.Model {
			continue
		}
		if why != "" {
			add(lostMetric(q.name, q.unit, why))
		} else {
			add(q.across(offered, confidence))
		}
	}
	if why != "" {
		for _, p := range shown {
			add(lostMetric(p.name, unit.Ns, why))
		}
		return
	}
	for _, q := range watchedQuantities {
		if m := q.across(offered, confidence); len(m.Points) > 0 {
			add(m)
		}
	}
	ms, curve := percentiles(info, offered, confidence)
	t.Metrics = append(t.Metrics, ms...)
	t.Curves = append(t.Curves, curve)
}

// lostMetric is one that no trial is left for.
func lostMetric(name, base, why string) Metric {
	m := Metric{Name: name, Unit: base}
	m.withhold(why)
	return m
}

// offer is one load of one trial, with its grade.
type offer struct {
	record *result.Record
	load   *result.Load // nil for metrics of the whole trial
	block  int
	grade  string
}

func (o offer) point(value float64) Point {
	return Point{o.record.Trial, o.block, value, o.grade}
}

// across summarises a quantity over trials. A single trial without a value withholds the metric:
// the trials that have one may be the lucky ones.
func (q quantity) across(offered []offer, confidence float64) Metric {
	m := Metric{Name: q.name, Unit: q.unit}
	lacking := 0
	for _, o := range offered {
		v := q.of(o.record, o.load)
		if math.IsNaN(v) {
			lacking++
			continue
		}
		m.Points = append(m.Points, o.point(v))
	}
	if lacking > 0 {
		m.withhold(fmt.Sprintf("in %s %s", ofTrials(lacking, len(offered)), q.missing))
		return m
	}
	m.Summary = stats.Summarize(values(m.Points), confidence)
	x := m.Summary.Center
	equal := slices.Min(values(m.Points)) == x && slices.Max(values(m.Points)) == x
	if equal && slices.Contains(noiseless, q.name) {
		m.Summary = stats.Summary{
			N: len(m.Points), Center: x, Lo: x, Hi: x, Confidence: 1, Assumption: Exact,
		}
	}
	return m
}

func (m *Metric) withhold(why string) {
	m.Withheld = why
	nan := math.NaN()
	m.Summary = stats.Summary{N: len(m.Points), Center: nan, Lo: nan, Hi: nan}
}

func values(points []Point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.Value
	}
	return out
}

// ofTrials says "2 of 3 trials", or "the only trial".
func ofTrials(k, n int) string {
	if n == 1 {
		return "the only trial"
	}
	return fmt.Sprintf("%d of %d trials", k, n)
}

// loadInfos lists a scenario's loads in the order in which trials offered them.
func loadInfos(records []*result.Record) []LoadInfo {
	var names []string
	offered := map[string][]*result.Load{}
	for _, r := range records {
		for i := range r.Loads {
			l := &r.Loads[i]
			if offered[l.Name] == nil {
				names = append(names, l.Name)
			}
			offered[l.Name] = append(offered[l.Name], l)
		}
	}
	infos := make([]LoadInfo, len(names))
	for i, name := range names {
		ls := offered[name]
		infos[i] = LoadInfo{Name: name, Model: ls[0].Model, Title: loadTitle(ls)}
	}
	return infos
}

// loadTitle describes a load by what its records share: "peak (closed, 64 connections)" or "half
// (open, Poisson, 50 % of peak)". What they do not share is left out and footnoted as residue.
func loadTitle(ls []*result.Load) string {
	words := []string{ls[0].Model}
	if ls[0].Model == open {
		if a := shared(ls, func(l *result.Load) string { return l.Arrivals }); a != "" {
			words = append(words, arrivalsWord(a))
		}
		if of := shared(ls, func(l *result.Load) string { return l.RateOf }); of != "" {
			words = append(words, share(of))
		} else if r := shared(ls, rateText); r != "" {
			words = append(words, r)
		}
	} else if c := shared(ls, connectionsText); c != "" {
		words = append(words, c)
	}
	return ls[0].Name + " (" + strings.Join(words, ", ") + ")"
}

func rateText(l *result.Load) string { return unit.Rate(l.RatePerS) + "/s" }

func connectionsText(l *result.Load) string {
	if l.Connections == 1 {
		return "1 connection"
	}
	return unit.Count(int64(l.Connections)) + " connections"
}

func arrivalsWord(a string) string {
	if a == "poisson" {
		return "Poisson" // a name of a person
	}
	return a
}

// shared is what all loads agree on, or empty.
func shared(ls []*result.Load, of func(*result.Load) string) string {
	first := of(ls[0])
	for _, l := range ls[1:] {
		if of(l) != first {
			return ""
		}
	}
	return first
}

// halfWidth is the larger arm of an interval relative to its centre.
func halfWidth(center, lo, hi float64) float64 {
	return max(hi-center, center-lo) / math.Abs(center)
}
