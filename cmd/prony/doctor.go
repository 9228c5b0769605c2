//go:build linux && !portable

package main

import (
	"context"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/trial/doctor"
	"prony.example/record"
)

type doctorOptions struct {
	cpus              float64
	json, all, strict bool
}

func (a *app) doctorCmd() *cobra.Command {
	var o doctorOptions
	c := &cobra.Command{
		Use: "doctor", Short: "Check whether this machine is fit to measure on",
		Args: cli.Arguments(0, 0),
		Long: `Doctor checks for a second whether this machine is fit to measure on: CPUs, clock,
other programs, memory, network, permissions. For each problem it prints the observed value, the
expected value, the reason, and the command that fixes it. Doctor changes nothing.

The grade is the worst of all checks: fit, doubtful or unfit. On a doubtful machine, numbers are
usable but noisier: compare only within one run. On an unfit machine, numbers depend more on the
machine than on the service. Run doctor while nothing else runs. A value that the kernel does not
report is "?".

Exit codes: 0 fit or doubtful, 4 unfit; with --strict also 4 if doubtful.`,
		Example: `  prony doctor            what is not as it should be, and what to do
  prony doctor --all      everything, with reasons and sources
  prony doctor --strict   for scripts: exit 4 unless the machine is fit
  prony doctor --cpus 4   for a service that is to have four cores`,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), o) },
	}
	c.Flags().Float64Var(&o.cpus, "cpus", 1, "CPU limit of the service, as in limits.cpus")
	c.Flags().BoolVar(&o.json, "json", false, "write JSON")
	c.Flags().BoolVar(&o.all, "all", false, "also show checks that pass, and all reasons")
	c.Flags().BoolVar(&o.strict, "strict", false, "exit with code 4 also if the machine is "+
		"doubtful")
	return c
}

func (a *app) doctor(ctx context.Context, o doctorOptions) error {
	if o.cpus <= 0 {
		return cli.Usagef("--cpus must be greater than 0, such as 1 or 0.5, got %g", o.cpus)
	}
	g := a.world.Examine(ctx, doctor.Options{CPUs: o.cpus})
	if err := a.writeGrading(g, o); err != nil {
		return err
	}
	if g.Grade == record.Unfit || o.strict && g.Grade != record.Fit {
		return cli.End(cli.Invalid, "%s", "the host is "+g.Grade)
	}
	return nil
}

func (a *app) writeGrading(g record.Grading, o doctorOptions) error {
	if o.json {
		return format.JSON(a.stdout, g)
	}
	fit := textOptions(a.stdout)
	text := doctor.TextOptions{Width: fit.Width, Color: fit.Color, All: o.all}
	return doctor.Text(a.stdout, g, text)
}
