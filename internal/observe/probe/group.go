package probe

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Group is a cgroup directory of the service. Version 1 has a hierarchy for each controller:
// Controller names it ("cpuacct", "cpu", "memory"), or several that are mounted together
// ("cpu,cpuacct"). Version 2 has one directory for all controllers and ignores Controller.
type Group struct {
	Dir        string
	Controller string
	Version    int // 1 or 2
}

// Sources of the service's CPU time, as in record.Usage.Source.
const (
	sourceV1   = "cgroup v1"
	sourceV2   = "cgroup v2"
	sourceProc = "proc"
)

// groupFiles are the open files of the service's cgroups. pread reads them, so the sampling thread
// and a Mark can share them.
type groupFiles struct {
	source string
	usage  file // cpuacct.usage, or cpu.stat of version 2
	split  file // cpuacct.stat, or cpu.stat of version 2
	quota  file // cpu.stat
	memory file // memory.usage_in_bytes or memory.current
}

// openGroups opens the groups' files. Missing CPU accounting is an error, because a silent fallback
// would change the method between two trials of a run.
func openGroups(groups []Group) (groupFiles, error) {
	g := groupFiles{sourceProc, noFile, noFile, noFile, noFile}
	for _, group := range groups {
		var err error
		switch {
		case group.Version == 1:
			err = g.openV1(group)
		case group.Version == 2 && len(groups) == 1:
			err = g.openV2(group)
		case group.Version == 2:
			err = errors.New("cgroup version 2 has one directory for all controllers, and cannot " +
				"be combined with other versions")
		default:
			err = fmt.Errorf("cgroup version %d is unknown; supported are 1 and 2", group.Version)
		}
		if err != nil {
			g.close()
			return g, fmt.Errorf("open CPU accounting of cgroup %s: %w (without groups the "+
				"probe sums over the service's processes)", group.Dir, err)
		}
	}
	return g, nil
}

// openV1 follows Documentation/admin-guide/cgroup-v1 of the kernel: cpuacct.rst, memory.rst, and
// scheduler/sched-bwc.rst for cpu.stat.
func (g *groupFiles) openV1(group Group) error {
	for controller := range strings.SplitSeq(group.Controller, ",") {
		var err error
		switch controller {
		case "cpuacct":
			g.source = sourceV1
			if g.usage, err = openFile(filepath.Join(group.Dir, "cpuacct.usage")); err == nil {
				g.split, err = openFile(filepath.Join(group.Dir, "cpuacct.stat"))
			}
		case "cpu":
			g.quota = optional(filepath.Join(group.Dir, "cpu.stat"))
		case "memory":
			g.memory = optional(filepath.Join(group.Dir, "memory.usage_in_bytes"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openV2 follows Documentation/admin-guide/cgroup-v2.rst. cpu.stat has the usage even if the cpu
// controller is off; the throttling lines and memory.current need their controllers.
func (g *groupFiles) openV2(group Group) error {
	usage, err := openFile(filepath.Join(group.Dir, "cpu.stat"))
	if err != nil {
		return err
	}
	g.source = sourceV2
	g.usage, g.split, g.quota = usage, usage, usage
	g.memory = optional(filepath.Join(group.Dir, "memory.current"))
	return nil
}

func (g *groupFiles) close() {
	if g.source == sourceV2 { // three names of one file
		g.split, g.quota = noFile, noFile
	}
	for _, f := range []*file{&g.usage, &g.split, &g.quota, &g.memory} {
		f.close()
	}
}

// cpuNs returns the CPU time of all processes that ever ran in the group, ended ones included. The
// kernel updates the time of running threads at its tick (1 to 10 ms).
func (g *groupFiles) cpuNs(buf []byte) int64 {
	switch g.source {
	case sourceV1:
		return leading(g.usage.read(buf))
	case sourceV2:
		return scaled(keyed(g.usage.read(buf), "usage_usec "), 1000)
	}
	return unknown
}

// splitNs returns user and system time: to 10 ms in version 1, to 1 µs in version 2. Ticks sample
// both, and the kernel scales them to add up to the exact sum.
func (g *groupFiles) splitNs(buf []byte) (userNs, systemNs int64) {
	b := g.split.read(buf)
	if g.source == sourceV2 {
		return scaled(keyed(b, "user_usec "), 1000), scaled(keyed(b, "system_usec "), 1000)
	}
	return scaled(keyed(b, "user "), TickNs), scaled(keyed(b, "system "), TickNs)
}

// throttled returns how often and for how long the quota stopped the group's threads.
func (g *groupFiles) throttled(buf []byte) (periods, ns int64) {
	b := g.quota.read(buf)
	periods = keyed(b, "nr_throttled ")
	if g.source == sourceV2 {
		return periods, scaled(keyed(b, "throttled_usec "), 1000)
	}
	return periods, keyed(b, "throttled_time ")
}

// memoryBytes returns what the memory controller charges to the group. It includes page cache and
// kernel memory and so is not RSS, but the limit applies to it.
func (g *groupFiles) memoryBytes(buf []byte) int64 {
	return leading(g.memory.read(buf))
}
