package doctor

import (
	"fmt"
	"slices"

	"prony.example/internal/launch/cgroup"
)

// hybrid are the lists of cores that Linux has on x86 with two types of cores.
const (
	performance = "sys/devices/cpu_core/cpus"
	efficiency  = "sys/devices/cpu_atom/cpus"
)

// coreTypes compares the types of the cores that prony may use: on x86 by their lists, on others by
// the capacity that the kernel gives each core.
func coreTypes(m *machine) finding {
	if len(m.cores) == 0 {
		return unknown(noCores)
	}
	fast := usable(m, performance)
	if slow := usable(m, efficiency); len(fast) > 0 && len(slow) > 0 {
		return doubtful(fmt.Sprintf("performance cores %v and efficiency cores %v", fast, slow),
			"start prony with taskset -c "+cgroup.CoreList(fast))
	}
	most := int64(0)
	var all, best []int
	for _, core := range m.cores {
		capacity := m.number(ofCore(core, "cpu_capacity"))
		if capacity <= 0 {
			continue
		}
		all = append(all, core)
		if capacity > most {
			most, best = capacity, nil
		}
		if capacity == most {
			best = append(best, core)
		}
	}
	if len(best) < len(all) {
		return doubtful(fmt.Sprintf("only cores %v have the full capacity", best),
			"start prony with taskset -c "+cgroup.CoreList(best))
	}
	return fit("one type")
}

// usable returns the cores of a list that prony may use.
func usable(m *machine, list string) []int {
	return slices.DeleteFunc(cgroup.ParseCores(m.text(list)), func(core int) bool {
		return !slices.Contains(m.cores, core)
	})
}
