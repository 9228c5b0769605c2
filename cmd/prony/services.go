package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/service"
)

func (a *app) servicesCmd() *cobra.Command {
	return &cobra.Command{
		Use: "services", Short: "List the catalog and what is missing to run each here",
		Args: cli.Arguments(0, 0),
		Long: `Services lists every target of the catalog with its contracts, and what this machine
lacks to build and run it. A suite skips what cannot run, with the same words.`,
		Example: "  prony services",
		RunE: func(c *cobra.Command, _ []string) error {
			services, err := a.catalog()
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
