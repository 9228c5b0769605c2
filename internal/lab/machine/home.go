package machine

import (
	"context"
	"fmt"
	"os"
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
