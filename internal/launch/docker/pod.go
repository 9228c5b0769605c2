package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
)

// pod is a control group that holds all containers of a system, so that one limit applies to all of
// them, as to plain processes.
type pod struct {
	name   string
	groups []launch.Group
}

// podPrefix distinguishes these groups from those of plain processes, whose names resemble
// container names.
const podPrefix = "prony-pod-"

// parent returns the group's path for the engine.
func (p *pod) parent() string { return "/" + p.name }

// podGroups returns the directories of a group of this name below the root in the trees of one
// version. It returns all or none: if a tree is not mounted from its root, as in a container, the
// engine uses another root.
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

// allowed returns why the group cannot be made; empty if it can.
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

// make creates the group and sets the limits of the system. A container with the group's name as
// label must exist by then, so that a removal after the lab's death finds the group.
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

// limit sets the limits of a spec in a group, and disables swap.
func limit(g launch.Group, s launch.Spec) error {
	if g.Version == 2 {
		cgroup.Delegate(filepath.Dir(g.Dir))
	}
	if g.Version == 1 && g.Controller == "memory" {
		// Kernels before 5.11 count the memory of child groups only with this setting.
		if _, err := os.Stat(filepath.Join(g.Dir, "memory.use_hierarchy")); err == nil {
			if err := cgroup.Write(g.Dir, "memory.use_hierarchy", 1); err != nil {
				return err
			}
		}
	}
	var errs []error
	for _, setting := range cgroup.Settings(g, s) {
		errs = append(errs, cgroup.Write(g.Dir, setting.File, setting.Value))
	}
	return errors.Join(append(errs, cgroup.DisableSwap(g, s))...)
}

// inTrees calls do for the groups of a system by name in all trees: the engine makes groups also in
// trees without limits.
func inTrees(name string, do func(dir string) error) error {
	number, ok := strings.CutPrefix(name, podPrefix)
	if _, err := strconv.Atoi(strings.ReplaceAll(number, "-", "")); !ok || err != nil {
		return nil // a label with such a name is not from a lab
	}
	var errs []error
	for _, m := range cgroup.OwnMounts() {
		if m.Root == "/" {
			errs = append(errs, do(filepath.Join(m.Dir, name)))
		}
	}
	return errors.Join(errs...)
}
