package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/runtimes"
	"prony.example/internal/base/strictyaml"
	"prony.example/record"
)

// Override is the changes by flags. A zero value keeps the file's value.
type Override struct {
	Blocks  int
	Seed    *uint64
	Measure Duration // of every load; slices last at most five times as long
	// Generators is the number of processes that offer every load together; 0: the suite's.
	Generators int
	Networks   []Network // simulated in turn; nil: the suite's
	Warmup     Duration  // Max; shorter minima stay, longer ones become it
	For        Duration  // replaces blocks; 0: blocks. With Precision it is a bound
	// Precision is half the width of the interval that starts are planned for; 0: not requested.
	Precision Percent
	Metric    string // with Precision: one of PrecisionMetrics; empty: the first
	Targets   []string
	Limits    Limits // zero fields keep the file's
	// Scenarios are globs (path.Match) over their names; nil: all of the file.
	Scenarios []string
	// Loads are globs over their names. Loads that their rates refer to stay.
	Loads []string
	// Launchers start the targets; nil: the suite's.
	Launchers []string
	Drivers   []string // load generators; nil: the suite's
	AA        bool
	// Interleave is how targets are compared; empty: the suite's.
	Interleave string
	Freeze     string   // one of Freezing; empty: the suite's
	Idle       string   // one of Idling; empty: the suite's
	Slices     Duration // of each target in a start; 0: the suite's
	// Agents are attached instead of the suite's agents; nil: the suite's. Observed, Watching and
	// Watch are those of the suite.
	Agents   []string
	Observed bool
	Watching []string
	Watch    Observe
	InWindow []string // kinds of profiles to take in all trials
	Quick    bool     // shortens the run to the limits below
}

// Limits of a quick run. It shows that everything works, with rough results: it detects differences
// of about a half.
const (
	quickBlocks = 2
	quickStarts = 4 // with slices, which are short
	quickSlices = Duration(time.Second)
	quickWindow = Duration(time.Second)
	quickWarmup = Duration(6 * time.Second)
	quickSearch = 20 * quickWindow
	// A JVM compiles a framework on one core for half a minute, and until then it has a fraction of
	// its throughput. Two starts of four JVMs with such warm-ups take about five minutes.
	quickJVMWarmup = Duration(30 * time.Second)
	quickJVMStarts = 2
)

// preview is how a quick run differs if it has targets on a JVM; zero: as other quick runs.
type preview struct {
	warmup Duration // the longest warm-up
	starts int      // the largest number of starts or blocks
}

// slicesByMeasure is the maximum ratio of the time in slices to a flag's window.
const slicesByMeasure = 5

// Override applies o, or returns an error and changes nothing. Hash stays the file's; the plan's
// hash covers the changes.
func (s *Suite) Override(o Override) error {
	changed := *s
	if err := changed.narrow(o); err != nil { // first: the remaining loads matter
		return fmt.Errorf("override suite %s: %w", s.Name, err)
	}
	changed.Loads = slices.Clone(changed.Loads)
	changed.AA = s.AA || o.AA
	changed.Interleave = cmp.Or(o.Interleave, s.Interleave)
	changed.Freeze = cmp.Or(o.Freeze, s.Freeze)
	changed.Idle = cmp.Or(o.Idle, s.Idle)
	changed.Slices = cmp.Or(o.Slices, s.Slices)
	changed.drive(o.Drivers)
	changed.watch(o)
	changed.place(o)
	if o.Quick { // after what decides between slices and blocks
		changed.hasten()
	}
	changed.Blocks = cmp.Or(o.Blocks, changed.Blocks)
	if o.Blocks != 0 {
		changed.preview.starts = 0
	}
	if o.Seed != nil {
		changed.Seed = *o.Seed
	}
	if o.Measure != 0 && o.Slices == 0 { // short windows imply short starts
		changed.Slices = min(changed.Slices, slicesByMeasure*o.Measure)
	}
	if o.Measure != 0 {
		for i := range changed.Loads {
			changed.Loads[i].Measure = o.Measure
		}
		if changed.usesCapacity() {
			changed.Capacity.Measure = o.Measure
		}
	}
	if o.Warmup != 0 {
		changed.Warmup.Max, changed.preview.warmup = o.Warmup, 0
		changed.Warmup.Min = min(changed.Warmup.Min, o.Warmup)
		changed.Warmup.MinCompiling = min(changed.Warmup.MinCompiling, o.Warmup)
	}
	for i := range changed.Loads {
		if l := &changed.Loads[i]; l.Model == record.Capacity { // which must fit a flag's window
			l.Budget = max(l.Budget, searchWindows*l.Measure)
		}
	}
	if o.Precision != 0 {
		changed.Precision = Precision{Half: o.Precision, Within: o.For,
			Metric: cmp.Or(o.Metric, PrecisionMetrics[0])}
	} else if o.For != 0 {
		changed.lasting(o)
	}
	if len(o.Targets) > 0 {
		changed.Targets = slices.Clone(o.Targets)
		changed.retargeted = true
	}
	inFile := changed // the limits of loads are those of a file
	inFile.gather()
	inFile.Networks = changed.Networks
	if err := inFile.check(&checker{}); err != nil {
		return fmt.Errorf("override suite %s: %w", s.Name, err)
	}
	*s = changed
	return nil
}

