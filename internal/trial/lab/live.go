package lab

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// liveAnswer reports after each start the ratio of each target to the first one. The intervals are
// confidence sequences: they stay valid whenever the user ends the run (stats.LiveRatio).
type liveAnswer struct {
	Observer
	first   string // row of the target with which the others are compared
	planned int    // planned starts; 0: the run has a time budget
	// prints adds a line per target with its CPU time per request. In suites with many targets,
	// these lines would hide all others.
	prints  bool
	ratio   func(record.LiveRatio)
	starts  map[startKey]*liveStart
	advised bool
}

// startKey names a start.
type startKey struct {
	scenario string
	block    int
}

// liveStart has the records of a start so far.
type liveStart struct {
	ended    int
	measured map[string]*record.Record // by row
}

// Trial implements Observer.
func (a *liveAnswer) Trial(e trial.Event) {
	a.Observer.Trial(e)
	r := e.Record
	if r == nil || r.SideBySide == nil {
		return
	}
	start := a.note(r)
	if start.ended <= len(r.SideBySide.With) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(start.measured)) {
		if name != a.first && start.measured[name].Target.ControlOf == "" {
			a.report(r.Scenario, name)
		}
	}
}

// note adds the record of a trial to its start.
func (a *liveAnswer) note(r *record.Record) *liveStart {
	key := startKey{r.Scenario, r.Block}
	start := a.starts[key]
	if start == nil {
		start = &liveStart{measured: map[string]*record.Record{}}
		a.starts[key] = start
	}
	if start.ended++; r.Outcome == record.Measured {
		start.measured[table.RowName(r.Target)] = r
	}
	if a.planned > 0 { // otherwise the run has a time budget
		a.planned = max(a.planned, r.SideBySide.Planned)
	}
	return start
}

// liveMetric is a metric of a target's results in slices.
type liveMetric struct {
	name  string
	value func(*record.Sliced) float64
}

// liveMetrics are the metrics that are reported during a run; the first is printed.
var liveMetrics = []liveMetric{{metric.CPU, (*record.Sliced).CPUPerRequestNs},
	{metric.Throughput, (*record.Sliced).ThroughputPerS}}

// report reports the ratios of one target so far, if they have an interval.
func (a *liveAnswer) report(scenario, name string) {
	for i, m := range liveMetrics {
		r := stats.LiveRatio(a.ratios(scenario, name, m.value), 0.95)
		if !r.HasInterval() {
			continue
		}
		a.ratio(record.LiveRatio{Scenario: scenario, Target: name, Baseline: a.first,
			Metric: m.name, Starts: r.N, Center: r.Center, Lo: r.Lo, Hi: r.Hi})
		if i == 0 && a.prints {
			a.print(scenario, name, r)
		}
	}
}

// ratios returns the ratios of a target to the first one, for each start of a scenario.
func (a *liveAnswer) ratios(scenario, name string, value func(*record.Sliced) float64) (
	all []stats.StartRatio) {
	byBlock := func(a, b startKey) int { return cmp.Compare(a.block, b.block) }
	for _, key := range slices.SortedFunc(maps.Keys(a.starts), byBlock) {
		if key.scenario != scenario {
			continue
		}
		records := slices.Collect(maps.Values(a.starts[key].measured))
		base, item := overInstances(records, a.first, value), overInstances(records, name, value)
		if base > 0 && item > 0 {
			all = append(all, stats.StartRatio{LogRatio: math.Log(item / base)})
		}
	}
	return all
}

// print prints a target's ratio of CPU per request.
func (a *liveAnswer) print(scenario, name string, r stats.Ratio) {
	scenarios := map[string]bool{}
	for key := range a.starts {
		scenarios[key.scenario] = true
	}
	if r.N == a.planned {
		return // the answer follows
	}
	line := units.Plural(r.N, "start")
	if a.planned >= r.N { // not if starts are repeated
		line = fmt.Sprintf("%d of %s", r.N, units.Plural(a.planned, "start"))
	}
	if len(scenarios) > 1 {
		line += ", " + scenario
	}
	if r.Lo <= 1 && r.Hi >= 1 {
		line += fmt.Sprintf(": no significant difference between %s and %s so far in CPU per "+
			"request: %s", name, a.first, units.Change(r.Center))
	} else {
		line += fmt.Sprintf(": %s uses %s CPU per request than %s", name,
			compare.Comparative(r.Center, "more", "less"), a.first)
	}
	line += fmt.Sprintf(" (95 %% CI %s to %s)", units.Change(r.Lo), units.Change(r.Hi))
	if !a.advised {
		line += ". Ctrl-C ends the run and keeps this result"
		a.advised = true
	}
	a.Say(line)
}

// overInstances returns the geometric mean, over a target and its control, of a value in slices of
// a start, as table.Scenario.StartRatio uses it; 0: the target has none.
func overInstances(start []*record.Record, row string, value func(*record.Sliced) float64,
) float64 {
	logs, n, measured := 0.0, 0, false
	for _, r := range start {
		first := table.RowName(r.Target) == row
		x := inSlices(r)
		if !first && r.Target.ControlRow() != row || x == nil || value(x) <= 0 {
			continue
		}
		logs, n, measured = logs+math.Log(value(x)), n+1, measured || first
	}
	if !measured {
		return 0
	}
	return math.Exp(logs / float64(n))
}

// inSlices returns the results of a target in the closed slices of a start; nil: there are none
// that count.
func inSlices(r *record.Record) *record.Sliced {
	for i := range r.Loads {
		if s := table.CountedSlices(r, &r.Loads[i]); s != nil && s.RatePerS == 0 {
			return s
		}
	}
	return nil
}
