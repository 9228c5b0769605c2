package suite

import (
	"fmt"
	"slices"
	"time"

	"prony.example/internal/base/runtimes"
	"prony.example/record"
)

// Ways to compare targets, the best first.
const (
	// BySlices runs all targets of a comparison side by side and loads one at a time, for a slice
	// of some tens of milliseconds.
	BySlices = "slices"
	// ByBlocks runs whole trials one after another, in blocks of all targets.
	ByBlocks = "blocks"
)

// Interleavings are the ways to compare targets.
var Interleavings = []string{BySlices, ByBlocks}

// Freezing are the values of Suite.Freeze: a target is stopped while others are loaded, or runs on.
var Freezing = []string{"on", FreezeOff}

// FreezeOff lets targets run on while others are loaded.
const FreezeOff = "off"

// Idling are the values of Suite.Idle: what idle cores do during a run, where Prony can choose.
var Idling = []string{record.IdlePolls, IdleHalts}

// IdleHalts leaves idle cores as they are.
const IdleHalts = "halt"

// mostSideBySide is the largest number of targets of a start.
const mostSideBySide = 12

// join combines the trials of a block that have the same scenario into starts, if slices are
// possible and wanted. The order within a start stays that of the block; the starts of a block
// follow each other in the order of their first trials. The error says why explicitly requested
// slices are impossible.
func (p *Plan) join() error {
	if p.Suite.Interleave == ByBlocks {
		return nil
	}
	if p.Blockwise = p.blockwise(); p.Blockwise != "" {
		return p.refuseSlices()
	}
	p.Trials = p.sideBySide(p.Trials)
	return p.refuseSlices()
}

// sideBySide combines the trials of each block and scenario into starts, if they are few enough.
func (p *Plan) sideBySide(all []Trial) (out []Trial) {
	type group struct {
		block    int
		scenario string
	}
	var order []group
	trials := map[group][]Trial{}
	for _, t := range all {
		g := group{t.Block, t.Scenario}
		if trials[g] == nil {
			order = append(order, g)
		}
		trials[g] = append(trials[g], t)
	}
	for _, g := range order {
		for _, start := range p.divide(trials[g]) {
			n := len(start)
			name := fmt.Sprintf("s%d", start[0].Block)
			if len(p.Suite.Scenarios) > 1 {
				name += "-" + plain(g.scenario)
			}
			for _, t := range start {
				if n > 1 && n <= mostSideBySide {
					t.Start = name
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// refuseSlices returns an error if slices were requested explicitly and are impossible.
func (p *Plan) refuseSlices() error {
	if p.Blockwise == "" || p.Suite.Interleave != BySlices {
		return nil
	}
	return p.Suite.where().Problem("interleave", "slices are not possible: "+p.Blockwise,
		"set interleave: blocks, or remove interleave")
}

// Repeat returns what the plan repeats over all targets: "start" if they run side by side,
// otherwise "block".
func (p *Plan) Repeat() string {
	if slices.ContainsFunc(p.Trials, func(t Trial) bool { return t.Start != "" }) {
		return "start"
	}
	return "block"
}

// stillWarmup is the maximum warm-up in a start of a service that does not compile at run time. A
// service that is not steady after it drifts as the others do, and slices cancel that.
const stillWarmup = Duration(2 * time.Second)

// ByRuntime returns the warm-up of a target by its runtime, in a start or alone. An empty runtime
// is unknown, and may compile.
func (w Warmup) ByRuntime(runtime string, inStart bool) Warmup {
	if runtime == "" || runtimes.Of(runtime).Compiles {
		w.Min = min(max(w.Min, w.MinCompiling), w.Max)
	} else if inStart {
		w.Max = min(w.Max, max(w.Min, stillWarmup))
	}
	return w
}

// Sliceable reports whether the load can be offered in slices.
func (l Load) Sliceable() bool {
	return l.Model == record.Closed && l.Users.IsZero() && l.Think == (Think{}) &&
		l.Generators <= 1 && l.Network.IsZero()
}

// OpenSliceable reports whether the load can be offered in open slices beside the closed load named
// closed: at a constant rate, which is absolute or a share of that load's throughput.
func (l Load) OpenSliceable(closed string) bool {
	return l.Model == record.Open && l.Arrivals != Replay && len(l.Rate.Shape.Pieces) == 0 &&
		(l.Rate.Of == "" || l.Rate.Of == closed) && l.Generators <= 1 && l.Churn == 0 &&
		l.Network.IsZero()
}

// noPods is why pods are measured in blocks.
const noPods = "pods cannot be stopped while other targets are loaded"

// blockwise returns why a plan cannot be measured in slices; empty: it can.
func (p *Plan) blockwise() string {
	if slices.ContainsFunc(p.Trials, func(t Trial) bool { return Pods(t.Launcher) }) {
		return noPods
	}
	return p.Suite.blockwise()
}

// blockwise returns why a suite cannot be measured in slices; empty: it can.
func (s *Suite) blockwise() string {
	switch {
	case s.NoSlices != "":
		return s.NoSlices
	case len(s.Drivers) > 0:
		return "only Prony's generator can load targets in slices"
	case slices.ContainsFunc(s.Launchers, Pods):
		return noPods
	case s.Observed || !s.Observe.IsZero() || s.NeedsHome():
		return "telemetry and profiles can be collected from only one target at a time"
	case !slices.ContainsFunc(s.Loads, Load.Sliceable):
		return "slices need a closed load of one generator, without virtual users, think time " +
			"and network delay"
	case s.Limits.CPUs != float64(int(s.Limits.CPUs)):
		return "limits.cpus is not a whole number, and a CPU quota has no effect within a slice"
	}
	return ""
}
