//go:build linux && !portable

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/service"
)

func (a *app) servicesCmd() *cobra.Command {
	return &cobra.Command{
		Use: "services", Short: "List the services and what each needs to run here",
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
			rows := [][]string{{"TARGET", "LANGUAGE", "FRAMEWORK", "RUNTIME", "MODE", "CONTRACTS",
				"HERE"}}
			for _, s := range services {
				for _, t := range s.Targets {
					here := "ready"
					if missing := tools.Missing(s, t); len(missing) > 0 {
						here = strings.Join(missing, "; ")
					} else if t.ExplicitOnly != "" {
						here += ", aside: " + t.ExplicitOnly
					}
					rows = append(rows, []string{s.Full(t), s.Language,
						s.Framework + " " + s.Version, t.Runtime, t.Mode,
						strings.Join(s.Contracts, ","), here})
				}
			}
			return a.grid(rows)
		},
	}
}