// narrow keeps the scenarios and loads that a pattern matches, and loads to which the rates of
// these refer. Each pattern must match one. Networks of a flag replace the suite's.
func (s *Suite) narrow(o Override) error {
	if len(o.Networks) > 0 {
		s.gather()
		defer s.spread(o.Networks)
	}
	scenes, err := chosen("scenario", o.Scenarios, s.Scenarios, sceneName)
	if err != nil {
		return err
	}
	loads, err := chosen("load", o.Loads, s.Loads, loadName)
	if err != nil {
		return err
	}
	s.Scenarios = scenes
	s.Loads = slices.DeleteFunc(slices.Clone(s.Loads), func(l Load) bool {
		return !slices.ContainsFunc(loads, func(retained Load) bool {
			return l.Name == retained.Name || l.Name == retained.Rate.Of
		})
	})
	if !s.usesCapacity() { // then no rate is a share of it
		s.Capacity = Capacity{}
	}
	return nil
}

// chosen returns the items whose name matches a pattern; all if there is no pattern.
func chosen[T any](kind string, patterns []string, all []T, name func(T) string) ([]T, error) {
	if len(patterns) == 0 {
		return all, nil
	}
	for _, p := range patterns {
		names := namesOf(all, name)
		if !slices.ContainsFunc(names, func(name string) bool { return matches(p, name) }) {
			hint := strictyaml.Meant(p, names, "there are "+strings.Join(names, ", "))
			return nil, fmt.Errorf("no %s matches %q; %s", kind, p, hint)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(item T) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name(item)) })
	}), nil
}

// lastingWarmup is the maximum warm-up of a run with a time budget. The warm-up ends when the
// service is warm. It does not depend on the budget, because it is part of the method: runs of four
// and of five minutes are compared.
const lastingWarmup = Duration(30 * time.Second)

// lasting sets enough blocks that no run reaches the last one in the time: one more than a single
// target could have that is warm immediately.
func (s *Suite) lasting(o Override) {
	s.For = o.For
	if o.Warmup == 0 {
		s.Warmup.Max = max(s.Warmup.Max, lastingWarmup)
	}
	s.Blocks = s.within(o.For)
}

// within returns how many blocks of a single target that is warm immediately fit into a time, plus
// one.
func (s *Suite) within(time Duration) int {
	least := s.Warmup.Min
	for _, l := range s.Loads {
		least += Duration(l.Length())
	}
	return int(min(time/max(least, 1)+1, blocksMax))
}

// place replaces launchers, limits and generators.
func (s *Suite) place(o Override) {
	if len(o.Launchers) > 0 {
		s.Launchers = slices.Clone(o.Launchers)
		s.settle()
	}
	s.Limits.CPUs = cmp.Or(o.Limits.CPUs, s.Limits.CPUs)
	s.Limits.Memory = cmp.Or(o.Limits.Memory, s.Limits.Memory)
	for i := range s.Loads {
		s.Loads[i].Generators = cmp.Or(o.Generators, s.Loads[i].Generators)
	}
}

