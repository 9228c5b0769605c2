package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/privilege"
)

const (
	tailLines = 20 // of the log in an error
	// stepBound limits a step of a build. The longest of the catalog, a native image on one core,
	// takes a quarter of it; a longer step probably hangs.
	stepBound = time.Hour
)

// steps runs the build's steps in sequence, with their output in the log.
func (b *Builder) steps(ctx context.Context, s *Service, built *Built) (err error) {
	log, err := os.OpenFile(built.Log, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var paths []string
	for _, tool := range built.Tools {
		paths = append(paths, tool.Path)
	}
	user := privilege.Build(b.Root, append(paths, built.folder)...)
	if err := user.Give(built.copy()); err != nil { // not the files beside the copy
		return fmt.Errorf("change the owner of the copy to user %d: %w", user.UID, err)
	}
	env := below(user.Env(buildEnv(built.Tools)), built.folder)
	for i, step := range s.Build.Steps {
		args, err := expandAll(step, built.values())
		if err != nil {
			return err
		}
		line := cmdlog.Hush(strings.Join(step, " "))
		b.say("build %s: %s", s.Label(), line)
		if err := b.runStep(ctx, built, user, env, log, args); err != nil {
			err = fmt.Errorf("step %d of %d (%s): %w", i+1, len(s.Build.Steps), line, err)
			return withTail(err, log)
		}
	}
	if args := built.ownLibraries(filepath.Join(built.Dir, s.Build.Artifact)); args != nil {
		if err := b.runStep(ctx, built, user, env, log, args); err != nil {
			return withTail(fmt.Errorf("copy the native image's libraries: %w", err), log)
		}
	}
	return nil
}

func (b *Builder) runStep(ctx context.Context, built *Built, user privilege.User, env []string,
	log *os.File, args []string) error {
	if _, err := fmt.Fprintf(log, "$ %s\n", cmdlog.Hush(strings.Join(args, " "))); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	ctx, cancel := bounded(ctx, b.Bound)
	defer cancel()
	program := inside(built.Dir, args[0])
	if tool, ok := built.Tools[args[0]]; ok {
		// Run the tool whose version was checked, even if PATH has another one.
		program = tool.Path
	}
	cmd := Command(ctx, built.Dir, env, program, args[1:]...)
	// A file instead of a pipe: a process that a step leaves behind cannot block the build.
	cmd.Stdout, cmd.Stderr = log, log
	err := user.Start(cmd)
	if err == nil {
		pid := cmd.Process.Pid
		leave, failed := b.guard(pid, built.Log)
		if failed != nil {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // waited for below
		}
		err = errors.Join(failed, cmd.Wait())
		_ = syscall.Kill(-pid, syscall.SIGKILL) // children that it left would run beside the load
		err = errors.Join(err, leave())
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Exited() {
		return fmt.Errorf("exit status %d", exit.ExitCode())
	}
	return err
}

// bounded adds a time limit to ctx, stepBound if 0, with an error that says so.
func bounded(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	bound = cmp.Or(bound, stepBound)
	return context.WithTimeoutCause(ctx, bound, fmt.Errorf("the step was ended after %v without "+
		"a result: check what it waits for", bound))
}

// withTail adds the end of the log and its path to an error.
func withTail(err error, log *os.File) error {
	return fmt.Errorf("%w; the end of %s:\n  %s", err, log.Name(),
		strings.Join(files.Tail(log.Name(), tailLines), "\n  "))
}

// killGrace limits the wait for a killed program's output: a grandchild outside of the process
// group may hold the pipe for ever.
const killGrace = time.Second

// Command prepares a program in a process group of its own, so that the end of the context also
// ends its children: npm and mvn are scripts whose work runs in a child. Standard input is empty.
// The command is logged (see cmdlog).
func Command(ctx context.Context, dir string, env []string, program string,
	args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Cancel runs before the program is waited for, so its id cannot belong to another process yet.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killGrace
	cmdlog.Command(cmd)
	return cmd
}
