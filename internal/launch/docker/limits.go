package docker

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"prony/internal/launch/kernel"
)

// noteLimits reads back from the kernel what is in force, and notes which limits nothing enforces.
func (p *proc) noteLimits() {
	groups, why := p.groups, ""
	switch {
	case p.pid == 0:
		why = ": it ended before they could be read"
	case len(groups) == 0:
		why = ": the container's control groups are not mounted here"
	}
	if p.pod != nil {
		groups = p.pod.groups
	}
	inForce := kernel.Limits(groups)
	if len(p.spec.Cores) == 0 {
		// It has all those of the group above.
		inForce = slices.DeleteFunc(inForce, func(s string) bool {
			return strings.HasPrefix(s, "cpuset")
		})
	}
	var set unix.CPUSet
	if p.pid > 0 && unix.SchedGetaffinity(p.pid, &set) == nil && p.isOn(&set) {
		inForce = append(inForce, "affinity "+kernel.CoreList(p.spec.Cores))
	}
	p.inForce, p.missing = inForce, p.unenforced(inForce, why)
}

func (p *proc) isOn(set *unix.CPUSet) bool {
	all := set.Count() == len(p.spec.Cores)
	for _, c := range p.spec.Cores {
		all = all && set.IsSet(c)
	}
	return all && len(p.spec.Cores) > 0
}

// unenforced lists the limits of the spec that nothing in force holds.
func (p *proc) unenforced(inForce []string, why string) (missing []string) {
	has := func(what string) bool {
		return slices.ContainsFunc(inForce, func(s string) bool {
			return strings.HasPrefix(s, what)
		})
	}
	s := p.spec
	if len(s.Cores) > 0 && !has("cpuset") && !has("affinity") {
		missing = append(missing, fmt.Sprintf("cores %v%s", s.Cores, why))
	}
	if s.NeedsQuota() && !has("cpu quota") {
		missing = append(missing, fmt.Sprintf("%g CPUs%s", s.CPUs, why))
	}
	if s.MemoryBytes > 0 && !has("memory") {
		missing = append(missing, fmt.Sprintf("memory %d%s", s.MemoryBytes, why))
	}
	if p.noPod != "" {
		if s.NeedsQuota() {
			missing = append(missing, fmt.Sprintf("%g CPUs for the system as a whole: each "+
				"container has as many: %s", s.CPUs, p.noPod))
		}
		if s.MemoryBytes > 0 {
			missing = append(missing, fmt.Sprintf("memory %d for the system as a whole: each "+
				"container has its share of it: %s", s.MemoryBytes, p.noPod))
		}
	}
	if s.MemoryBytes > 0 && !p.swapOff() && hasSwap() {
		missing = append(missing, "no swap: the kernel does not count it")
	}
	return missing
}

// swapOff says whether memory that is swapped out counts as memory, or there can be none.
func (p *proc) swapOff() bool {
	groups := p.groups
	if p.pod != nil {
		groups = p.pod.groups
	}
	return kernel.SwapLimited(groups)
}

// hasSwap says whether this host could swap anything out: /proc/swaps has a line for each place
// below its head.
func hasSwap() bool {
	b, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(b), "\n") > 1
}
