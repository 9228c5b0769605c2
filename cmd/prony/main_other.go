//go:build !linux || portable

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// world is unused: no trials run on this system.
type world = any

// begin does nothing on this system.
func begin() world { return nil }

// linuxAlone are the verbs that start services, or read data that only Linux has.
var linuxAlone = []string{"run", "plan", "services", "verify", "build", "truth",
	"selftest", "doctor", "telemetry", "query", "store", "agents", "stack", "versus",
	"serve", "start"}

// addTrials adds the verbs that work only on Linux, each with an error that says so.
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

// parquet fails, because prony-home writes Parquet and works only on Linux.
func (a *app) parquet(context.Context, io.Writer, io.Reader) error {
	return errors.New("--format parquet works only on Linux, because it needs prony-home; write " +
		"CSV instead (--format csv)")
}

// hasNull is false: the null server is for Linux.
const hasNull = false

// ceiling fails, because the null server uses epoll.
func (a *app) ceiling(context.Context, *offer) (float64, error) {
	return 0, errors.New("--ceiling works only on Linux, because the null server does; omit " +
		"--ceiling")
}
