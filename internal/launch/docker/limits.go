package docker

import (
	"fmt"

	"prony/internal/launch/kernel"
)

// noteLimits reads back from the kernel what is in force, and notes which limits nothing enforces.
func (p *proc) noteLimits() {
	groups, why := p.groups, ""
	switch {
	case p.pid == 0:
		why = "it ended before they could be read"
	case len(groups) == 0:
		why = "the container's control groups are not mounted here"
	}
	if p.pod != nil {
		groups = p.pod.groups
	}
	// Where the process has ended meanwhile, nothing is known of its affinity.
	p.InForce, _ = kernel.Limits(groups, p.pid, p.Spec)
	p.Missing = kernel.Unenforced(p.Spec, p.InForce, why)
	s := p.Spec
	if p.noPod != "" {
		if s.NeedsQuota() {
			p.Missing = append(p.Missing, fmt.Sprintf("%g CPUs for the system as a whole: each "+
				"container has as many: %s", s.CPUs, p.noPod))
		}
		if s.MemoryBytes > 0 {
			p.Missing = append(p.Missing, fmt.Sprintf("memory %d for the system as a whole: each "+
				"container has its share of it: %s", s.MemoryBytes, p.noPod))
		}
	}
	if s.MemoryBytes > 0 && !kernel.SwapLimited(groups) && kernel.HasSwap() {
		p.Missing = append(p.Missing, "no swap: the kernel does not count it")
	}
}
