package service

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// guard has a step end with the lab, by whatever end of that, with all that it forked into its
// process group. A shell waits for the end of a pipe, which the kernel closes with the lab, and
// kills the group; a parent-death signal would reach the step alone, and come with the end of the
// thread that forked it. It leads a session of its own, so that what ends the lab does not end it.
// The journal has the step, too, for the case that both are killed.
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