// watch adds agents and profiles.
func (s *Suite) watch(o Override) {
	s.Variants = s.withAgents(o.Agents)
	if o.Observed {
		s.Observed, s.Watch, s.Watching = true, o.Watch, nil
		for _, agent := range o.Watching {
			// A name that differs from all variants of the comparison, which may have the same
			// agent.
			s.Watching = append(s.Watching, Variant{Name: agentName(agent) + "+", Agent: agent})
		}
	}
	for _, kind := range o.InWindow {
		if !slices.Contains(s.Observe.Profile, kind) {
			s.Observe.Profile = append(slices.Clone(s.Observe.Profile), kind)
		}
	}
}

// drive replaces the load generators, if there are others.
func (s *Suite) drive(drivers []string) {
	switch {
	case slices.Equal(drivers, Drivers[:1]): // the default, which permits slices
		s.Drivers = nil
	case len(drivers) > 0:
		s.Drivers = slices.Clone(drivers)
	}
}

// withAgents returns the variants with these agents instead of the suite's agents: variants of the
// suite that have one of them, and further ones for the others.
func (s *Suite) withAgents(names []string) []Variant {
	all := slices.Clone(s.Variants)
	if len(names) == 0 {
		return all
	}
	all = slices.DeleteFunc(all, func(v Variant) bool {
		return v.Agent != "" && !slices.Contains(names, v.Agent)
	})
	for _, name := range names {
		if !slices.ContainsFunc(all, func(v Variant) bool { return v.Agent == name }) {
			all = append(all, Variant{Name: agentName(name), Agent: name})
		}
	}
	return all
}

// hasten shortens a measurement to a preview. Other flags apply after it.
func (s *Suite) hasten() {
	if s.Interleave == ByBlocks || s.blockwise() != "" {
		s.Blocks = min(s.Blocks, quickBlocks)
	} else {
		s.Blocks, s.Slices = min(s.Blocks, quickStarts), min(s.Slices, quickSlices)
	}
	s.preview = preview{min(s.Warmup.Max, quickJVMWarmup), quickJVMStarts}
	s.Warmup.Max = min(s.Warmup.Max, quickWarmup)
	s.Warmup.Min = min(s.Warmup.Min, s.Warmup.Max)
	s.Warmup.MinCompiling = min(s.Warmup.MinCompiling, s.Warmup.Max)
	s.Capacity.Measure = min(s.Capacity.Measure, quickWindow)
	for i := range s.Loads {
		s.Loads[i].Measure = min(s.Loads[i].Measure, quickWindow)
		s.Loads[i].Lead = min(s.Loads[i].Lead, quickWindow/5)
		s.Loads[i].Budget = min(s.Loads[i].Budget, quickSearch)
	}
}

// extend lengthens the warm-ups of a quick run with targets on a JVM, and limits its starts. It
// returns what it did, for the user; empty: nothing.
func (s *Suite) extend(targets []Target) string {
	jvm := slices.ContainsFunc(targets, func(t Target) bool {
		return runtimes.Of(t.Runtime).HotSpot
	})
	if !jvm || s.preview.warmup <= s.Warmup.Max {
		return ""
	}
	s.Warmup.Max = s.preview.warmup
	if most := s.preview.starts; most > 0 {
		s.Blocks = min(s.Blocks, most)
	}
	return fmt.Sprintf("--quick: JVMs warm up until they are steady, for up to %v, because before "+
		"that they compile", time.Duration(s.Warmup.Max))
}

func sceneName(s Scenario) string { return s.Name }

func loadName(l Load) string { return l.Name }

func variantName(v Variant) string { return v.Name }

func namesOf[T any](all []T, name func(T) string) (names []string) {
	for _, item := range all {
		names = append(names, name(item))
	}
	return names
}
