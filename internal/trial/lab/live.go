package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"prony.example/internal/base/units"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/stats"
)

// liveAnswer reports after each start how the other targets stand to the first one. Its interval is
// a confidence sequence: it stays valid whenever the user ends the run (stats.LiveRatio).
type liveAnswer struct {
	Observer
	first   string // target that the others are compared with
	planned int    // starts
	starts  map[int]map[string]*record.Record
	advised bool
}

// Trial implements Observer.
func (a *liveAnswer) Trial(e trial.Event) {
	a.Observer.Trial(e)
	r := e.Record
	if r == nil || r.SideBySide == nil || r.Outcome != record.Measured {
		return
	}
	start := a.starts[r.Block]
	if start == nil {
		start = map[string]*record.Record{}
		a.starts[r.Block] = start
	}
	start[r.Target.Name] = r
	if len(start) <= len(r.SideBySide.With) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(start)) {
		if name != a.first && start[name].Target.ControlOf == "" {
			a.report(name)
		}
	}
}

// report prints one target's interval so far, where there is one.
func (a *liveAnswer) report(name string) {
	var ratios []stats.StartRatio
	for _, block := range slices.Sorted(maps.Keys(a.starts)) {
		base, item := cpuInSlices(a.starts[block][a.first]), cpuInSlices(a.starts[block][name])
		if base > 0 && item > 0 {
			ratios = append(ratios, stats.StartRatio{LogRatio: math.Log(item / base)})
		}
	}
	r := stats.LiveRatio(ratios, 0.95)
	if !r.HasInterval() {
		return
	}
	line := fmt.Sprintf("%d of %d starts: CPU per request of %s against %s %s (95 %%: %s to %s)",
		r.N, a.planned, name, a.first, units.Change(r.Center), units.Change(r.Lo),
		units.Change(r.Hi))
	if !a.advised {
		line += "; Ctrl-C ends the run and keeps the answer"
		a.advised = true
	}
	a.Say(line)
}

// cpuInSlices is a target's CPU time per request in the slices of a start, in ns; 0: unknown.
func cpuInSlices(r *record.Record) float64 {
	if r == nil {
		return 0
	}
	for i := range r.Loads {
		if s := r.Loads[i].Slices; s != nil && s.RatePerS == 0 {
			return s.CPUPerRequestNs()
		}
	}
	return 0
}
