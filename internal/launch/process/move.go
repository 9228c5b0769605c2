package process

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"prony/internal/launch"
	"prony/internal/launch/kernel"
	"prony/internal/shell"
)

var _ launch.Mover = (*proc)(nil)

// movePasses bounds the search for threads that were born on the old cores while others were
// moved: each comes of one that was not moved yet, so that two or three passes find none.
const movePasses = 100

// Move implements launch.Mover. The control group comes first, since no affinity may leave it; but
// where a thread has asked for one, as this launcher has for all of them, the kernel keeps it
// within what was asked for, however wide the group (sched_setaffinity(2), cpuset(7)).
func (p *proc) Move(cores []int) error {
	list := kernel.CoreList(cores)
	p.Spec.Cores = cores
	for _, g := range p.groups.list {
		held := g.Version == 2 || g.Controller == "cpuset"
		if held && kernel.Value(g.Dir, "cpuset.cpus") != "" {
			if err := kernel.Write(g.Dir, "cpuset.cpus", list); err != nil {
				return fmt.Errorf("move %s to cores %s: %w", p.Spec.Name, list, err)
			}
		}
	}
	shell.Run("taskset", "-a", "-c", "-p", list, strconv.Itoa(p.Main()))
	for range movePasses {
		moved, err := p.allow(cores)
		if err != nil {
			return fmt.Errorf("move %s to cores %s: %w", p.Spec.Name, list, err)
		}
		if moved == 0 {
			p.noteLimits()
			return nil
		}
	}
	return fmt.Errorf("move %s to cores %s: after %d passes there are threads elsewhere",
		p.Spec.Name, list, movePasses)
}

// Favour implements launch.Favourer.
func (p *proc) Favour(on bool) (int, error) { return kernel.Favour(p.PIDs(), on) }

// allow gives all threads the cores as their affinity, and says how many had another as the kernel
// tells it.
func (p *proc) allow(cores []int) (moved int, err error) {
	var want, have unix.CPUSet
	for _, core := range cores {
		want.Set(core)
	}
	elsewhere := func(_, tid int) bool { // and has not ended
		return unix.SchedGetaffinity(tid, &have) == nil && have != want
	}
	for _, tid := range kernel.Tasks(p.PIDs(), elsewhere) {
		if err := unix.SchedSetaffinity(tid, &want); err == nil {
			moved++
		} else if !errors.Is(err, unix.ESRCH) {
			return moved, err
		}
	}
	return moved, nil
}
