//go:build linux && !portable

package main

import (
	"context"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/lab/machine"
	"prony/internal/telemetry/verb"
)

const keepAbout = `Keep does what another line of prony's says, with its results kept in a bucket:
before, it pulls the last good run, where a gate with --last-good RESULTS/good left one;
afterwards, however that ended, it pushes all runs of the folder. It exits as the line does, or
with 1 where that was fine and the push was not.`

// storeCmd keeps runs in a bucket. What speaks to one is another program's.
func (a *app) storeCmd() *cobra.Command {
	c := verb.Bucket(func(ctx context.Context, s verb.Store) error {
		return a.handOver(ctx, s.Args())
	})
	c.AddCommand(&cobra.Command{
		Use: "keep s3://BUCKET/PREFIX RESULTS -- VERB ...", Long: keepAbout,
		Short: "Do what another line of prony's says, with its results kept in a bucket",
		Args:  cli.Arguments(3, 1<<10),
		RunE: func(c *cobra.Command, args []string) error {
			if err := verb.CheckPlace(args[0]); err != nil {
				return err
			}
			return a.keepIn(c.Context(), args[0], args[1], args[2:])
		},
	})
	return c
}

func (a *app) keepIn(ctx context.Context, place, dir string, line []string) error {
	err := a.beside(ctx, verb.Store{Place: place, Dir: dir, LastGood: true})
	if err != nil {
		return err
	}
	ended := run(ctx, a.world, line, a.stdout, a.stderr)
	// What a signal has ended is kept, too.
	err = a.beside(context.WithoutCancel(ctx), verb.Store{Push: true, Place: place, Dir: dir})
	if ended == nil {
		return err
	}
	if err != nil {
		a.say("prony: " + err.Error())
	}
	return cli.End(cli.Code(ended), "%s", ended)
}

// beside lets the home's program do it, and waits.
func (a *app) beside(ctx context.Context, s verb.Store) error {
	root, err := a.root()
	if err != nil {
		root = "" // it may be there all the same
	}
	return machine.Beside(ctx, root, s.Args(), nil, a.stderr, a.say)
}
