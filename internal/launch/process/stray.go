package process

import (
	"fmt"
	"slices"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
)

// Limits says what was in force when the target began, unless one of its processes is now in
// another control group: what holds nothing is no limit, and what counts nothing no usage.
func (p *proc) Limits() (inForce, missing []string) {
	strays := p.strays()
	if len(strays) == 0 {
		return p.InForce, p.Missing
	}
	return nil, append(slices.Clone(p.Missing),
		fmt.Sprintf("%s: processes %v are in another one", launch.Strayed, strays))
}

// strays are the processes that are not in each of the target's groups. Those are listed after its
// processes, so that one that has just begun is no stray, and one that has ended meanwhile is none.
func (p *proc) strays() []int {
	if p.cmd == nil || p.cmd.Process == nil || len(p.groups.list) == 0 {
		return nil
	}
	all := groupMembers(p.cmd.Process.Pid)
	within := make([][]int, len(p.groups.list))
	for i, g := range p.groups.list {
		within[i] = kernel.PIDs(g.Dir)
	}
	return slices.DeleteFunc(all, func(pid int) bool {
		f := kernel.Stat(pid)
		return len(f) == 0 || f[0] == "Z" || !slices.ContainsFunc(within, func(pids []int) bool {
			return !slices.Contains(pids, pid)
		})
	})
}
