//go:build linux && !portable

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/flags"
	"prony.example/internal/trial/machine"
)

// telemetryCmd runs the telemetry collector, which is another program.
func (a *app) telemetryCmd() *cobra.Command {
	return flags.Telemetry(func(ctx context.Context, s flags.Serve) error {
		return a.handOver(ctx, s.Args())
	})
}

// queryCmd queries the metrics of a run. It finds the run itself, as all verbs do.
func (a *app) queryCmd() *cobra.Command {
	return flags.Ask(func(ctx context.Context, q flags.Query) error {
		dir, err := a.metricsOf(q.Run)
		if err != nil {
			return err
		}
		return a.handOver(ctx, q.Args(dir))
	})
}

// metricsOf returns a run's folder that has metrics.
func (a *app) metricsOf(run string) (dir string, err error) {
	var args []string
	if run != "" {
		args = []string{run}
	}
	dir, err = a.findRun(args, "metrics", func(dir string) bool {
		return telemetry.DatabaseIn(dir) != ""
	})
	if err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	if telemetry.DatabaseIn(dir) == "" {
		return "", fmt.Errorf("query %s: the run has no metrics; record metrics with prony run "+
			"--telemetry", dir)
	}
	return dir, nil
}

// handOver replaces this program by prony-home.
func (a *app) handOver(ctx context.Context, args []string) error {
	root, _ := a.root() // the program may exist even without a checkout
	return a.world.HandOver(ctx, root, args, a.say)
}

const keepAbout = `Keep runs a prony command and stores its results in a bucket. Before the command,
it pulls the last good run, if a gate with --last-good RESULTS/good left one. After the command,
even if it failed, keep pushes all runs of the folder. The exit code is that of the command, or 1 if
the command succeeded and the push failed.`

// storeCmd stores runs in a bucket, which another program accesses.
func (a *app) storeCmd() *cobra.Command {
	c := flags.Bucket(func(ctx context.Context, s flags.Store) error {
		return a.handOver(ctx, s.Args())
	})
	c.AddCommand(&cobra.Command{
		Use: "keep s3://BUCKET/PREFIX RESULTS -- VERB ...", Long: keepAbout,
		Short: "Run a prony command and keep its results in a bucket",
		Args:  cli.Arguments(3, 1<<10),
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.CheckPlace(args[0]); err != nil {
				return err
			}
			return a.keepIn(c.Context(), args[0], args[1], args[2:])
		},
	})
	return c
}

func (a *app) keepIn(ctx context.Context, place, dir string, line []string) error {
	err := a.beside(ctx, flags.Store{Place: place, Dir: dir, LastGood: true})
	if err != nil {
		return err
	}
	ended := a.inner(ctx, line)
	// Also store runs that a signal has ended.
	err = a.beside(context.WithoutCancel(ctx), flags.Store{Push: true, Place: place, Dir: dir})
	if ended == nil {
		return err
	}
	if err != nil {
		a.say("prony: " + err.Error())
	}
	return cli.End(cli.Code(ended), "%s", ended)
}

// beside runs the collector's program and waits.
func (a *app) beside(ctx context.Context, s flags.Store) error {
	root, _ := a.root() // the program may exist even without a checkout
	return machine.Beside(ctx, root, s.Args(), nil, a.stderr, a.say)
}
