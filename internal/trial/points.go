package trial

import (
	"cmp"
	"context"
	"maps"
	"math"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/observe/probe"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/load"
	"prony.example/record"
	"prony.example/record/metric"
)

// Meter receives the lab's own metrics between windows. Real runs use a *telemetry.Client. It
// returns no errors and does not block for long.
type Meter interface {
	Points(context.Context, telemetry.Own)
}

// remember stores the data of a load's series. A trial of the comparison sends them at its end,
// because the collector would otherwise process them in the next load's window. Other trials send
// them immediately, so that they can be followed while they run.
func (f *life) remember(o *offered) {
	if f.lab.Meter == nil {
		return
	}
	f.untold = append(f.untold, o)
	if f.rec.Role != "" {
		f.tellLoads()
	}
}

// tellLoads sends the series of the loads that were not sent yet.
func (f *life) tellLoads() {
	for _, o := range f.untold {
		f.lab.Meter.Points(context.Background(), telemetry.Own{
			Trial: f.named(), Series: f.seconds(o),
		})
	}
	f.untold = nil
}

// tellOwn sends, after the verdict, all data of a trial that were not sent yet.
func (f *life) tellOwn() {
	if f.lab.Meter == nil {
		return
	}
	f.tellLoads()
	ownOwn := telemetry.Own{Trial: f.named(), Series: f.whole(clock.Wall().UnixNano())}
	if !f.heard {
		ownOwn.Marks = f.unsaid
	}
	f.lab.Meter.Points(context.Background(), ownOwn)
}

// named returns the trial as the collector names it.
func (f *life) named() telemetry.Trial {
	return telemetry.Trial{Run: filepath.Base(f.lab.Dir), ID: f.trial.ID, Target: f.trial.Target,
		Variant: f.trial.Variant, Block: f.trial.Block}
}

// sheet writes series of one load, or of the whole trial.
type sheet struct {
	labels map[string]string
	opened int64   // Unix time in ns
	edges  []int64 // of the seconds, ns from the opening; empty: one value, at the opening
	out    []telemetry.Series
}

// sheet returns an empty sheet with the labels that all its series have.
func (f *life) sheet(load string) sheet {
	t := f.named()
	return sheet{labels: map[string]string{
		"run": t.Run, "trial": t.ID, "target": t.Target, "scenario": f.trial.Scenario,
		"load": load, "block": strconv.Itoa(t.Block), "launcher": launcherOf(f.rec.Target),
		"arm": armOf(f.rec.Target), "role": f.rec.Role,
	}}
}

// launcherOf returns the name of a target's launcher, also if it is the default.
func launcherOf(t record.Target) string { return cmp.Or(t.Launcher, suite.Launchers[0]) }

// armOf describes how a trial differs from the plain trials of its target; empty: it does not.
func armOf(t record.Target) string {
	var words []string
	if t.Variant != "" && t.Variant != "none" {
		words = append(words, t.Variant)
	}
	if t.Driver != "" {
		words = append(words, "by "+t.Driver)
	}
	if t.Arm != "" {
		words = append(words, t.Arm)
	}
	return strings.Join(words, " ")
}

// add writes a series with the value of each second. It leaves out NaN and infinite values, which
// are unknown.
func (s *sheet) add(name string, value func(second int) float64, more ...string) {
	series := telemetry.Series{Name: name, Labels: maps.Clone(s.labels)}
	for i := 0; i+1 < len(more); i += 2 {
		series.Labels[more[i]] = more[i+1]
	}
	put := func(atNs int64, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			series.WallNs, series.Values = append(series.WallNs, atNs), append(series.Values, v)
		}
	}
	if len(s.edges) == 0 {
		put(s.opened, value(0))
	}
	for i := 1; i < len(s.edges); i++ {
		put(s.opened+s.edges[i], value(i-1))
		series.UntilNs = s.opened + s.edges[i] + int64(time.Second)
	}
	if len(series.WallNs) > 0 {
		s.out = append(s.out, series)
	}
}

// one writes a series that has the same value in all seconds.
func (s *sheet) one(name string, v float64, more ...string) {
	s.add(name, func(int) float64 { return v }, more...)
}

func inSeconds[N int64 | float64](ns N) float64 { return float64(ns) / 1e9 }

// seconds returns the series of a load. Each value covers the second that ends at its time.
func (f *life) seconds(o *offered) []telemetry.Series {
	l := &f.rec.Loads[o.pos]
	s := f.sheet(l.Name)
	s.opened, s.edges = cmp.Or(l.WindowOpenedUnixNs, o.openedWall), edges(l)
	s.requests(l)
	s.latency(o.intervals)
	s.samples(f.watch.Series(), o)
	s.window(l)
	return s.out
}

