package lab

import (
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

// liveAnswer reports after each start the ratio of each other target to the first. Its interval is
// a confidence sequence: it stays valid whenever the user ends the run (stats.LiveRatio).
type liveAnswer struct {
	Observer
	first   string // row of the target that the others are compared with
	planned int    // starts; 0: the run goes on for a time
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
	key := startKey{r.Scenario, r.Block}
	start := a.starts[key]
	if start == nil {
		start = &liveStart{measured: map[string]*record.Record{}}
		a.starts[key] = start
	}
	if start.ended++; r.Outcome == record.Measured {
		start.measured[table.RowName(r.Target)] = r
	}
	if a.planned > 0 { // otherwise the run goes on for a time
		a.planned = max(a.planned, r.SideBySide.Planned)
	}
	if start.ended <= len(r.SideBySide.With) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(start.measured)) {
		if name != a.first && start.measured[name].Target.ControlOf == "" {
			a.report(r.Scenario, name)
		}
	}
}

// report prints one target's interval so far, where there is one.
func (a *liveAnswer) report(scenario, name string) {
	var ratios []stats.StartRatio
	scenarios := map[string]bool{}
	for key, start := range a.starts {
		scenarios[key.scenario] = true
		base := inSlices(start.measured[a.first], metric.CPU)
		item := inSlices(start.measured[name], metric.CPU)
		if key.scenario == scenario && base > 0 && item > 0 {
			ratios = append(ratios, stats.StartRatio{LogRatio: math.Log(item / base)})
		}
	}
	r := stats.LiveRatio(ratios, 0.95)
	if !r.HasInterval() {
		return
	}
	line := units.Plural(r.N, "start")
	if a.planned >= r.N { // not yet those that are repeated
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
		line += ". Ctrl-C ends the run and keeps this answer"
		a.advised = true
	}
	a.Say(line)
}

// inSlices is a target's CPU time per request in the closed slices of a start, in ns, or its
// throughput; 0: unknown.
func inSlices(r *record.Record, name string) float64 {
	if r == nil {
		return 0
	}
	for i := range r.Loads {
		if s := r.Loads[i].Slices; s != nil && s.RatePerS == 0 {
			if name == metric.Throughput {
				return s.ThroughputPerS()
			}
			return s.CPUPerRequestNs()
		}
	}
	return 0
}
