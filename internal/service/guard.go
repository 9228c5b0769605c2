package service

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard ends a step, with all that it forked into its process group, if the lab ends in any way. A
// shell waits for the end of a pipe, which the kernel closes with the lab, and kills the group. A
// parent-death signal would reach only the step, and come with the end of the thread that forked
// it. The shell has a session of its own, so that signals to the lab do not end it. The step is
// also in the journal, in case both are killed.
func (b *Builder) guard(pid int, log string) (leave func() error, err error) {
	nothing := func() error { return nil }
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nothing, err
	}
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("read end; kill -s KILL -- -%d", pid))
	cmd.Env, cmd.Stdin = []string{}, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(cmd.Start(), theirs.Close())
	if err != nil {
		return nothing, errors.Join(fmt.Errorf("guard the step: %w", err), ours.Close())
	}
	forget := nothing
	if b.Note != nil {
		forget, err = b.Note(pid, log)
	}
	return func() error {
		_ = cmd.Process.Kill() // before the pipe ends: there is nothing to guard
		_ = cmd.Wait()         // it was killed
		return errors.Join(ours.Close(), forget())
	}, err
}
