package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
)

// cpuPeriodUs is the period of a processor quota. The kernel's default: shorter ones throttle in
// smaller pieces at a higher price (Documentation/scheduler/sched-bwc.rst).
const cpuPeriodUs = 100000

// controllersV1 are those that hold a limit or a counter that the lab reads.
var controllersV1 = []string{"cpu", "cpuacct", "cpuset", "memory"}

// hierarchy is a mounted cgroup tree and the group in it that new groups go below.
type hierarchy struct {
	version     int
	controllers []string // version 1
	parents     []string // directories to try, in order
}

// hierarchies reads what is mounted (cgroups(7)) for the process whose /proc/PID/cgroup is given.
func hierarchies(mountinfo, cgroup string) []hierarchy {
	own := map[string]string{} // controller ("" for version 2) to path
	for _, l := range strings.Split(cgroup, "\n") {
		if f := strings.SplitN(l, ":", 3); len(f) == 3 {
			for _, c := range strings.Split(f[1], ",") {
				own[c] = f[2]
			}
		}
	}
	var out []hierarchy
	scan := bufio.NewScanner(strings.NewReader(mountinfo))
	for scan.Scan() {
		// 36 35 98:0 /root /mount/point options … - type source super,options
		before, after, ok := strings.Cut(scan.Text(), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		root, mount := f[3], f[4]
		switch g[0] {
		case "cgroup2":
			dir := below(mount, root, own[""])
			out = append(out, hierarchy{version: 2, parents: slices.Compact(
				[]string{filepath.Dir(dir), mount})})
		case "cgroup":
			h := hierarchy{version: 1}
			for _, c := range strings.Split(g[2], ",") {
				if slices.Contains(controllersV1, c) {
					h.controllers = append(h.controllers, c)
					h.parents = []string{below(mount, root, own[c])}
				}
			}
			if len(h.controllers) > 0 {
				out = append(out, h)
			}
		}
	}
	return out
}

// below maps a path of /proc/PID/cgroup to a directory, given what is mounted where.
func below(mount, root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.Join(mount, rel)
	}
	return mount
}

// groups are the control groups made for one target.
type groups struct {
	list             []launch.Group
	inForce, missing []string // limits, as launch.Process.Limits gives them
	refused          []string // what the kernel would not do, and why; other means may take over
}

// makeGroups creates the target's groups and sets its limits in them. What is not permitted is
// noted in refused and left to the other means; it is never an error.
func makeGroups(name string, s launch.Spec, trees []hierarchy) *groups {
	g := &groups{}
	for _, h := range trees {
		if h.version == 1 {
			g.makeV1(name, s, h)
		}
	}
	if len(g.list) == 0 {
		for _, h := range trees {
			if h.version == 2 {
				g.makeV2(name, s, h)
			}
		}
	}
	if len(g.list) == 0 {
		g.refused = append(g.missing, "cgroup: none could be made: "+g.cause(trees))
	}
	return g
}

func (g *groups) cause(trees []hierarchy) string {
	if len(trees) == 0 {
		return "none is mounted"
	}
	err := os.Mkdir(filepath.Join(trees[0].parents[0], "prony-probe"), 0o755)
	if err == nil {
		os.Remove(filepath.Join(trees[0].parents[0], "prony-probe"))
		return "no controller is available"
	}
	return errors.Unwrap(err).Error()
}

func (g *groups) makeV1(name string, s launch.Spec, h hierarchy) {
	dir := filepath.Join(h.parents[0], name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return
	}
	for _, c := range h.controllers {
		ok := true
		switch c {
		case "cpuset":
			ok = g.cpusetV1(dir, h.parents[0], s)
		case "cpu":
			g.quota(s, dir, "cgroup v1", map[string]string{
				"cpu.cfs_period_us": strconv.Itoa(cpuPeriodUs),
				"cpu.cfs_quota_us":  strconv.Itoa(int(s.CPUs * cpuPeriodUs)),
			})
		case "memory":
			if s.MemoryBytes > 0 {
				g.limit("memory", "cgroup v1", dir, "memory.limit_in_bytes",
					strconv.FormatInt(s.MemoryBytes, 10))
			}
		}
		if !ok {
			os.Remove(dir)
			return
		}
		g.list = append(g.list, launch.Group{Version: 1, Controller: c, Dir: dir})
	}
}

