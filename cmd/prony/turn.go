//go:build linux && !portable

package main

import (
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/trial/lab"
)

// waitDefault is the maximum wait for another lab without a value of --wait: longer than any run,
// but finite.
const waitDefault = "24h"

// turnFlags are the settings of verbs that take the machine and start services.
type turnFlags struct {
	wait time.Duration
	asMe bool
}

func (f *turnFlags) flags(c *cobra.Command) {
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait while another prony measures on this "+
		"machine; =10m waits at most ten minutes")
	c.Flags().Lookup("wait").NoOptDefVal = waitDefault
	c.Flags().BoolVar(&f.asMe, "as-me", false, "if prony runs as root: start your own services "+
		"as root without its capabilities, instead of as an unprivileged user")
}

func (f *turnFlags) check(c *cobra.Command) error {
	if c.Flag("wait").Changed && f.wait <= 0 {
		return cli.Usagef("--wait must be greater than 0, got %v", f.wait)
	}
	return nil
}

func (f *turnFlags) set(l *lab.Lab) { l.Wait, l.AsMe = f.wait, f.asMe }
