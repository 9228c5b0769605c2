// Package host knows the machine that the lab runs on: its processors and who gets which, and what
// a record must say of it. What a kernel does not tell is "unknown", never guessed.
package host

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"prony.example/record"
)

// Layout divides processors between the service and the load with everything else of the lab.
type Layout struct {
	Service []int
	Load    []int
	Home    []int // the home of telemetry's own, where there are enough; else none
	Backing []int // those of backing processes, such as a database, likewise
	Shared  bool  // there was one processor only: service and load take turns on it
}

// Divide gives the service as many cores as it may use processors (rounded up) and the rest to the
// load, which keeps at least one. The service gets the higher numbers: interrupts of devices
// usually arrive at the lower ones.
func Divide(cores []int, cpus float64) (Layout, error) {
	want := int(math.Ceil(cpus))
	switch {
	case len(cores) == 0 || want < 1:
		return Layout{}, fmt.Errorf("divide %d cores: there is no room for a service with %g CPUs",
			len(cores), cpus)
	case len(cores) == 1 && want == 1:
		return Layout{Service: cores, Load: cores, Shared: true}, nil
	case want >= len(cores):
		return Layout{}, fmt.Errorf("divide %d cores: the service requests %d cores and the load "+
			"needs 1; set limits.cpus to %d or less", len(cores), want, max(len(cores)-1, 1))
	}
	pos := len(cores) - want
	return Layout{Service: cores[pos:], Load: cores[:pos]}, nil
}

// Describe fills in what a record says of the machine.
func Describe(p *record.Provenance) {
	p.OS, p.Kernel = system()
	p.Arch = runtime.GOARCH
	cpuinfo := read("/proc/cpuinfo")
	p.CPUModel = cmp.Or(Field(cpuinfo, "model name"), "unknown")
	p.Hypervisor = strings.Contains(" "+Field(cpuinfo, "flags")+" ", " hypervisor ")
	p.Cores = runtime.NumCPU()
	if cores, err := Cores(); err == nil {
		p.Cores = len(cores)
	}
	p.MemoryBytes = KiB(Field(read("/proc/meminfo"), "MemTotal"))
	p.Governor = cmp.Or(read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), noGovernor)
	p.Cgroup = CgroupVersion("/sys/fs/cgroup")
}

// AvailableBytes is the memory that programs may still take before others are pushed out (proc(5),
// MemAvailable); 0 unknown.
func AvailableBytes() int64 {
	return KiB(Field(read("/proc/meminfo"), "MemAvailable"))
}

// CgroupVersion tells which hierarchy holds the controllers of processors below root, where the
// kernel's are mounted: "v1", "v2" or "none". In a hybrid set-up, version 2 is mounted one folder
// below and holds none (systemd's CGROUP_DELEGATION); that is v1.
func CgroupVersion(root string) string {
	// Asked first: the root of version 2 has files named cpu.stat and the like.
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return "v2"
	}
	if dirs, _ := filepath.Glob(filepath.Join(root, "cpu*")); len(dirs) > 0 {
		return "v1"
	}
	return "none"
}

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Field returns the value of the first "name : value" line, "" where there is none.
func Field(lines, name string) string {
	for l := range strings.SplitSeq(lines, "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// KiB is a number of KiB as /proc writes it ("12 kB") in bytes, 0 where it is none.
func KiB(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// Cores are those of the service and of the load, in order.
func (l Layout) Cores() []int {
	all := slices.Concat(l.Service, l.Load)
	slices.Sort(all)
	return slices.Compact(all)
}

// Processor is one that the kernel schedules on, as it has them: of an SMT pair both have one core.
type Processor struct{ ID, Core, Node int }

// Processors says of each which core and which NUMA node it is of. One of which the kernel does not
// say is a core of its own, on node 0.
func Processors(ids []int) (out []Processor) {
	for _, id := range ids {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", id)
		p := Processor{ID: id, Core: id}
		// "0,4" or "0-1": the first of those that share a core stands for it.
		siblings := read(dir + "/topology/thread_siblings_list")
		_, _ = fmt.Sscanf(siblings, "%d", &p.Core) // what is no number changes nothing
		if nodes, _ := filepath.Glob(dir + "/node*"); len(nodes) > 0 {
			_, _ = fmt.Sscanf(filepath.Base(nodes[0]), "node%d", &p.Node)
		}
		out = append(out, p)
	}
	return out
}

// leave is what the load keeps at least, in cores, before anything else has one of its own: more
// than one thread, and as many as the service may use.
const leave = 2

// Apart gives the home of telemetry a core of its own where there are enough; see spare.
//
// It does so whether there is a home or not: a run with telemetry is measured as one without.
func (l Layout) Apart(all []Processor) Layout {
	l.Home = l.spare(all)
	return l.without(l.Home)
}

// Back gives backing processes, such as a database, a core of their own where there are enough; see
// spare. The home has its own before.
func (l Layout) Back(all []Processor) Layout {
	l.Backing = l.spare(all)
	return l.without(l.Backing)
}

// without takes processors from the load.
func (l Layout) without(ids []int) Layout {
	l.Load = slices.DeleteFunc(slices.Clone(l.Load), func(id int) bool {
		return slices.Contains(ids, id)
	})
	return l
}

// spare is a core, whole, with all processors of an SMT group, that neither service nor load has to
// share: one that nobody has, else one of the load's, which keeps two and as many
// as the service has. None where there are not enough. It is on another NUMA node than the service
// where the load has cores on one, for memory's sake, and the last of them, since the load's first
// threads have the first.
func (l Layout) spare(all []Processor) (out []int) {
	cores := map[int][]Processor{}
	var names []int
	serves := map[int]bool{} // nodes
	for _, p := range all {
		if !slices.Contains(names, p.Core) {
			names = append(names, p.Core)
		}
		cores[p.Core] = append(cores[p.Core], p)
		serves[p.Node] = serves[p.Node] || slices.Contains(l.Service, p.ID)
	}
	rounded := func(in func(id int) bool) (out []int) {
		for _, name := range names {
			if !slices.ContainsFunc(cores[name], func(p Processor) bool { return !in(p.ID) }) {
				out = append(out, name)
			}
		}
		return out
	}
	used := slices.Concat(l.Cores(), l.Home, l.Backing)
	free := rounded(func(id int) bool { return !slices.Contains(used, id) })
	if len(free) == 0 && !l.Shared {
		free = rounded(func(id int) bool {
			return slices.Contains(l.Load, id) && !slices.Contains(l.Service, id)
		})
		peers := slices.Concat(l.Load, l.Home, l.Backing)
		served := rounded(func(id int) bool { return !slices.Contains(peers, id) })
		if len(free) <= max(leave, len(served)) {
			return nil
		}
	}
	if len(free) == 0 {
		return nil
	}
	chosen := free[len(free)-1]
	for _, name := range free {
		if !serves[cores[name][0].Node] {
			chosen = name
		}
	}
	for _, p := range cores[chosen] {
		out = append(out, p.ID)
	}
	return out
}
