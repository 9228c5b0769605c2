package kernel

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony/internal/launch"
)

// controllersV1 are those that hold a limit or a counter that the lab reads.
var controllersV1 = []string{"cpu", "cpuacct", "cpuset", "memory"}

// Mount is a mounted tree of control groups (cgroups(7)).
type Mount struct {
	Version     int
	Controllers []string // version 1: of those that the lab reads; it may be none
	Root        string   // the group that is seen at Dir
	Dir         string
}

// Mounts reads a /proc/PID/mountinfo.
func Mounts(mountinfo string) (out []Mount) {
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /root /mount/point options … - type source super,options
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		m := Mount{Root: f[3], Dir: f[4]}
		switch g[0] {
		case "cgroup2":
			m.Version = 2
		case "cgroup":
			m.Version = 1
			for c := range strings.SplitSeq(g[2], ",") {
				if slices.Contains(controllersV1, c) {
					m.Controllers = append(m.Controllers, c)
				}
			}
		}
		if m.Version > 0 {
			out = append(out, m)
		}
	}
	return out
}

// Paths reads a /proc/PID/cgroup: the path of each controller ("" for version 2).
func Paths(cgroup string) map[string]string {
	paths := map[string]string{}
	for line := range strings.Lines(cgroup) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			for c := range strings.SplitSeq(f[1], ",") {
				paths[c] = f[2]
			}
		}
	}
	return paths
}

// Below maps a path of /proc/PID/cgroup to a directory; ok is false where the mount does not show
// it.
func (m Mount) Below(path string) (dir string, ok bool) {
	rel, err := filepath.Rel(m.Root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.Join(m.Dir, rel), true
}

// Groups are the control groups of a process in the trees of one version, as far as they are
// mounted here.
func Groups(mounts []Mount, paths map[string]string, version int) (out []launch.Group) {
	for _, m := range mounts {
		if m.Version != version {
			continue
		}
		controllers := m.Controllers
		if version == 2 {
			controllers = []string{""}
		}
		for _, c := range controllers {
			path, has := paths[c]
			dir, seen := m.Below(path)
			if !has || !seen {
				continue
			}
			if _, err := os.Stat(dir); err == nil {
				out = append(out, launch.Group{Dir: dir, Controller: c, Version: version})
			}
		}
	}
	return out
}

// PIDs lists the processes of a group, those of the groups below it included.
func PIDs(dir string) (out []int) {
	// A group that goes while it is read has no processes any more.
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		for f := range strings.FieldsSeq(readTrim(filepath.Join(path, "cgroup.procs"))) {
			if pid, err := strconv.Atoi(f); err == nil {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out
}

// find is the directory of a controller.
func find(groups []launch.Group, controller string) (dir string, version int) {
	for _, g := range groups {
		if g.Version == 2 || g.Controller == controller {
			return g.Dir, g.Version
		}
	}
	return "", 0
}

// Limits reads back which limits on cores, processor time and memory the groups enforce, as
// launch.Process.Limits says them.
func Limits(groups []launch.Group) (inForce []string) {
	say := func(version int, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		inForce = append(inForce, fmt.Sprintf("%s (cgroup v%d)", text, version))
	}
	if dir, v := find(groups, "cpuset"); dir != "" {
		if cores := readTrim(filepath.Join(dir, "cpuset.cpus")); cores != "" {
			say(v, "cpuset %s", cores)
		}
	}
	if dir, v := find(groups, "cpu"); dir != "" {
		if cpus := quota(dir, v); cpus > 0 {
			say(v, "cpu quota %g", cpus)
		}
	}
	if dir, v := find(groups, "memory"); dir != "" {
		if limit := memoryLimit(dir, v); limit > 0 {
			say(v, "memory %d", limit)
		}
	}
	return inForce
}

// quota is processor time per second; 0 for no quota. Its files: scheduler/sched-bwc.rst for
// version 1, admin-guide/cgroup-v2.rst for version 2, both of the kernel's documentation.
func quota(dir string, version int) float64 {
	text := readTrim(filepath.Join(dir, "cpu.max"))
	if version == 1 {
		text = readTrim(filepath.Join(dir, "cpu.cfs_quota_us")) + " " +
			readTrim(filepath.Join(dir, "cpu.cfs_period_us"))
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
	file := "memory.max"
	if version == 1 {
		file = "memory.limit_in_bytes"
	}
	n, err := strconv.ParseInt(readTrim(filepath.Join(dir, file)), 10, 64)
	if err != nil || n >= unlimitedV1 {
		return 0
	}
	return n
}
