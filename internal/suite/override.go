package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/record"
)

// Override is what flags change; a zero value leaves the file's.
type Override struct {
	Blocks  int
	Seed    *uint64
	Measure Duration // of every load; slices last at most five times as long
	// Generators offer every load together; 0: as the suite says.
	Generators int
	Warmup     Duration // Max; Min is lowered to it where it would be longer
	For        Duration // instead of blocks; 0: blocks. With Precision it is a bound
	// Precision is half the width of the interval that starts are planned for; 0: none is wanted.
	Precision Percent
	Metric    string // with Precision: one of PrecisionMetrics; empty: the first
	Targets   []string
	Limits    Limits // what is 0 is the file's
	// Scenarios are globs (path.Match) over their names; nil: all of the file's.
	Scenarios []string
	// Loads are such globs, too. A load stays whose rate another is a share of.
	Loads []string
	// Launchers start the targets; nil: as the suite says.
	Launchers []string
	AA        bool
	// Interleave is how targets are compared; empty: as the suite says.
	Interleave string
	Freeze     string   // one of Freezing; empty: as the suite says
	Slices     Duration // of each target in a start; 0: as the suite says
	// Agents ride along as further variants. Observed, Watching and Watch are those of the suite.
	Agents   []string
	Observed bool
	Watching []string
	Watch    Observe
	InWindow []string // kinds of profiles to take in all trials
	Quick    bool     // a look: at most so many blocks, so long a window and warm-up as below
}

// What a quick run has at most. It shows that everything works and what is roughly to be expected;
// it tells apart what differs by half.
const (
	quickBlocks = 2
	quickStarts = 4 // by slices, which are short
	quickSlices = Duration(time.Second)
	quickWindow = Duration(time.Second)
	quickWarmup = Duration(6 * time.Second)
	quickSearch = 20 * quickWindow
)

// slicesByMeasure is how many times a flag's window the time in slices may last.
const slicesByMeasure = 5

// Override applies o, or returns an error and changes nothing. Hash stays the file's; the plan's
// hash follows what is really done.
func (s *Suite) Override(o Override) error {
	changed := *s
	if err := changed.narrow(o); err != nil { // first: what is left is what has a length
		return fmt.Errorf("override suite %s: %w", s.Name, err)
	}
	changed.Loads = slices.Clone(changed.Loads)
	changed.AA = s.AA || o.AA
	changed.Interleave = cmp.Or(o.Interleave, s.Interleave)
	changed.Freeze = cmp.Or(o.Freeze, s.Freeze)
	changed.Slices = cmp.Or(o.Slices, s.Slices)
	if o.Quick {
		changed.hasten()
	}
	changed.Blocks = cmp.Or(o.Blocks, changed.Blocks)
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
	for i := range changed.Loads {
		changed.Loads[i].Generators = cmp.Or(o.Generators, changed.Loads[i].Generators)
	}
	if o.Warmup != 0 {
		changed.Warmup.Max = o.Warmup
		changed.Warmup.Min = min(changed.Warmup.Min, o.Warmup)
	}
	for i := range changed.Loads {
		if l := &changed.Loads[i]; l.Model == record.Capacity { // a flag's window has its room
			l.Budget = max(l.Budget, searchWindows*l.Measure)
		}
	}
	if o.Precision != 0 {
		changed.Precision = Precision{Half: o.Precision, Within: o.For,
			Metric: cmp.Or(o.Metric, PrecisionMetrics[0])}
	} else if o.For != 0 {
		changed.lasting(o)
	}
	changed.watch(o)
	if len(o.Launchers) > 0 {
		changed.Launchers = slices.Clone(o.Launchers)
		changed.settle()
	}
	if len(o.Targets) > 0 {
		changed.Targets = slices.Clone(o.Targets)
		changed.retargeted = true
	}
	changed.Limits.CPUs = cmp.Or(o.Limits.CPUs, changed.Limits.CPUs)
	changed.Limits.Memory = cmp.Or(o.Limits.Memory, changed.Limits.Memory)
	if err := changed.check(&checker{}); err != nil {
		return fmt.Errorf("override suite %s: %w", s.Name, err)
	}
	*s = changed
	return nil
}

// narrow keeps the scenarios and the loads that a pattern matches, and loads that those offer a
// share of. Each pattern must match one.
func (s *Suite) narrow(o Override) error {
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
	if !s.usesCapacity() { // then nobody asks for it
		s.Capacity = Capacity{}
	}
	return nil
}

// chosen are those of all whose name a pattern matches; all, where there is no pattern.
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

// lastingWarmup is the longest warm-up of a run that goes on for a time. It ends when the service
// is warm, so that only those who need it have it. It is the same for all times, since it is part
// of the method: runs for four minutes and for five are compared.
const lastingWarmup = Duration(30 * time.Second)

// lasting makes the plan so long that no run of the time gets to its end: with one block more than
// a single target, warm at once, could have.
func (s *Suite) lasting(o Override) {
	s.For = o.For
	if o.Warmup == 0 {
		s.Warmup.Max = max(s.Warmup.Max, lastingWarmup)
	}
	s.Blocks = s.within(o.For)
}

// within is how many blocks of a single target, warm at once, a time could have, and one more.
func (s *Suite) within(time Duration) int {
	least := s.Warmup.Min
	for _, l := range s.Loads {
		least += Duration(l.Length())
	}
	return int(min(time/max(least, 1)+1, blocksMax))
}

// watch adds what rides along and what is watched.
func (s *Suite) watch(o Override) {
	s.Variants = slices.Clone(s.Variants)
	for _, agent := range o.Agents {
		s.Variants = append(s.Variants, Variant{Name: agentName(agent), Agent: agent})
	}
	if o.Observed {
		s.Observed, s.Watch, s.Watching = true, o.Watch, nil
		for _, agent := range o.Watching {
			// A name that no variant of the comparison can have: it may have the same agent.
			s.Watching = append(s.Watching, Variant{Name: agentName(agent) + "+", Agent: agent})
		}
	}
	for _, kind := range o.InWindow {
		if !slices.Contains(s.Observe.Profile, kind) {
			s.Observe.Profile = append(slices.Clone(s.Observe.Profile), kind)
		}
	}
}

// hasten makes a look of a measurement. What flags ask for besides comes after it.
func (s *Suite) hasten() {
	if s.Interleave == ByBlocks || s.blockwise() != "" {
		s.Blocks = min(s.Blocks, quickBlocks)
	} else {
		s.Blocks, s.Slices = min(s.Blocks, quickStarts), min(s.Slices, quickSlices)
	}
	s.Warmup.Max = min(s.Warmup.Max, quickWarmup)
	s.Warmup.Min = min(s.Warmup.Min, s.Warmup.Max)
	s.Capacity.Measure = min(s.Capacity.Measure, quickWindow)
	for i := range s.Loads {
		s.Loads[i].Measure = min(s.Loads[i].Measure, quickWindow)
		s.Loads[i].Lead = min(s.Loads[i].Lead, quickWindow/5)
		s.Loads[i].Budget = min(s.Loads[i].Budget, quickSearch)
	}
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
