package suite

import (
	"fmt"
	"slices"
	"strings"

	"prony.example/record"
)

// Ways to run two targets at once.
const (
	Apart  = "apart"  // each service and each load on cores of its own
	Shared = "shared" // a service and its load share cores; the two sides still do not
)

// Sides of a duet.
const (
	Left  = "left"  // the lower cores
	Right = "right" // the higher ones
)

// pair makes duets of the trials where the suite asks for them, and changes nothing else.
//
// The blocks that the suite asks for become passes over all pairs, which run in the order that the
// shuffle brought. Each duet is a block of its own, because only trials that ran side by side are a
// pair: with a baseline and three others the baseline runs three times a pass, and each ratio is to
// the one of its own moment. The two trials of a duet are neighbours in the plan, the left one
// first; who is left changes from pass to pass.
func (p *Plan) pair() error {
	s := p.Suite
	switch {
	case s.Duet == "":
		return nil
	case s.Duet != Apart && s.Duet != Shared:
		return fmt.Errorf("plan duets of %s: %q is no way to run them; there are %s and %s",
			s.Name, s.Duet, Apart, Shared)
	case len(s.Variants) > 0:
		return fmt.Errorf("plan duets of %s: with what rides along, three and more of a kind "+
			"would have to be paired; leave out variants, or run without --duet", s.Name)
	case s.Observed || !s.Observe.IsZero():
		return fmt.Errorf("plan duets of %s: what the lab watches beside its samples, it watches "+
			"in one trial at a time; leave out --duet, or what is watched", s.Name)
	case s.usesCapacity():
		return fmt.Errorf("plan duets of %s: its rates are shares of a capacity, which a target "+
			"has alone; leave out --duet", s.Name)
	case slices.ContainsFunc(s.Loads, func(l Load) bool { return l.Model == record.Capacity }):
		return fmt.Errorf("plan duets of %s: two searches do not have the same steps; leave out "+
			"--duet, or the capacity load", s.Name)
	case slices.ContainsFunc(s.Loads, func(l Load) bool { return l.Generators > 0 }):
		return fmt.Errorf("plan duets of %s: generators agree their beginning among themselves, "+
			"not with those of the other side; leave out --duet, or generators", s.Name)
	case len(s.Launchers) > 1:
		return fmt.Errorf("plan duets of %s: with several launchers, three and more of a kind "+
			"would have to be paired; name one, or run without --duet", s.Name)
	case len(s.Drivers) > 0:
		return fmt.Errorf("plan duets of %s: only Prony's own generator can begin two loads at "+
			"the same moment; leave out drivers, or run without --duet", s.Name)
	}
	var out []Trial
	blocks := map[string]int{} // so far, by scenario
	for pass := 1; pass <= s.Blocks; pass++ {
		couples, err := p.couples(pass)
		if err != nil {
			return err
		}
		for _, c := range couples {
			scenario := c[0].Scenario
			blocks[scenario]++
			if pass%2 == 0 {
				c[0], c[1] = c[1], c[0]
			}
			c[0].Side, c[1].Side = Left, Right
			for i := range c {
				c[i].Block = blocks[scenario]
				c[i].Seed = s.loadSeed(c[i].Block, scenario)
			}
			out = append(out, c[:]...)
		}
	}
	p.Trials = out
	return nil
}

// couples are the pairs of a pass: each trial that is held against another, after that other.
func (p *Plan) couples(pass int) (out [][2]Trial, err error) {
	var trials []Trial
	for _, t := range p.Trials {
		if t.Block == pass {
			trials = append(trials, t)
		}
	}
	names := targetsOf(trials)
	var retained, references []Trial
	for _, t := range trials {
		against := func(o Trial) bool {
			return o.Scenario == t.Scenario && o != t && p.refers(t, o, names)
		}
		index := slices.IndexFunc(trials, against)
		if index < 0 {
			continue
		}
		out = append(out, [2]Trial{trials[index], t})
		retained, references = append(retained, t), append(references, trials[index])
	}
	for _, t := range trials {
		if !slices.Contains(retained, t) && !slices.Contains(references, t) {
			return nil, fmt.Errorf("plan duets of %s: %s has no partner among %s; name two "+
				"targets with --targets, give the suite a baseline, or measure each target "+
				"against itself with --aa", p.Suite.Name, t.Target, strings.Join(names, ", "))
		}
	}
	return out, nil
}

// refers says whether t is held against o, as tables do: the second arm of a target against its
// first; what is worked on against the same target of another checkout, "NAME@ORIGIN"; the others
// against the baseline; of two targets the second against the first, by name.
func (p *Plan) refers(t, o Trial, names []string) bool {
	foreign := func(name string) bool { return strings.Contains(name, "@") }
	switch {
	case p.Suite.AA:
		return t.Target == o.Target && t.Arm == Arms[1] && o.Arm == Arms[0]
	case slices.ContainsFunc(names, foreign):
		return !foreign(t.Target) && strings.HasPrefix(o.Target, t.Target+"@")
	case p.Baseline != "":
		return o.Target == p.Baseline && t.Target != p.Baseline
	}
	return len(names) == 2 && o.Target == names[0] && t.Target == names[1]
}

// targetsOf lists the targets of trials, by name.
func targetsOf(trials []Trial) []string {
	names := namesOf(trials, func(t Trial) string { return t.Target })
	slices.Sort(names)
	return slices.Compact(names)
}
