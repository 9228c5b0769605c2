// Package host describes the machine that the lab runs on: its processors, their division, and the
// facts that a record has. Facts that the kernel does not provide are "unknown", never guessed.
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

// Layout divides processors between the service and the load; the load's cores also run the rest of
// the lab.
type Layout struct {
	Service []int
	Load    []int
	Home    []int // for the collector, if enough cores exist; else empty
	Backing []int // for backing processes, such as a database, if enough cores exist
	Shared  bool  // the only processor serves both service and load
}

// Divide gives the service its limit of CPUs, rounded up to cores, and the rest to the load, which
// gets at least one. The service gets the higher numbers, because interrupts of devices usually
// arrive at the lower ones. Divide returns an error if the cores don't suffice.
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

// Describe fills in a record's facts about the machine.
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

// AvailableBytes returns the memory that programs may still use without swapping (proc(5),
// MemAvailable), in bytes; 0 if unknown.
func AvailableBytes() int64 {
	return KiB(Field(read("/proc/meminfo"), "MemAvailable"))
}

// TotalBytes returns the memory of the machine (proc(5), MemTotal), in bytes; 0 if unknown.
func TotalBytes() int64 { return KiB(Field(read("/proc/meminfo"), "MemTotal")) }

// CgroupVersion returns which hierarchy has the processor controllers below root, the mount point
// of cgroups: "v1", "v2" or "none". In a hybrid setup, version 2 is mounted one folder below and
// has no controllers (systemd's CGROUP_DELEGATION); that is v1.
func CgroupVersion(root string) string {
	// Version 2 is checked first, because its root also has files with names like cpu.stat.
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

// Field returns the value of the first "name : value" line, or "" if no line has the name.
func Field(lines, name string) string {
	for l := range strings.SplitSeq(lines, "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// KiB converts a number of KiB in the form of /proc ("12 kB") to bytes; 0 if it is malformed.
func KiB(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// Cores returns the cores of the service and the load, in order.
func (l Layout) Cores() []int {
	all := slices.Concat(l.Service, l.Load)
	slices.Sort(all)
	return slices.Compact(all)
}

// Processor is a processor as the kernel numbers them: both of an SMT pair have the same Core.
type Processor struct{ ID, Core, Node int }

// Processors returns the core and NUMA node of each processor. If the kernel does not provide them,
// a processor is its own core, on node 0.
func Processors(ids []int) (out []Processor) {
	for _, id := range ids {
		dir := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", id)
		p := Processor{ID: id, Core: id}
		// "0,4" or "0-1": the first of the siblings names the core.
		siblings := read(dir + "/topology/thread_siblings_list")
		_, _ = fmt.Sscanf(siblings, "%d", &p.Core) // malformed text leaves the default
		if nodes, _ := filepath.Glob(dir + "/node*"); len(nodes) > 0 {
			_, _ = fmt.Sscanf(filepath.Base(nodes[0]), "node%d", &p.Node)
		}
		out = append(out, p)
	}
	return out
}

// leave is the smallest number of cores that the load keeps when other things get their own cores:
// more than one thread, and as many as the service may use.
const leave = 2

// Apart gives the collector its own core if enough cores exist; see spare.
//
// It does so even if a run has no collector, so that runs with and without telemetry are
// comparable.
func (l Layout) Apart(all []Processor) Layout {
	l.Home = l.spare(all)
	return l.without(l.Home)
}

// Back gives backing processes, such as a database, their own core if enough cores exist; see
// spare. Call Apart first.
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

// spare returns all processors of a core that neither service nor load has to share: an unused
// core, or one of the load's. The load keeps at least two cores and as many as the service has;
// otherwise spare returns none. For the sake of memory bandwidth it prefers a NUMA node without the
// service. Among the load's cores it takes the last, because the load's first threads use the
// first.
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
