package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
	"prony/internal/shell"
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
func podGroups(mounts []kernel.Mount, name string, version int) (out []launch.Group) {
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
		return "the engine's cgroup driver is " + driver + ", whose groups are systemd's to make"
	}
	if len(p.groups) == 0 {
		return "the root of the control groups is not mounted here"
	}
	for _, g := range p.groups {
		if err := unix.Access(filepath.Dir(g.Dir), unix.W_OK); err != nil {
			return fmt.Sprintf("make groups in %s: %v", filepath.Dir(g.Dir), err)
		}
	}
	return ""
}

// make makes the group and sets the limits of the whole. The container that is created by then
// bears the group's name, so that whoever removes the one after the lab's death removes the other.
func (p *pod) make(s launch.Spec) error {
	made := map[string]bool{} // controllers that are mounted together share one folder
	for _, g := range p.groups {
		if !made[g.Dir] {
			shell.Run("mkdir", g.Dir)
			if err := os.Mkdir(g.Dir, 0o755); err != nil {
				return err
			}
		}
		made[g.Dir] = true
		var err error
		if g.Version == 2 {
			err = podV2(g.Dir, s)
		} else {
			err = podV1(g, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func podV1(g launch.Group, s launch.Spec) error {
	switch g.Controller {
	case "cpuset":
		// Nothing may join a group in which either file is empty.
		return errors.Join(inherit(g.Dir, "cpuset.mems", ""),
			inherit(g.Dir, "cpuset.cpus", kernel.CoreList(s.Cores)))
	case "cpu":
		if s.NeedsQuota() {
			return errors.Join(kernel.Write(g.Dir, "cpu.cfs_period_us", kernel.CPUPeriodUs),
				kernel.Write(g.Dir, "cpu.cfs_quota_us", kernel.QuotaUs(s.CPUs)))
		}
	case "memory":
		// Kernels before 5.11 count a child's memory only where they are told to.
		if _, err := os.Stat(filepath.Join(g.Dir, "memory.use_hierarchy")); err == nil {
			if err := kernel.Write(g.Dir, "memory.use_hierarchy", 1); err != nil {
				return err
			}
		}
		if s.MemoryBytes > 0 {
			return errors.Join(kernel.Write(g.Dir, "memory.limit_in_bytes", s.MemoryBytes),
				ifThere(kernel.Write(g.Dir, "memory.memsw.limit_in_bytes", s.MemoryBytes)))
		}
	}
	return nil
}

func podV2(dir string, s launch.Spec) error {
	// Without these the group has no controllers; where they are refused it may have them already,
	// which its own files tell.
	for _, c := range []string{"+cpu", "+cpuset", "+memory"} {
		_ = kernel.Write(filepath.Dir(dir), "cgroup.subtree_control", c)
	}
	var errs []error
	if len(s.Cores) > 0 {
		errs = append(errs, kernel.Write(dir, "cpuset.cpus", kernel.CoreList(s.Cores)))
	}
	if s.NeedsQuota() {
		errs = append(errs, kernel.Write(dir, "cpu.max",
			fmt.Sprintf("%d %d", kernel.QuotaUs(s.CPUs), kernel.CPUPeriodUs)))
	}
	if s.MemoryBytes > 0 {
		errs = append(errs, kernel.Write(dir, "memory.max", s.MemoryBytes),
			ifThere(kernel.Write(dir, "memory.swap.max", 0)))
	}
	return errors.Join(errs...)
}

// inherit writes a value, or else that of the group above.
func inherit(dir, file, value string) error {
	if value == "" {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		value = strings.TrimSpace(string(b))
	}
	return kernel.Write(dir, file, value)
}

// ifThere leaves out that a kernel does not count swap: then there is no file.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

const removeTries = 1000 // of a millisecond each

// removePod removes a system's groups by their name, in all trees: the engine makes some in those,
// too, that hold no limit.
func removePod(name string) error {
	number, ok := strings.CutPrefix(name, podPrefix)
	if _, err := strconv.Atoi(strings.ReplaceAll(number, "-", "")); !ok || err != nil {
		return nil // no lab gives such a name, whatever the label says
	}
	var errs []error
	for _, m := range kernel.OwnMounts() {
		if m.Root == "/" {
			errs = append(errs, removeGroup(filepath.Join(m.Dir, name)))
		}
	}
	return errors.Join(errs...)
}

// removeGroup removes an empty group. The engine may need a moment after the last container to
// remove that one's own group below it.
func removeGroup(dir string) error {
	var err error
	for range removeTries {
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}
