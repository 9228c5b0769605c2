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

// Freezer implements launch.Freezable. A process that shares the groups of another one is stopped
// with it.
func (p *proc) Freezer() launch.Group { return p.groups.freezer }

// makeFreezer returns the group by which a target can be stopped: its own of version 2 where it has
// one, otherwise one that is made for this. Version 2 comes first, since its frozen processes can
// be killed. The target joins the group before its first instruction, so that nothing it forks is
// ever elsewhere.
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

// makeFreezerIn makes it below a group that this process may leave for it: with version 2 a
// process is moved only by a user who may write to the lowest group that holds both places
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
		// Nobody reads it, and each change of threads would have to be counted there.
		if f, err := os.OpenFile(pressure, os.O_WRONLY, 0); err == nil { // since Linux 6.1
			_, _ = f.WriteString("0")
			_ = f.Close()
		}
	}
	return g
}

// thaw lets all processes run, so that they receive the signal that asks them to end.
func (p *proc) thaw() {
	if dir := p.groups.freezer.Dir; dir != "" {
		_ = cgroup.Thaw(dir) // endGroup reports what fails for good
	}
	cgroup.Continue(p.PIDs())
}
