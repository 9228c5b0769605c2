package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// pod is a control group that holds all containers of a system, so that one limit holds them
// together, as it does plain processes.
type pod struct {
	name   string
	groups []launch.Group
}

// podPrefix keeps these groups apart from those of plain processes, whose names are as much like
// the containers'.
const podPrefix = "prony-pod-"

// parent is the group as the engine must be told of it.
func (p *pod) parent() string { return "/" + p.name }

// podGroups are the directories that a group of this name below the root has in the trees of one
// version. All or none: where a tree is not mounted from its root, as in a container, the engine's
// root is not the one that is seen here.
func podGroups(mounts []cgroup.Mount, name string, version int) (out []launch.Group) {
	for _, m := range mounts {
		if m.Version != version {
			continue
		}
		if m.Root != "/" {
			return nil
		}
		for _, c := range m.Controllers {
			out = append(out, launch.Group{
				Dir: filepath.Join(m.Dir, name), Controller: c, Version: version})
		}
	}
	return out
}

// allowed says why the group cannot be made; nothing if it can.
func (p *pod) allowed(driver string) string {
	if driver != "cgroupfs" {
		return "the engine's cgroup driver is " + driver + ", so only systemd may create control " +
			"groups"
	}
	if len(p.groups) == 0 {
		return "the root of the control groups is not mounted in this container"
	}
	for _, g := range p.groups {
		if err := unix.Access(filepath.Dir(g.Dir), unix.W_OK); err != nil {
			return fmt.Sprintf("create control groups in %s: %v", filepath.Dir(g.Dir), err)
		}
	}
	return ""
}

// make makes the group and sets the limits of the whole. The container that is created by then
// bears the group's name, so that whoever removes the one after the lab's death removes the other.
func (p *pod) make(s launch.Spec) error {
	built := map[string]bool{} // controllers that are mounted together share one folder
	for _, g := range p.groups {
		if !built[g.Dir] {
			cmdlog.Run("mkdir", g.Dir)
			if err := os.Mkdir(g.Dir, 0o755); err != nil {
				return err
			}
		}
		built[g.Dir] = true
		if err := limit(g, s); err != nil {
			return err
		}
	}
	return nil
}

// limit sets those of a spec in a group, and leaves nothing to be swapped out instead.
func limit(g launch.Group, s launch.Spec) error {
	if g.Version == 2 {
		cgroup.Delegate(filepath.Dir(g.Dir))
	}
	noSwap, value := "memory.swap.max", int64(0)
	if g.Version == 1 && g.Controller == "memory" {
		// Kernels before 5.11 count a child's memory only where they are told to.
		if _, err := os.Stat(filepath.Join(g.Dir, "memory.use_hierarchy")); err == nil {
			if err := cgroup.Write(g.Dir, "memory.use_hierarchy", 1); err != nil {
				return err
			}
		}
		noSwap, value = "memory.memsw.limit_in_bytes", s.MemoryBytes
	}
	var errs []error
	for _, setting := range cgroup.Settings(g, s) {
		errs = append(errs, cgroup.Write(g.Dir, setting.File, setting.Value))
		if setting.Limit == "memory" {
			errs = append(errs, ifThere(cgroup.Write(g.Dir, noSwap, value)))
		}
	}
	return errors.Join(errs...)
}

// ifThere leaves out that a kernel does not count swap: then there is no file.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// removePod removes a system's groups by their name, in all trees: the engine makes some in those,
// too, that hold no limit.
func removePod(name string) error {
	number, ok := strings.CutPrefix(name, podPrefix)
	if _, err := strconv.Atoi(strings.ReplaceAll(number, "-", "")); !ok || err != nil {
		return nil // no lab gives such a name, whatever the label says
	}
	var errs []error
	for _, m := range cgroup.OwnMounts() {
		if m.Root == "/" {
			errs = append(errs, cgroup.Remove(filepath.Join(m.Dir, name)))
		}
	}
	return errors.Join(errs...)
}
