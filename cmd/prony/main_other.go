//go:build !linux || portable

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// world is nothing: no trials are run here.
type world = any

// begin is what comes before all else: nothing.
func begin() world { return nil }

// linuxAlone are the verbs that start services, or look at what Linux alone tells of them.
var linuxAlone = []string{"run", "plan", "services", "verify", "build", "truth",
	"selftest", "doctor", "telemetry", "query", "store", "agents", "stack", "new", "versus",
	"serve", "start"}

// addTrials lists the verbs that another system cannot have, and lets each say so.
func (a *app) addTrials(root *cobra.Command) {
	for _, name := range linuxAlone {
		root.AddCommand(&cobra.Command{
			Use: name, Short: "(works on Linux only)", DisableFlagParsing: true,
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("%s works only on Linux, because it needs cgroups and /proc. "+
					"Run it on Linux, for example in a virtual machine; load, report and compare "+
					"work here", name)
			},
		})
	}
}

// parquet fails: prony-home writes Parquet, and works on Linux only.
func (a *app) parquet(context.Context, io.Writer, io.Reader) error {
	return errors.New("--format parquet works only on Linux, because it needs prony-home; write " +
		"CSV instead (--format csv)")
}

// ceiling fails: what the generator is measured against is a server over epoll.
func (a *app) ceiling(context.Context, *offer) (float64, error) {
	return 0, errors.New("--ceiling works only on Linux, because the null server does; omit " +
		"--ceiling")
}
