package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"prony/internal/shell"
	"prony/internal/telemetry"
	"prony/internal/telemetry/program"
	"prony/internal/trial"
)

// home is one of telemetry in a process of its own.
type home struct {
	*telemetry.Client
	*telemetry.Child
}

// Home implements lab.World.
func (World) Home(ctx context.Context, root string, spec telemetry.LaunchSpec,
	say func(string)) (_ trial.Home, own []int, end func() error, err error) {
	spec.Program, err = program.Finder{Root: root, Progress: say}.Find(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	child, err := telemetry.Launch(ctx, spec)
	if err != nil {
		return nil, nil, nil, err
	}
	client := telemetry.NewClient(child.Endpoints().Query, child.Token())
	end = func() error {
		client.Close()
		return child.Stop(context.Background())
	}
	return home{client, child}, []int{child.PID()}, end, nil
}

// Parquet lets the home's program store a table of package flat as Parquet.
func Parquet(ctx context.Context, root string, rows io.Reader, w io.Writer,
	say func(string)) error {
	err := Beside(ctx, root, []string{telemetry.ParquetVerb}, rows, w, say)
	if err != nil {
		return fmt.Errorf("store as Parquet: %w", err)
	}
	return nil
}

// Beside lets the home's program do something, and waits. What it complains of is the error.
func Beside(ctx context.Context, root string, args []string, in io.Reader, out io.Writer,
	say func(string)) error {
	path, err := program.Finder{Root: root, Progress: say}.Find(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var told bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &told
	shell.Command(cmd)
	if err := cmd.Run(); err != nil {
		if why := strings.TrimSpace(told.String()); why != "" {
			err = errors.New(strings.TrimPrefix(why, "prony: "))
		}
		return err
	}
	return nil
}

// HandOver implements lab.World. It becomes the other program, with all that this one has: its
// streams, and whoever waits for it. It returns only where that failed.
func (World) HandOver(ctx context.Context, root string, args []string, say func(string)) error {
	path, err := program.Finder{Root: root, Progress: say}.Find(ctx)
	if err != nil {
		return err
	}
	words := append([]string{path}, args...)
	shell.Run(words...)
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, words, os.Environ()))
}
