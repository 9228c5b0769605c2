package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/report/history"
)

type trendFlags struct {
	history.Options
	format, out string
	fail        bool
	latest      int
}

func (a *app) trendCmd() *cobra.Command {
	f := &trendFlags{}
	c := &cobra.Command{
		Use: "trend [DIR...]", Short: "Find changes in the history of many runs",
		Args: cobra.ArbitraryArgs,
		Long: `Trend reads all runs below the folders (default: results/ of the checkout, or
.prony/run of the project) and orders the values of each target and metric by time. Trend finds the
points where the level of a series changes, and prints the runs, commits and values before and
after. Runs of different configurations are separate series. A series needs six runs. A change is
detected from the third run after it. Trend keeps the values of the usual metrics in .prony of a
folder with runs, and then reads only new and changed runs.

--alpha is the probability that histories without a change show any, all series together. With
--fail-on-regression, the exit code is 3 if the present level of a series is worse than the one
before and began within the --latest runs.`,
		Example: `  prony trend
  prony trend results --metric throughput --targets go-nethttp
  prony trend nightly --fail-on-regression --format markdown`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.trend(c.Context(), args, f)
		},
	}
	fs := c.Flags()
	fs.StringSliceVar(&f.Metrics, "metric", nil,
		"metrics, such as throughput, p99 or half/p99 (that of one load); all shows all")
	fs.StringSliceVar(&f.Targets, "targets", nil, "rows to include (default: all)")
	cli.Output(c, &f.format, &f.out, history.Forms.Names()...)
	fs.BoolVar(&f.fail, "fail-on-regression", false, "exit with code 3 if the latest change is a "+
		"loss")
	fs.IntVar(&f.latest, "latest", 10, "number of latest runs in which a loss must have begun to "+
		"fail; 0: at any time")
	fs.Float64Var(&f.Alpha, "alpha", 0.05, "probability of a false alarm, for all series together")
	return c
}

func (a *app) trend(ctx context.Context, args []string, f *trendFlags) error {
	if !(f.Alpha > 0 && f.Alpha < 1) {
		return cli.Usagef("--alpha must be a probability between 0 and 1, got %v", f.Alpha)
	}
	if f.latest < 0 {
		return cli.Usagef("--latest must be at least 0, got %d", f.latest)
	}
	if len(args) == 0 {
		dir, err := a.runs()
		if err != nil {
			return err
		}
		args = []string{dir}
	}
	t, err := a.trendOf(ctx, args, f.Options)
	if err != nil {
		return err
	}
	if len(t.Series) == 0 && len(f.Metrics)+len(f.Targets) > 0 {
		// A check without data must not succeed.
		return cli.Usagef("no run has a value of metric %s and target %s; prony report RUN "+
			"--format csv lists the metrics and targets", orAny(f.Metrics),
			orAny(f.Targets))
	}
	err = a.write(f.out, func(w io.Writer) error { return history.Forms.Write(w, f.format, t) })
	if err != nil {
		return err
	}
	if lost := t.Regressions(f.latest); f.fail && len(lost) > 0 {
		return cli.End(cli.GateFailed, "%d series became worse", len(lost))
	}
	return nil
}

func orAny(names []string) string {
	if len(names) == 0 {
		return "any"
	}
	return strings.Join(names, ", ")
}
