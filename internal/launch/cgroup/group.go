package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/internal/launch"
)

// controllersV1 are the controllers with limits or counters that this program reads.
var controllersV1 = []string{"cpu", "cpuacct", "cpuset", "memory"}

// Mount is a mounted tree of control groups (cgroups(7)).
type Mount struct {
	Version     int
	Controllers []string // version 1: of controllersV1; version 2: one with an empty name
	Root        string   // group whose files are at Dir
	Dir         string
	Freezer     bool // version 1: it includes the freezer
}

// OwnMounts returns the mounts that this process sees; none if it cannot read them.
func OwnMounts() []Mount {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil // Limits then reports that no group is visible
	}
	return Mounts(string(text))
}

// Mounts parses a /proc/PID/mountinfo.
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
			m.Version, m.Controllers = 2, []string{""}
		case "cgroup":
			m.Version = 1
			for c := range strings.SplitSeq(g[2], ",") {
				m.Freezer = m.Freezer || c == "freezer"
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

// Paths parses a /proc/PID/cgroup into the path of each controller ("" for version 2).
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

// Below maps a path of /proc/PID/cgroup to a directory; ok is false if the mount does not include
// it.
func (m Mount) Below(path string) (dir string, ok bool) {
	rel, err := filepath.Rel(m.Root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.Join(m.Dir, rel), true
}

// Groups returns the control groups of a process in the trees of one version that are mounted here.
func Groups(mounts []Mount, paths map[string]string, version int) (out []launch.Group) {
	for _, m := range mounts {
		if m.Version != version {
			continue
		}
		for _, c := range m.Controllers {
			path, ok := paths[c]
			dir, present := m.Below(path)
			if !ok || !present {
				continue
			}
			if _, err := os.Stat(dir); err == nil {
				out = append(out, launch.Group{Dir: dir, Controller: c, Version: version})
			}
		}
	}
	return out
}

// PIDs lists the processes of a group and of all groups below it.
func PIDs(dir string) (out []int) {
	// A group that disappears during the walk has no processes.
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		for f := range strings.FieldsSeq(Value(path, "cgroup.procs")) {
			if pid, err := strconv.Atoi(f); err == nil {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out
}

// removeTries is the number of attempts to remove a group, 1 ms apart.
const removeTries = 1000

// Remove removes an empty group. It retries for a second: the kernel may need a moment after the
// last process has ended, and an engine may have to remove its own groups below.
func Remove(dir string) error {
	var err error
	for range removeTries {
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// Find returns the directory and version of a controller's group among those of a target; empty:
// there is none.
func Find(groups []launch.Group, controller string) (dir string, version int) {
	for _, g := range groups {
		if g.Version == 2 || g.Controller == controller {
			return g.Dir, g.Version
		}
	}
	return "", 0
}
