package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/launch"
	"prony.example/record"
)

// CPUPeriodUs is the period of a processor quota, the kernel's default: shorter periods throttle in
// smaller pieces at a higher cost (Documentation/scheduler/sched-bwc.rst).
const CPUPeriodUs = 100000

// QuotaUs returns the processor time of this many cores in one period, rounded to 1 µs.
func QuotaUs(cpus float64) int64 { return int64(math.Round(cpus * CPUPeriodUs)) }

// Setting is a value that a file of a control group must have so that a limit is in force.
type Setting struct {
	Limit string // cpuset, cpu quota or memory
	File  string
	Value any
}

// Settings returns the settings of a spec in a group. A new group of version 1 has no cores and no
// memory nodes, and no process can join until it has both: without cores in the spec it gets those
// of the parent group.
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

// DisableSwap keeps the memory of a group from being swapped out, so that the limit of a spec
// applies to all of it. The limit must already be set. Kernels that do not count swap lack the
// file.
func DisableSwap(g launch.Group, s launch.Spec) error {
	file, value := "memory.swap.max", int64(0)
	if g.Version == 1 {
		file, value = "memory.memsw.limit_in_bytes", s.MemoryBytes
	}
	if s.MemoryBytes <= 0 || g.Version == 1 && g.Controller != "memory" {
		return nil
	}
	err := Write(g.Dir, file, value)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // of a missing file
		return nil
	}
	return err
}

// Delegate enables controllers for the groups of version 2 below a folder. It ignores refusals: the
// groups may have the controllers already, which their files show.
func Delegate(dir string) {
	for _, c := range []string{"+cpu", "+cpuset", "+memory"} {
		_ = Write(dir, "cgroup.subtree_control", c)
	}
}

// Limits reads back which limits of a spec are in force: on cores, processor time and memory by the
// groups, and on cores by the affinity of a process. With pid 0 it reads only the groups. Errors
// concern only the affinity.
func Limits(groups []launch.Group, pid int, s launch.Spec) (inForce []record.Limit, err error) {
	retained := func(version int, l record.Limit) {
		l.By = record.ByCgroup1
		if version == 2 {
			l.By = record.ByCgroup2
		}
		inForce = append(inForce, l)
	}
	// A group without cores of its own may use all cores of its parent.
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

// Unenforced lists the limits of a spec that nothing in force covers, each with the reason and the
// detail, if any.
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

// quota returns the limit in seconds of processor time per second; 0: no quota. Its files are
// documented by the kernel in scheduler/sched-bwc.rst (version 1) and admin-guide/cgroup-v2.rst
// (version 2).
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

// unlimitedV1 exceeds every limit that a user sets: without a limit, version 1 shows the largest
// number of whole pages.
const unlimitedV1 = 1 << 62

// memoryLimit returns the limit in bytes; 0: no limit.
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