// cpusetV1 fills both files without which nothing may join the group.
func (g *groups) cpusetV1(dir, parent string, s launch.Spec) bool {
	cpus := kernel.CoreList(s.Cores)
	if cpus == "" {
		cpus = readTrim(filepath.Join(parent, "cpuset.cpus"))
	}
	mems := readTrim(filepath.Join(parent, "cpuset.mems"))
	if write(dir, "cpuset.mems", mems) != nil || write(dir, "cpuset.cpus", cpus) != nil {
		g.refused = append(g.missing, "cpuset cgroup v1: cores "+cpus+" refused")
		return false
	}
	if len(s.Cores) > 0 {
		have := readTrim(filepath.Join(dir, "cpuset.cpus"))
		g.inForce = append(g.inForce, "cpuset "+have+" (cgroup v1)")
	}
	return true
}

func (g *groups) makeV2(name string, s launch.Spec, h hierarchy) {
	for _, parent := range h.parents {
		// Without these the new group has no controllers; where they are refused, it may have them
		// already, which the new group's own list tells.
		for _, c := range []string{"+cpu", "+cpuset", "+memory"} {
			_ = write(parent, "cgroup.subtree_control", c)
		}
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		have := strings.Fields(readTrim(filepath.Join(dir, "cgroup.controllers")))
		if !slices.Contains(have, "cpu") && !slices.Contains(have, "memory") {
			os.Remove(dir)
			continue
		}
		g.list = append(g.list, launch.Group{Version: 2, Dir: dir})
		if len(s.Cores) > 0 && slices.Contains(have, "cpuset") {
			g.limit("cpuset", "cgroup v2", dir, "cpuset.cpus", kernel.CoreList(s.Cores))
		}
		g.quota(s, dir, "cgroup v2", map[string]string{
			"cpu.max": fmt.Sprintf("%d %d", int(s.CPUs*cpuPeriodUs), cpuPeriodUs)})
		if s.MemoryBytes > 0 {
			g.limit("memory", "cgroup v2", dir, "memory.max", strconv.FormatInt(s.MemoryBytes, 10))
		}
		return
	}
}

// quota limits processor time where cores do not.
func (g *groups) quota(s launch.Spec, dir, version string, files map[string]string) {
	if !s.NeedsQuota() {
		return
	}
	for f, v := range files {
		if err := write(dir, f, v); err != nil {
			g.refused = append(g.missing, fmt.Sprintf("cpu quota (%s): %v", version, err))
			return
		}
	}
	g.inForce = append(g.inForce, fmt.Sprintf("cpu quota %g (%s)", s.CPUs, version))
}

// limit writes a limit and reads it back, for only what the kernel took is in force.
func (g *groups) limit(what, version, dir, file, value string) {
	if err := write(dir, file, value); err != nil {
		g.refused = append(g.missing, fmt.Sprintf("%s (%s): %v", what, version, err))
		return
	}
	g.inForce = append(g.inForce,
		fmt.Sprintf("%s %s (%s)", what, readTrim(filepath.Join(dir, file)), version))
}

// shared are the same groups for one more process, with the limits that hold both.
func (g *groups) shared() *groups {
	out := &groups{list: g.list, refused: slices.Clone(g.refused)}
	for _, limit := range g.inForce {
		if strings.Contains(limit, "cgroup") {
			out.inForce = append(out.inForce, limit)
		}
	}
	return out
}

func (g *groups) has(what string) bool {
	return slices.ContainsFunc(g.inForce, func(s string) bool { return strings.HasPrefix(s, what) })
}

// dirs lists the groups' directories, each once.
func (g *groups) dirs() []string {
	var out []string
	for _, x := range g.list {
		if !slices.Contains(out, x.Dir) {
			out = append(out, x.Dir)
		}
	}
	return out
}

// pidsIn lists the processes of a group.
func pidsIn(dir string) []int {
	var out []int
	for _, f := range strings.Fields(readTrim(filepath.Join(dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(f); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// killGroup ends every process in the group and returns when it is empty. New ones may be forked
// while it kills, hence the loop; it is bounded so that an unkillable process (in state D) cannot
// hold the lab.
func killGroup(dir string) error {
	deadline := time.After(killBound)
	for {
		pids := pidsIn(dir)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-deadline:
			return fmt.Errorf("kill processes %v in %s: still there after %v", pids, dir, killBound)
		case <-time.After(time.Millisecond):
		}
	}
}

// killBound is how long a killed process may take to be gone.
const killBound = 5 * time.Second

// removeGroup removes an empty group. The kernel may need a moment after the last exit.
func removeGroup(dir string) error {
	var err error
	for range 100 {
		if err = os.Remove(dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

func write(dir, file, value string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644)
}

func readTrim(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
