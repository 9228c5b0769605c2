//go:build linux && !portable

package generator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/privilege"
)

// lastWords is the time to wait for the output streams of a killed tool.
const lastWords = 2 * time.Second

// run runs a command in its own process group. The whole group is killed when the context ends and
// when the command has ended, so that no tool leaves processes behind. The output goes to files in
// dir, so that reading it takes no time during the measurement. A nonzero exit status is not an
// error.
func run(ctx context.Context, c command, dir string, cores []int) (*output, error) {
	out := &output{}
	text, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		return out, err
	}
	defer text.Close()
	errs, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return out, err
	}
	defer errs.Close()

	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = text, errs, lastWords
	// Pdeathsig kills the tool if this program is killed. It applies to the thread that forked, so
	// that thread must stay until the end.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid) }
	cmdlog.Command(cmd)
	began := clock.Mono()
	err = pinned(cores, func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		err := cmd.Wait()
		// The group's id cannot have been reused while the group has members; an empty group has
		// nothing to kill.
		_ = killGroup(cmd.Process.Pid)
		return err
	})
	out.elapsedNs = clock.Mono() - began
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		return out, err
	}
	return out, out.collect(cmd.ProcessState, dir)
}

func (o *output) collect(state *os.ProcessState, dir string) error {
	o.exit = state.ExitCode()
	o.cpuNs = int64(state.UserTime() + state.SystemTime())
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		o.rssBytes, o.switches = u.Maxrss*1024, u.Nivcsw
	}
	var err, err2 error
	o.text, err = os.ReadFile(filepath.Join(dir, "stdout"))
	o.errs, err2 = os.ReadFile(filepath.Join(dir, "stderr"))
	return errors.Join(err, err2)
}

func killGroup(pid int) error {
	err := unix.Kill(-pid, unix.SIGKILL)
	if errors.Is(err, unix.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// pinned runs f on a thread that is limited to the given cores; none: all. Child processes inherit
// them before their first instruction. The thread ends with f, so that other work does not get it.
func pinned(cores []int, f func() error) error {
	return privilege.Spend(func() error {
		if len(cores) > 0 {
			var set unix.CPUSet
			for _, c := range cores {
				set.Set(c)
			}
			if err := unix.SchedSetaffinity(0, &set); err != nil {
				return fmt.Errorf("pin the load generator to cores %v: %w", cores, err)
			}
		}
		return f()
	})
}
