//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/suite/agents"
)

func (a *app) agentsCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "agents", Short: "List the agents that can be attached to services",
		Args: cli.Arguments(0, 0),
		Long: `Agents lists the agents of agents.yaml: each agent at each of its levels, its
runtimes, its version, and whether it was fetched or needs a missing tool. A suite attaches an agent
in a variant (agent: NAME/LEVEL). A run fetches its agents by itself.`,
		Example: "  prony agents\n  prony agents fetch otel-java",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.listAgents(c.Context())
		},
	}
	c.AddCommand(&cobra.Command{
		Use: "fetch [NAME...]", Short: "Fetch agents (default: all that this machine can use)",
		Args: cobra.ArbitraryArgs,
		Long: `Fetch downloads agents through Maven, npm and pip, as configured for your user, into
.prony/agents, and prints the digest of each. Fetch does not download an agent again if its files
are unchanged. Fetch refuses a file of Maven whose digest differs from agents.yaml.`,
		Example: "  prony agents fetch\n  prony agents fetch otel-java otel-node",
		RunE: func(c *cobra.Command, args []string) error {
			return a.fetchAgents(c.Context(), args)
		},
	})
	return c
}

func (a *app) listAgents(ctx context.Context) error {
	f, catalog, err := a.agents()
	if err != nil {
		return err
	}
	rows := [][]string{{"AGENT", "RUNTIMES", "VERSION", "HERE", "ABOUT"}}
	for _, x := range catalog.Agents {
		version, here := agentHere(ctx, f, x)
		for _, l := range x.Rungs() {
			state := here
			if lacks := f.Lacks(x.Variant(l)); len(lacks) > 0 {
				state = strings.Join(lacks, "; ")
			}
			of := strings.Join(x.Runtimes, ",")
			if len(x.Languages) > 0 {
				of += " (" + strings.Join(x.Languages, ",") + ")"
			}
			rows = append(rows, []string{x.Full(l), of, version, state, l.About})
		}
	}
	return a.grid(rows)
}

// agentHere returns an agent's version and its state on this machine.
func agentHere(ctx context.Context, f *agents.Fetcher, x agents.Agent) (version, here string) {
	version, err := x.Version(f.Root)
	missing := f.Missing(x)
	got, have := f.Have(ctx, x)
	switch {
	case err != nil:
		here = err.Error()
	case len(missing) > 0 && !have:
		here = strings.Join(missing, "; ")
	case x.Fetch.Build != "":
		here = "a build of the service"
	case x.Source() == "":
		here = "nothing to fetch"
	case have:
		version, here = got.Version, "fetched"
	default:
		here = "not fetched"
	}
	return cmp.Or(version, "-"), here
}

// agents returns the declared agents and their fetcher.
func (a *app) agents() (*agents.Fetcher, *agents.Catalog, error) {
	l, _, err := a.lab()
	if err != nil {
		return nil, nil, err
	}
	catalog, err := l.Agents()
	return agents.New(l.Root, a.say), catalog, err
}

// fetchAgents fetches agents by name, or all. It skips agents that lack something here with a line,
// unless they were named.
func (a *app) fetchAgents(ctx context.Context, names []string) error {
	f, catalog, err := a.agents()
	if err != nil {
		return err
	}
	chosen := catalog.Agents
	if len(names) > 0 {
		chosen = nil
	}
	for _, name := range names {
		x, err := catalog.Pick(name)
		if err != nil {
			return cli.Usage(err)
		}
		chosen = append(chosen, x)
	}
	var errs []error
	for _, x := range chosen {
		got, err := f.Fetch(ctx, x)
		switch {
		case errors.Is(err, agents.ErrMissing) && len(names) == 0:
			fmt.Fprintf(a.stdout, "skipped %s: %s\n", x.Name, strings.Join(f.Missing(x), "; "))
		case err != nil:
			errs = append(errs, err)
		case got.Path == "":
			fmt.Fprintf(a.stdout, "%-16s nothing to fetch\n", x.Name)
		default:
			how := "fetched"
			if got.Cached {
				how = "unchanged"
			}
			fmt.Fprintf(a.stdout, "%-16s %-8s %s  %s\n", x.Name, got.Version, got.SHA256[:12], how)
		}
	}
	return errors.Join(errs...)
}
