package cgroup

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
	"prony.example/record"
)

// CPUPeriodUs is the period of a processor quota. The kernel's default: shorter ones throttle in
// smaller pieces at a higher price (Documentation/scheduler/sched-bwc.rst).
const CPUPeriodUs = 100000

// QuotaUs is the processor time in a period of so many cores, the nearest that there is.
func QuotaUs(cpus float64) int64 { return int64(math.Round(cpus * CPUPeriodUs)) }

// Setting is what a file of a control group has to say for a limit to be in force.
type Setting struct {
	Limit string // as Limits says it: cpuset, cpu quota, memory
	File  string
	Value any
}

// Settings are those of a spec in a group. A new group of version 1 has no cores and no memory of
// its own, and nothing may join it until it has both: without cores in the spec it takes those of
// the group above.
func Settings(g launch.Group, s launch.Spec) (out []Setting) {
	v1, above := g.Version == 1, filepath.Dir(g.Dir)
	value := func(controller string) bool { return !v1 || g.Controller == controller }
	cores := CoreList(s.Cores)
	if v1 && value("cpuset") {
		cores = cmp.Or(cores, Value(above, "cpuset.cpus"))
		out = append(out, Setting{"cpuset", "cpuset.mems", Value(above, "cpuset.mems")})
	}
	if value("cpuset") && cores != "" {
		out = append(out, Setting{"cpuset", "cpuset.cpus", cores})
	}
	switch quota := QuotaUs(s.CPUs); {
	case !s.NeedsQuota() || !value("cpu"):
	case v1:
		out = append(out, Setting{"cpu quota", "cpu.cfs_period_us", CPUPeriodUs},
			Setting{"cpu quota", "cpu.cfs_quota_us", quota})
	default:
		out = append(out, Setting{"cpu quota", "cpu.max", fmt.Sprint(quota, " ", CPUPeriodUs)})
	}
	if value("memory") && s.MemoryBytes > 0 {
		out = append(out, Setting{"memory", memoryFile(g.Version), s.MemoryBytes})
	}
	return out
}

// Delegate lets the groups of version 2 below a folder have controllers. Where that is refused they
// may have them already, which their own files tell.
func Delegate(dir string) {
	for _, c := range []string{"+cpu", "+cpuset", "+memory"} {
		_ = Write(dir, "cgroup.subtree_control", c)
	}
}

// Limits reads back which limits of a spec are in force, as launch.Process.Limits says them: on
// cores, processor time and memory by the groups, and on cores by the affinity of a process. With
// process 0 only the groups are looked at; the error is about the affinity alone.
func Limits(groups []launch.Group, pid int, s launch.Spec) (inForce []record.Limit, err error) {
	retained := func(version int, l record.Limit) {
		l.By = record.ByCgroup1
		if version == 2 {
			l.By = record.ByCgroup2
		}
		inForce = append(inForce, l)
	}
	// A group that was given no cores has all those of the group above.
	if dir, v := Find(groups, "cpuset"); dir != "" && len(s.Cores) > 0 {
		if cores := ParseCores(Value(dir, "cpuset.cpus")); len(cores) > 0 {
			retained(v, record.Limit{Kind: record.LimitCores, Cores: cores})
		}
	}
	if dir, v := Find(groups, "cpu"); dir != "" {
		if cpus := quota(dir, v); cpus > 0 {
			retained(v, record.Limit{Kind: record.LimitCPU, Value: cpus})
		}
	}
	if dir, v := Find(groups, "memory"); dir != "" {
		if limit := memoryLimit(dir, v); limit > 0 {
			retained(v, record.Limit{Kind: record.LimitMemory, Value: float64(limit)})
		}
	}
	if pid == 0 {
		return inForce, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return inForce, fmt.Errorf("affinity: %w", err)
	}
	foreign := func(core int) bool { return !set.IsSet(core) }
	if set.Count() == len(s.Cores) && !slices.ContainsFunc(s.Cores, foreign) {
		inForce = append(inForce, record.Limit{Kind: record.LimitCores, By: record.ByAffinity,
			Cores: s.Cores})
	}
	return inForce, nil
}

// Unenforced lists the limits of a spec that nothing in force holds, each with the reason, and its
// detail where there is one.
func Unenforced(s launch.Spec, inForce []record.Limit, reason, detail string) (
	missing []record.Limit) {
	check := func(requested bool, l record.Limit) {
		if requested && !slices.ContainsFunc(inForce, func(have record.Limit) bool {
			return have.Kind == l.Kind
		}) {
			missing = append(missing, record.Unenforced(l, reason, detail))
		}
	}
	check(len(s.Cores) > 0, record.Limit{Kind: record.LimitCores, Cores: s.Cores})
	check(s.NeedsQuota(), record.Limit{Kind: record.LimitCPU, Value: s.CPUs})
	check(s.MemoryBytes > 0, record.Limit{Kind: record.LimitMemory, Value: float64(s.MemoryBytes)})
	return missing
}

// quota is processor time per second; 0 for no quota. Its files: scheduler/sched-bwc.rst for
// version 1, admin-guide/cgroup-v2.rst for version 2, both of the kernel's documentation.
func quota(dir string, version int) float64 {
	text := Value(dir, "cpu.max")
	if version == 1 {
		text = Value(dir, "cpu.cfs_quota_us") + " " +
			Value(dir, "cpu.cfs_period_us")
	}
	time, period, _ := strings.Cut(text, " ")
	t, err1 := strconv.ParseFloat(time, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || t <= 0 || p <= 0 {
		return 0 // "max" and -1 are no quota
	}
	return t / p
}

// unlimitedV1 is above every limit that somebody set: without one version 1 gives the largest
// number of whole pages.
const unlimitedV1 = 1 << 62

// memoryLimit is in bytes; 0 for none.
func memoryLimit(dir string, version int) int64 {
	n, err := strconv.ParseInt(Value(dir, memoryFile(version)), 10, 64)
	if err != nil || n >= unlimitedV1 {
		return 0
	}
	return n
}

func memoryFile(version int) string {
	if version == 1 {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}
