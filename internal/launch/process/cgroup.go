package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/record"
)

// hierarchy is a mounted cgroup tree, with the groups below which new groups are made.
type hierarchy struct {
	version     int
	controllers []string // of the mount
	parents     []string // directories to try, in order
}

// hierarchies returns the trees with limits or counters, for a process whose groups have these
// paths (cgroups(7)).
func hierarchies(mounts []cgroup.Mount, ownByName map[string]string) (out []hierarchy) {
	for _, m := range mounts {
		if len(m.Controllers) == 0 {
			continue
		}
		dir, present := m.Below(ownByName[m.Controllers[0]])
		if !present {
			dir = m.Dir
		}
		h := hierarchy{m.Version, m.Controllers, []string{dir}}
		if m.Version == 2 && dir != m.Dir { // the root has no parent
			h.parents = slices.Compact([]string{filepath.Dir(dir), m.Dir})
		}
		out = append(out, h)
	}
	return out
}

// groups are the control groups made for one target.
type groups struct {
	list    []launch.Group
	freezer launch.Group // may also be in list; zero value: none
	refused []string     // limits that the kernel refused, with reasons; others may replace them
}

// makeGroups creates the target's groups and sets its limits in them. It collects refusals in
// refused, never as an error, because other means may replace a group.
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
		g.refused = append(g.refused, "cgroup: none could be made: "+g.cause(trees))
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
	cmdlog.Run("mkdir", dir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return
	}
	for _, c := range h.controllers {
		group := launch.Group{Version: 1, Controller: c, Dir: dir}
		limits := cgroup.Settings(group, s)
		if refused := set(group, limits); c != "cpuset" {
			g.refused = append(g.refused, refused...)
		} else if len(refused) > 0 { // without cores and nodes no process can join
			g.refused = append(g.refused, fmt.Sprintf(
				"the kernel refused cores %v for the cpuset cgroup (v1)",
				limits[len(limits)-1].Value))
			os.Remove(dir)
			return
		}
		g.list = append(g.list, group)
		_ = cgroup.DisableSwap(group, s) // Limits reports it
	}
}

func (g *groups) makeV2(name string, s launch.Spec, h hierarchy) {
	for _, parent := range h.parents {
		cgroup.Delegate(parent)
		dir := filepath.Join(parent, name)
		cmdlog.Run("mkdir", dir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			continue
		}
		have := strings.Fields(cgroup.Value(dir, "cgroup.controllers"))
		if !slices.Contains(have, "cpu") && !slices.Contains(have, "memory") {
			os.Remove(dir)
			continue
		}
		group := launch.Group{Version: 2, Dir: dir}
		g.list = append(g.list, group)
		limits := cgroup.Settings(group, s)
		if !slices.Contains(have, "cpuset") {
			limits = slices.DeleteFunc(limits, func(s cgroup.Setting) bool {
				return s.Limit == "cpuset"
			})
		}
		g.refused = append(g.refused, set(group, limits)...)
		_ = cgroup.DisableSwap(group, s) // Limits reports it
		return
	}
}

// set writes limits and returns the reasons for refusals. Limits reads back whether the kernel
// applied the others.
func set(group launch.Group, limits []cgroup.Setting) (refused []string) {
	for _, s := range limits {
		if err := cgroup.Write(group.Dir, s.File, s.Value); err != nil {
			refused = append(
				refused,
				fmt.Sprintf("%s (cgroup v%d): %v", s.Limit, group.Version, err),
			)
		}
	}
	return refused
}

// dirs lists the groups' directories without duplicates.
func (g *groups) dirs() (out []string) {
	for _, x := range g.list {
		out = append(out, x.Dir)
	}
	if g.freezer.Dir != "" {
		out = append(out, g.freezer.Dir)
	}
	return slices.Compact(out) // controllers of one mount follow each other
}

// endGroup ends every process in the group and removes the group. It loops because processes may
// fork meanwhile, and its bound keeps an unkillable process (state D) from blocking the lab.
func endGroup(dir string) error {
	deadline := time.After(killBound)
	if err := cgroup.Thaw(dir); err != nil {
		return fmt.Errorf("thaw %s: %w", dir, err)
	}
	for {
		pids := cgroup.PIDs(dir)
		if len(pids) == 0 {
			err := cgroup.Remove(dir)
			if err == nil {
				cmdlog.Run("rmdir", dir)
			}
			return err
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-deadline:
			return fmt.Errorf("kill processes %v in %s: they still exist after %v; %s",
				pids, dir, killBound, stuck)
		case <-time.After(time.Millisecond):
		}
	}
}

// killBound limits how long a killed process may take to disappear; tests shorten it.
var killBound = 5 * time.Second

// stuck is what a user can do about processes that do not disappear.
const stuck = "they may wait for a disk or a network file system, or be frozen: end them, or " +
	"restart the machine"

// Limits implements launch.Process. If a process has left the target's control groups, no limit is
// in force, since the groups no longer limit or count it.
func (p *proc) Limits() (inForce, missing []record.Limit) {
	strays := p.strays()
	if len(strays) == 0 {
		return p.InForce, p.Missing
	}
	remaining := record.Limit{Kind: record.LimitGroup, PIDs: strays}
	return nil, append(slices.Clone(p.Missing), record.Unenforced(remaining, record.Strayed, ""))
}

// strays lists the processes that are missing in one of the target's groups. The groups are read
// after the processes, so that processes that have just begun or ended are not strays.
func (p *proc) strays() []int {
	if len(p.groups.list) == 0 {
		return nil
	}
	all := p.members()
	within := make([][]int, len(p.groups.list))
	for i, g := range p.groups.list {
		within[i] = cgroup.PIDs(g.Dir)
	}
	return slices.DeleteFunc(all, func(pid int) bool {
		f := cgroup.Stat(pid)
		return len(f) == 0 || f[0] == "Z" || !slices.ContainsFunc(within, func(pids []int) bool {
			return !slices.Contains(pids, pid)
		})
	})
}
