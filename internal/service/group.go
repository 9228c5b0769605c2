package service

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"prony/internal/shell"
)

// killGrace bounds the wait for a killed program's output: a grandchild that left the group may
// hold the pipe for ever.
const killGrace = time.Second

// Command prepares a program in a process group of its own, so that the end of the context ends
// what it forked too: npm and mvn are scripts whose real work is a child. The program's standard
// input is empty. Who looks on is shown it.
func Command(ctx context.Context, dir string, env []string, program string,
	args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Cancel runs before the program is waited for, so its id cannot be another's yet.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	shell.Command(cmd)
	return cmd
}
