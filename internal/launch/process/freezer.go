package process

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

var _ launch.Freezable = (*proc)(nil)

// Freezer implements launch.Freezable. A process that shares the groups of another is stopped with
// it.
func (p *proc) Freezer() launch.Group { return p.groups.freezer }

// makeFreezer returns the group by which a target can be stopped: its own group of version 2 if it
// has one, otherwise a new group. Version 2 comes first because its frozen processes can be killed.
// The target joins the group before its first instruction, so that all its children are in it.
func makeFreezer(name string, list []launch.Group) launch.Group {
	for _, g := range list {
		if g.Version == 2 && cgroup.CanFreeze(g) {
			return g
		}
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return launch.Group{}
	}
	paths, mounts := cgroup.Paths(string(text)), cgroup.OwnMounts()
	for _, h := range hierarchies(mounts, paths) {
		if h.version != 2 {
			continue
		}
		for _, parent := range h.parents {
			if g := makeFreezerIn(parent, name, 2); g.Dir != "" {
				return g
			}
		}
	}
	for _, m := range mounts {
		if dir, ok := m.Below(paths["freezer"]); m.Freezer && ok {
			return makeFreezerIn(dir, name, 1)
		}
	}
	return launch.Group{}
}

// makeFreezerIn creates a group below one that this process may leave for it: with version 2, only
// a user who may write to the closest common ancestor of both groups may move a process
// (cgroup-v2.rst, "Delegation Containment").
func makeFreezerIn(parent, name string, version int) launch.Group {
	g := launch.Group{Dir: filepath.Join(parent, name), Version: version}
	if version == 1 {
		g.Controller = "freezer"
	}
	members := func(dir string) bool {
		return unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
	}
	if !members(parent) || os.Mkdir(g.Dir, 0o755) != nil {
		return launch.Group{}
	}
	cmdlog.Run("mkdir", g.Dir)
	if !members(g.Dir) || !cgroup.CanFreeze(g) {
		_ = os.Remove(g.Dir) // it is empty
		return launch.Group{}
	}
	if pressure := filepath.Join(g.Dir, "cgroup.pressure"); version == 2 {
		// Nothing reads it, and accounting would cost time at each switch of threads.
		if f, err := os.OpenFile(pressure, os.O_WRONLY, 0); err == nil { // since Linux 6.1
			_, _ = f.WriteString("0")
			_ = f.Close()
		}
	}
	return g
}

// thaw resumes all processes, so that they receive the signal to end.
func (p *proc) thaw() {
	if dir := p.groups.freezer.Dir; dir != "" {
		_ = cgroup.Thaw(dir) // endGroup reports persistent errors
	}
	cgroup.Continue(p.PIDs())
}
