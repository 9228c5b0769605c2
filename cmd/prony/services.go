package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/config"
	"prony/internal/service"
	"prony/internal/suite"
)

func (a *app) servicesCmd() *cobra.Command {
	return &cobra.Command{
		Use: "services", Short: "List the catalog and what is missing to run each here",
		Args: cli.Arguments(0, 0),
		Long: `Services lists every target of the catalog with its contracts, and what this machine
lacks to build and run it. A suite skips what cannot run, with the same words.`,
		Example: "  prony services",
		RunE: func(c *cobra.Command, _ []string) error {
			root, err := a.root()
			if err != nil {
				return err
			}
			services, err := a.catalog(root)
			if err != nil {
				return err
			}
			tools := service.FindTools(c.Context())
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TARGET\tLANGUAGE\tFRAMEWORK\tRUNTIME\tMODE\tCONTRACTS\tHERE")
			for _, s := range services {
				for _, t := range s.Targets {
					here := "ready"
					if missing := tools.Missing(s, t); len(missing) > 0 {
						here = strings.Join(missing, "; ")
					} else if t.Aside != "" {
						here += ", aside: " + t.Aside
					}
					row := []string{s.Full(t), s.Language, s.Framework + " " + s.Version, t.Runtime,
						t.Mode, strings.Join(s.Contracts, ","), here}
					fmt.Fprintln(w, strings.Join(row, "\t"))
				}
			}
			return w.Flush()
		},
	}
}

func (a *app) say(line string) { fmt.Fprintln(a.stderr, line) }

// choose reads the catalog and picks services by name, all without names.
func (a *app) choose(root string, names []string) ([]*service.Service, error) {
	services, err := a.catalog(root)
	if err != nil {
		return nil, err
	}
	return pick(services, names)
}

func unknownService(services []*service.Service, name string) error {
	var known []string
	for _, s := range services {
		known = append(known, s.Name)
	}
	if near := config.Nearest(name, known); near != "" {
		return cli.Usagef("there is no service %q; did you mean %q?", name, near)
	}
	return cli.Usagef("there is no service %q; there are %s", name,
		strings.Join(known, ", "))
}

func (a *app) verifyCmd() *cobra.Command {
	var verbose bool
	by := suite.Launchers[0]
	c := &cobra.Command{
		Use: "verify [SERVICE...]", Short: "Check that services answer as their contracts say",
		Args: cobra.ArbitraryArgs,
		Long: `Verify builds a service, starts each of its targets and asks every golden case of
the contracts that it declares. An answer that differs is named with the place and both versions.
Without a name it verifies every service that can run here.`,
		Example: "  prony verify go-nethttp\n  prony verify --verbose java-jdk\n" +
			"  prony verify --launcher docker go-nethttp",
		RunE: func(c *cobra.Command, args []string) error {
			return a.verify(c.Context(), args, by, verbose)
		},
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "list the cases that pass, too")
	cli.OneOf(c, &by, "launcher", "how targets are started", suite.Launchers...)
	return c
}

func (a *app) verify(ctx context.Context, args []string, by string, verbose bool) error {
	v := &verifier{app: a, verbose: verbose}
	err := a.visit(ctx, args, by, func(ctx context.Context, name string, s *service.Service,
		c service.Checker) error {
		_, err := v.conform(ctx, name, s, c)
		return err
	})
	return v.conclude(err)
}

// verifier holds targets against their contracts and prints what it finds.
type verifier struct {
	*app
	verbose bool
	bad     int
}

// conform asks for all contracts of a running target and returns the heads of its answers.
func (v *verifier) conform(ctx context.Context, name string, s *service.Service,
	c service.Checker) (heads []service.Head, err error) {
	for _, contract := range s.Contracts {
		r, err := service.Conform(ctx, c, contract)
		if err != nil {
			return nil, err
		}
		v.print(name, r)
		heads = append(heads, r.Heads...)
	}
	return heads, nil
}

// conclude is the error of the whole: err, or that answers differ.
func (v *verifier) conclude(err error) error {
	if err == nil && v.bad > 0 {
		err = cli.End(cli.Invalid, "%d answers differ", v.bad)
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
	verdict := "as the contract says"
	if len(bad) > 0 {
		verdict = fmt.Sprintf("%d answers differ", len(bad))
	}
	fmt.Fprintf(v.stdout, "%s · %s: %d cases, %d skipped: %s\n", target, r.Contract, len(r.Cases),
		skipped, verdict)
}

func printPlan(w interface{ Write([]byte) (int, error) }, p *suite.Plan) error {
	fmt.Fprintf(w, "%s: %s\n", p.Suite.Name, p.Suite.Question)
	fmt.Fprintf(w, "plan %s · seed %d · %d trials in %d %s · about %s\n\n", p.Hash,
		p.Suite.Seed, len(p.Trials), p.Suite.Blocks, passes(p), roughly(p.Estimate()))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BLOCK\tORDER\tTARGET\tSCENARIO\tLOADS")
	for _, x := range p.Trials {
		var loads []string
		for _, l := range p.Suite.OfTrial(x) {
			loads = append(loads, fmt.Sprintf("%s (%s, %v)", l.Name, loadText(l),
				time.Duration(l.Measure)))
		}
		by := x.Target
		if x.Driver != "" && x.Driver != suite.Drivers[0] {
			by += " by " + x.Driver
		}
		if x.Variant != "" && x.Variant != "none" {
			by += " +" + x.Variant
		}
		if x.Role != "" {
			by += ", " + x.Role
		}
		if x.Arm != "" {
			by += " (" + x.Arm + ")"
		}
		if x.Side != "" {
			by += ", " + x.Side
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\n", x.Block, x.Order, by, x.Scenario,
			strings.Join(loads, ", "))
	}
	return t.Flush()
}

// loadText is a load's model in words.
func loadText(l suite.Load) string {
	switch {
	case l.Model == suite.Open && l.Trace != "":
		return "open, replay of " + l.Trace
	case l.Model == suite.Open:
		return fmt.Sprintf("open, %s, %s", l.Arrivals, l.Rate)
	case !l.Users.IsZero():
		text := fmt.Sprintf("closed, users %s", l.Users)
		if l.Think != (suite.Think{}) {
			text += fmt.Sprintf(" thinking %s", l.Think)
		}
		return text
	}
	return fmt.Sprintf("closed, %d connections", l.Connections)
}
