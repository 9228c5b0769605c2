package doctor

import (
	"path/filepath"
	"slices"
	"strings"

	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
)

// permissionRules are about the permissions of this process.
var permissionRules = []Rule{
	{Name: "cgroups", look: cgroups,
		Fit:      "prony can make groups with the controllers cpuset, cpu and memory",
		Doubtful: "prony cannot make groups with all three controllers",
		Why: "limits that are not enforced are not equal. Prony then uses affinity and rlimits " +
			"instead, and records contain this",
		Source: "kernel, admin-guide/cgroup-v2.rst and cgroup-v1"},
	{Name: "perf events", look: perfEvents,
		Fit: "any value: it does not change results",
		Why: "with the value 2 or more, profilers record only user code, not the kernel; above " +
			"2, some kernels allow no profiler",
		Source: "kernel, admin-guide/sysctl/kernel.rst: perf_event_paranoid"},
}

// groups is the position of this process in the hierarchies of control groups.
type groups struct {
	version   string            // "v1", "v2" or "none"
	mounts    map[string]string // folder of each controller's hierarchy; version 2 has the key ""
	ownByName map[string]string // this process's path in each
}

const mounted = "sys/fs/cgroup"

func (m *machine) groups() groups {
	g := groups{host.CgroupVersion(filepath.Join(m.Root, mounted)), map[string]string{},
		cgroup.Paths(m.text("proc/self/cgroup"))}
	if g.version == "v2" {
		g.mounts[""] = mounted
	}
	for _, dir := range m.match(mounted + "/*") {
		for c := range strings.SplitSeq(filepath.Base(dir), ",") {
			if g.version == "v1" && slices.Contains(controllers, c) {
				g.mounts[c] = dir
			}
		}
	}
	return g
}

var controllers = []string{"cpuset", "cpu", "memory"}

// of returns the folders from this process's group of a controller up to the mount. In a container,
// the path may begin above the mount; these folders do not exist, and reading them yields nothing.
func (g groups) of(controller string) (dirs []string) {
	if g.version == "v2" {
		controller = ""
	}
	mount, ok := g.mounts[controller]
	if !ok {
		return nil
	}
	for path := filepath.Clean("/" + g.ownByName[controller]); ; path = filepath.Dir(path) {
		dirs = append(dirs, filepath.Join(mount, path))
		if path == "/" {
			return dirs
		}
	}
}

func cgroups(m *machine) finding {
	const fix = "run as root, or use systemd-run --user --scope -p Delegate=yes prony run; in a " +
		"container, mount /sys/fs/cgroup writable"
	g := m.groups()
	if g.version == "none" {
		return doubtful("none", fix)
	}
	var can, cannot []string
	for _, c := range controllers {
		if m.enforces(g, c) {
			can = append(can, c)
		} else {
			cannot = append(cannot, c)
		}
	}
	if len(cannot) > 0 {
		return doubtful(g.version+", no group for "+strings.Join(cannot, ", "), fix)
	}
	return fit(g.version + ": " + strings.Join(can, ", "))
}

// enforces reports whether a group with this controller could be created where the launcher tries:
// in version 1 below this process's group, in version 2 beside it or at the top.
func (m *machine) enforces(g groups, controller string) bool {
	dirs := slices.DeleteFunc(g.of(controller), func(dir string) bool { return !m.exists(dir) })
	if len(dirs) == 0 {
		return false
	}
	if g.version == "v1" {
		return m.senses.writable(filepath.Join(m.Root, dirs[0]))
	}
	if len(dirs) > 1 {
		dirs = []string{dirs[1], dirs[len(dirs)-1]}
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return m.delegates(dir, controller) && m.senses.writable(filepath.Join(m.Root, dir))
	})
}

// delegates reports whether a folder of version 2 gives a controller to groups below it, or could:
// a group with processes of its own must not, unless it is the root, which alone has no type.
// Source: kernel, admin-guide/cgroup-v2.rst, "No Internal Process Constraint".
func (m *machine) delegates(dir, controller string) bool {
	contains := func(file string) bool {
		return slices.Contains(strings.Fields(m.text(dir+"/"+file)), controller)
	}
	empty := m.text(dir+"/cgroup.procs") == "" || !m.exists(dir+"/cgroup.type")
	return contains("cgroup.subtree_control") || contains("cgroup.controllers") && empty
}

func perfEvents(m *machine) finding {
	level := m.text("proc/sys/kernel/perf_event_paranoid")
	if level == "" {
		return unknown("the kernel has no perf events")
	}
	return fit("perf_event_paranoid is " + level)
}
