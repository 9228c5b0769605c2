package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// GroupsOf returns how many targets of a plan to run side by side if not all fit into memory, or
// why there can be no groups. Each group contains the baseline, and its control if there is one.
// reason says why not all targets run at once.
func (p *Plan) GroupsOf(fit int, reason string) (together int, why string) {
	s := p.Suite
	shared := 1
	if p.control != "" {
		shared++
	}
	switch {
	case p.Baseline == "":
		return 0, reason + ", and there is no baseline that the groups could share"
	case s.For > 0:
		return 0, reason + ", and groups of targets need a number of starts (--blocks)"
	case len(s.Variants) > 0 || s.AA || len(s.Drivers) > 1 || len(s.Launchers) > 1:
		return 0, reason + ", and only targets without variants can be divided into groups"
	case fit < shared+1:
		return 0, reason
	}
	starts := p.starts()
	for _, t := range p.Trials {
		targets := starts[t.Start]
		if len(targets) > fit && !slices.Contains(targets, p.Baseline) {
			return 0, fmt.Sprintf("%s, and scenario %s does not include the "+
				"baseline", reason, t.Scenario)
		}
	}
	return min(fit, mostSideBySide), ""
}

// starts returns the targets of each start.
func (p *Plan) starts() map[string][]string {
	out := map[string][]string{}
	for _, t := range p.Trials {
		if t.Start != "" {
			out[t.Start] = append(out[t.Start], t.Target)
		}
	}
	return out
}

// sideBySideOf returns how many of a scenario's trials in one block may run side by side, and the
// reason if not all; 0: there can be no groups.
func (p *Plan) sideBySideOf(trials []Trial) (most int, reason string) {
	if p.Suite.Together > 0 {
		return p.Suite.Together, p.Suite.Crowd
	}
	if len(trials) <= mostSideBySide {
		return len(trials), ""
	}
	reason = fmt.Sprintf("at most %d targets can run side by side", mostSideBySide)
	most, why := p.GroupsOf(mostSideBySide, reason)
	switch {
	case most == 0:
		return 0, why
	case !slices.ContainsFunc(trials, func(t Trial) bool { return t.Target == p.Baseline }):
		return 0, reason + ", and the scenario does not include the baseline"
	}
	return most, reason
}

// divide divides the trials of a scenario in one block into groups that share the baseline and its
// control, if not all can run side by side. The groups are as few as possible, have nearly the same
// number of targets, and are the same in all blocks. Each group is a start of its own and gets its
// own block number. Their order is random.
func (p *Plan) divide(trials []Trial) [][]Trial {
	most, reason := p.sideBySideOf(trials)
	if most == 0 {
		p.Blockwise = fmt.Sprintf("scenario %s: %s", trials[0].Scenario, reason)
	}
	if most == 0 || len(trials) <= most {
		return [][]Trial{trials}
	}
	var shared, compared []string
	for _, t := range trials {
		if t.Target == p.Baseline || t.Target == p.control {
			shared = append(shared, t.Target)
		} else {
			compared = append(compared, t.Target)
		}
	}
	slices.Sort(compared)
	size := most - len(shared)
	count := (len(compared) + size - 1) / size
	p.Grouped = fmt.Sprintf("%d groups of up to %d targets each, and each group includes %s: "+
		"%s", count,
		len(shared)+(len(compared)+count-1)/count, p.Baseline, reason)
	block := trials[0].Block
	out := make([][]Trial, count)
	for group := range out {
		members := append(slices.Clone(shared),
			compared[group*len(compared)/count:(group+1)*len(compared)/count]...)
		for _, t := range trials {
			if slices.Contains(members, t.Target) {
				t.Group, t.Block = group+1, (block-1)*count+group+1
				out[group] = append(out[group], t)
			}
		}
	}
	// A stream of its own: the block's shuffle has the block's number as its second seed.
	r := rand.New(rand.NewPCG(^p.Suite.Seed, uint64(block)))
	r.Shuffle(count, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
