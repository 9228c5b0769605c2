//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial/lab"
)

func (a *app) verifyCmd() *cobra.Command {
	var f verifyFlags
	f.by = suite.Launchers[0]
	c := &cobra.Command{
		Use:   "verify [SERVICE[/TARGET]...]",
		Short: "Check that responses of services follow their contracts",
		Args:  cobra.ArbitraryArgs,
		Long: `Verify builds a service, starts each of its targets and sends every golden request of
its contracts, in HTTP/1.1 and in each other protocol of the service. Verify prints each response
that differs, with the place and both versions. SERVICE/TARGET verifies one target. Without a name,
verify checks every service that can run here.

With --table, verify also prints a table of the responses to each request of the suites. The table
has the bytes of headers and body, the headers that a target adds to those of the contract, and
whether the target keeps the connection. Bodies are equal by contract. Headers depend on the
framework and are part of the cost of a request.

With --update, verify writes that table into a Markdown file, between <!-- prony:begin heads --> and
<!-- prony:end heads -->. Targets of the catalog that cannot run here keep their rows.`,
		Example: "  prony verify go-nethttp\n  prony verify --verbose java-spring/virtual\n" +
			"  prony verify --launcher docker go-nethttp\n" +
			"  prony verify --table go-nethttp rust-axum\n" +
			"  prony verify --update docs/fairness.md",
		RunE: func(c *cobra.Command, args []string) error {
			return a.verify(c.Context(), args, f)
		},
	}
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "also list the cases that pass")
	c.Flags().BoolVar(&f.table, "table", false, "print a table of the responses")
	c.Flags().StringVar(&f.page, "update", "", "Markdown `FILE` to which the table is written")
	cli.OneOf(c, &f.by, "launcher", "how targets are started", suite.Launchers...)
	return c
}

// verifyFlags are the settings of a verification and its output.
type verifyFlags struct {
	by      string
	verbose bool
	table   bool
	page    string
}

func (a *app) verify(ctx context.Context, args []string, f verifyFlags) error {
	if f.table || f.page != "" {
		rows, err := a.fairRows(ctx, args, f, true, nil)
		if f.page != "" {
			err = errors.Join(err, a.updateFairness(f.page, rows))
		}
		if f.table {
			err = errors.Join(err, printFairness(a.stdout, rows))
		}
		return err
	}
	v := &verifier{app: a, verbose: f.verbose}
	err := v.visit(ctx, args, f.by, true, func(ctx context.Context, t lab.Seen) error {
		_, err := v.conform(ctx, t)
		return err
	})
	return v.conclude(err)
}

// visit calls see for the named services, or all, in every protocol or only in HTTP/1.1. It skips
// services that cannot run here with a line.
func (a *app) visit(ctx context.Context, names []string, by string, spoken bool,
	see lab.Sight) error {
	l, _, err := a.lab()
	if err != nil {
		return err
	}
	skipped := func(name string, missing []string) {
		fmt.Fprintf(a.stdout, "skipped %s: %s\n", name, strings.Join(missing, "; "))
	}
	return lab.Visitor{Lab: l, Launcher: by, See: see, Skipped: skipped,
		Spoken: spoken}.Visit(ctx, names)
}

// verifier checks targets against their contracts and prints the results.
type verifier struct {
	*app
	verbose bool
	bad     int
}

// conform sends all contracts' requests to a running target and returns the heads of its responses.
func (v *verifier) conform(ctx context.Context, t lab.Seen) (heads []service.Head, err error) {
	for _, contract := range t.Service.Contracts {
		r, err := service.Conform(ctx, t.Checker, contract)
		if err != nil {
			return nil, err
		}
		if len(r.Cases) == 0 { // the contract has no cases in this protocol
			continue
		}
		v.print(t.Name, r)
		heads = append(heads, r.Heads...)
	}
	return heads, nil
}

// conclude returns err, or an error if responses differ.
func (v *verifier) conclude(err error) error {
	if err == nil && v.bad > 0 {
		err = cli.End(cli.Invalid, "%d responses differ from the contract", v.bad)
	}
	return err
}

func (v *verifier) print(target string, r service.Report) {
	bad, skipped := r.Failures(), 0
	for _, c := range r.Cases {
		if c.Skipped != "" {
			skipped++
		} else if v.verbose && len(c.Differences) == 0 {
			fmt.Fprintf(v.stdout, "  pass  %s (%s)\n", c.Name, c.Request)
		}
	}
	for _, f := range bad {
		fmt.Fprintf(v.stdout, "  FAIL  %s\n", f)
	}
	v.bad += len(bad)
	verdict := "all responses follow the contract"
	if len(bad) > 0 {
		verdict = fmt.Sprintf("%d responses differ", len(bad))
	}
	fmt.Fprintf(v.stdout, "%s · %s: %d cases, %d skipped: %s\n", target, r.Contract, len(r.Cases),
		skipped, verdict)
}
