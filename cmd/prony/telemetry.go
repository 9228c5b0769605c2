//go:build linux && !portable

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"prony/internal/telemetry"
	"prony/internal/telemetry/verb"
)

// telemetryCmd is the home for what services tell; the work is another program's.
func (a *app) telemetryCmd() *cobra.Command {
	return verb.Telemetry(func(ctx context.Context, s verb.Serve) error {
		return a.handOver(ctx, s.Args())
	})
}

// queryCmd asks the metrics of a run, which is found here, where all verbs find theirs.
func (a *app) queryCmd() *cobra.Command {
	return verb.Ask(func(ctx context.Context, q verb.Query) error {
		dir, err := a.metricsOf(q.Run)
		if err != nil {
			return err
		}
		return a.handOver(ctx, q.Args(dir))
	})
}

// metricsOf finds a run's folder that has metrics.
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
		return "", fmt.Errorf("query %s: it has no metrics; was it run with --telemetry?", dir)
	}
	return dir, nil
}

// handOver lets prony-home go on in place of this program.
func (a *app) handOver(ctx context.Context, args []string) error {
	root, err := a.root()
	if err != nil {
		root = "" // it may be there all the same
	}
	return a.world.HandOver(ctx, root, args, a.say)
}