// edges divides a window into seconds, or into the load's intervals if these are longer, and
// returns the boundaries in ns from the opening. The last part may be shorter. A last interval
// without data in the load's series is left out.
func edges(l *record.Load) []int64 {
	step, end := int64(time.Second), l.WindowNs
	if n := int64(len(l.Series.Done)); n > 0 {
		interval := l.Series.IntervalNs
		step, end = max(step/interval, 1)*interval, min(end, n*interval)
	}
	out := []int64{0}
	for atNs := step; atNs < end; atNs += step {
		out = append(out, atNs)
	}
	return append(out, end)
}

// requests writes the rates and the outstanding requests from a load's own series.
func (s *sheet) requests(l *record.Load) {
	sum := func(column []int64, i int) (n int64) {
		for k := s.edges[i] / l.Series.IntervalNs; k*l.Series.IntervalNs < s.edges[i+1]; k++ {
			n += column[k]
		}
		return n
	}
	for _, x := range []struct {
		state  string
		column []int64
	}{
		{"due", l.Series.Scheduled}, {"sent", l.Series.Sent}, {"answered", l.Series.Done},
		{"failed", l.Series.Failed},
	} {
		if len(x.column) == 0 {
			continue
		}
		s.add("prony_load_requests_per_second", func(i int) float64 {
			return float64(sum(x.column, i)) / inSeconds(s.edges[i+1]-s.edges[i])
		}, "state", x.state)
	}
	if len(l.Series.Scheduled) == 0 || l.FlowTime.Count > 0 {
		return // closed load, or arrivals count flows and ends count requests
	}
	var remaining int64
	s.add("prony_load_outstanding", func(i int) float64 {
		remaining += sum(l.Series.Scheduled, i) - sum(l.Series.Done, i) - sum(l.Series.Failed, i)
		return float64(max(remaining, 0))
	})
}

// quantiles are the quantiles of latency in the lab's metrics.
var quantiles = []struct {
	name  string
	total float64
}{{"0.5", 50}, {"0.9", 90}, {"0.99", 99}, {"1", 100}}

// latency merges the histograms of each second, because quantiles cannot be averaged.
func (s *sheet) latency(intervals []load.Interval) {
	if len(intervals) == 0 {
		return // another generator measured the load
	}
	h := intervals[0].Response
	sum := hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(),
		int(h.SignificantFigures()))
	values := make([][]float64, len(quantiles))
	for i := 1; i < len(s.edges); i++ {
		sum.Reset()
		for _, v := range intervals {
			if atNs := int64(v.Offset); atNs >= s.edges[i-1] && atNs < s.edges[i] {
				sum.Merge(v.Response)
			}
		}
		for q, quantile := range quantiles {
			v := math.NaN()
			if sum.TotalCount() > 0 {
				v = inSeconds(sum.ValueAtQuantile(quantile.total))
			}
			values[q] = append(values[q], v)
		}
	}
	for q, quantile := range quantiles {
		s.add("prony_load_latency_seconds", func(i int) float64 { return values[q][i] },
			"quantile", quantile.name)
	}
}

// samples writes the probe's samples.
func (s *sheet) samples(p probe.Series, o *offered) {
	second := make([]int, len(p.TNs)) // index of the second of each row; -1: none
	for i, t := range p.TNs {
		atNs := o.openedWall + t - o.before.TNs - s.opened
		second[i] = sort.Search(len(s.edges), func(k int) bool { return s.edges[k] >= atNs }) - 1
		if second[i] >= len(s.edges)-1 {
			second[i] = -1
		}
	}
	mean := func(column []float64) func(int) float64 {
		return func(total int) float64 {
			var sum, spent float64
			for i, k := range second {
				if k == total && i > 0 && column[i] >= 0 {
					row := float64(p.TNs[i] - p.TNs[i-1])
					sum, spent = sum+column[i]*row, spent+row
				}
			}
			return sum / spent
		}
	}
	most := func(column []int64) func(int) float64 {
		return func(total int) float64 {
			count := int64(0)
			for i, k := range second {
				if k == total {
					count = max(count, column[i])
				}
			}
			return metric.Positive(float64(count))
		}
	}
	s.add("prony_generator_cpu_cores", mean(p.LabCores))
	s.add("prony_service_cpu_cores", mean(p.CPUCores))
	s.add("prony_service_memory_bytes", most(p.RSSBytes))
	s.add("prony_service_threads", most(p.Threads))
	s.add("prony_host_cpu_share", mean(p.BusyShare), "mode", "busy")
	s.add("prony_host_cpu_share", mean(p.StealShare), "mode", "steal")
}

// window writes the values that are known only for the whole window.
func (s *sheet) window(l *record.Load) {
	if l.Lag.Count > 0 {
		s.one("prony_generator_lag_seconds", inSeconds(l.Lag.P50Ns), "quantile", "0.5")
		s.one("prony_generator_lag_seconds", inSeconds(l.Lag.P99Ns), "quantile", "0.99")
		s.one("prony_generator_lag_seconds", inSeconds(l.Lag.MaxNs), "quantile", "1")
	}
	window, g := float64(l.WindowNs), &l.Generator
	s.one("prony_generator_busiest_share", metric.Positive(g.CPUShare))
	if g.Engine != "" {
		s.one("prony_generator_delayed_share", metric.Known(float64(g.RunDelayNs)/window))
	}
	s.one("prony_generator_ceiling_per_second", metric.Positive(l.CeilingPerS))
	u := &l.Service
	if u.WindowNs > 0 {
		s.one("prony_service_throttled_share",
			metric.Known(float64(u.ThrottledNs)/float64(u.WindowNs)))
	}
	s.one("prony_host_cpu_share", metric.Known(l.Host.OtherCPUShare), "mode", "others")
	s.one("prony_host_pressure_share", metric.Known(l.Host.PressureCPU), "resource", "cpu")
	s.one("prony_host_pressure_share", metric.Known(l.Host.PressureMemory), "resource", "memory")
	s.one("prony_host_pressure_share", metric.Known(l.Host.PressureIO), "resource", "io")
}

// whole returns the values of a finished trial with its verdict, at a given Unix time in ns.
func (f *life) whole(nowNs int64) []telemetry.Series {
	r := f.rec
	s := f.sheet("")
	s.opened = nowNs
	s.one("prony_trial_verdict", 1, "grade", r.Verdict.Grade)
	for _, x := range r.Verdict.Findings {
		if x.Grade == record.Valid {
			continue // its effect is too small to be a reason
		}
		s.one("prony_trial_reason", 1, "reason", x.Rule, "load", x.Load, "grade", x.Grade)
	}
	s.one("prony_trial_start_seconds", metric.Positive(inSeconds(r.Start.ReadyNs)))
	s.one("prony_trial_duration_seconds", metric.Positive(inSeconds(r.DurationNs)))
	s.one("prony_trial_sampler_cpu_cores", metric.Positive(r.Probe.CPUShare))
	if t := r.Telemetry; t != nil && len(t.Signals) > 0 { // otherwise the collector did not respond
		var bytes int64
		for _, x := range t.Signals {
			bytes += x.Bytes
		}
		s.one("prony_trial_bytes_per_request", float64(bytes)/metric.Requests(r))
		s.one("prony_trial_home_cpu_cores", t.Collector.CPUShare)
		s.one("prony_trial_home_memory_bytes", metric.Positive(float64(t.Collector.RSSBytes)))
	}
	out := s.out
	for i := range r.Loads {
		s := f.sheet(r.Loads[i].Name)
		s.opened = nowNs
		s.load(&r.Loads[i])
		out = append(out, s.out...)
	}
	return out
}

// load writes the results of one load.
func (s *sheet) load(l *record.Load) {
	for _, m := range metric.All {
		if m.Told != "" {
			s.one(m.Told, m.Load(l)/units[m.Unit].perRequest)
		}
	}
	s.one("prony_trial_network_bytes_per_request",
		metric.Positive(l.Service.NetworkBytesPerRequest))
	// If the service did not keep up, response times describe a growing queue.
	keptUp := l.Model != record.Open || float64(l.Done) >= metric.KeptUp*float64(l.Scheduled)
	if d := l.ResponseTime; keptUp && d.Count > 0 {
		for _, x := range []struct {
			quantile string
			ns       int64
		}{{"0.5", d.P50Ns}, {"0.9", d.P90Ns}, {"0.99", d.P99Ns}, {"0.999", d.P999Ns},
			{"1", d.MaxNs}} {
			s.one("prony_trial_latency_seconds", metric.Positive(inSeconds(x.ns)), "quantile",
				x.quantile)
		}
	}
}

// units give each unit of the table the name of a base unit, and the number of table units in one.
var units = map[string]struct {
	name       string
	perRequest float64
}{"1/s": {"per_second", 1}, "ns": {"seconds", 1e9}, "B": {"bytes", 1}, "J": {"joules", 1},
	"1": {"ratio", 1}}

// Results returns the values of a run's table as series at a given Unix time in ns: the median over
// trials, and the bounds of its interval if it has one. Values that the table withholds are
// missing.
func Results(study table.Study, run string, nowNs int64) []telemetry.Series {
	var out []telemetry.Series
	for _, sc := range study.Scenarios {
		for _, t := range sc.Targets {
			s := sheet{opened: nowNs}
			for _, m := range t.Metrics {
				if !m.Known() || m.Summary.N == 0 {
					continue
				}
				s.labels = map[string]string{"run": run, "target": t.Info.Name,
					"scenario": sc.Name, "load": m.Load,
					"launcher": launcherOf(t.Info), "arm": armOf(t.Info)}
				u, ok := units[m.Unit]
				if !ok {
					panic("trial: a metric of the table has the unknown unit " + m.Unit)
				}
				bound := func(name string, v float64) {
					s.one("prony_result", v/u.perRequest, "metric", m.Name, "unit", u.name,
						"bound", name)
				}
				bound("median", m.Summary.Center)
				if !math.IsNaN(m.Summary.Lo) {
					bound("low", m.Summary.Lo)
					bound("high", m.Summary.Hi)
				}
			}
			out = append(out, s.out...)
		}
	}
	return out
}
