//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
)

// Addresses of the stack, as published by deploy/compose.yaml.
const (
	stackOTLP    = "http://127.0.0.1:4318"
	stackGrafana = "http://127.0.0.1:3000"
)

func (a *app) stackCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "stack", Short: "Start, stop or inspect Grafana's stack in Docker",
		Long: `Stack runs docker compose on deploy/compose.yaml. Alloy receives telemetry and passes
it to Mimir (metrics), Loki (logs), Tempo (traces) and Pyroscope (profiles). Grafana shows it, with
dashboards of runs, services, JVMs, the generator and the host. All of them listen on 127.0.0.1
only. prony run --telemetry=lgtm sends telemetry to the stack.

docs/compose.md describes profiles, parameters and versions, and docs/dashboards.md lists the
dashboards.`,
		Example: "  prony stack up\n  prony run --telemetry=lgtm --targets go-nethttp\n" +
			"  prony stack down",
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.stackUpCmd(), a.stackDownCmd(), a.stackStatusCmd(), a.stackCheckCmd())
	return c
}

func (a *app) stackUpCmd() *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use: "up", Short: "Start the stack and wait until it is healthy", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if wait < time.Second {
				return cli.Usagef("--wait must be at least 1s, got %v", wait)
			}
			err := a.compose(c.Context(), a.stderr, a.stderr, "up", "--detach", "--no-recreate",
				"--wait", "--wait-timeout", fmt.Sprint(int(wait.Seconds())))
			if err != nil {
				return fmt.Errorf("%w; prony stack status shows the failed part, docker logs "+
					"prony-PART-1 shows its log", err)
			}
			fmt.Fprintf(a.stdout, "Grafana is at %s; send telemetry to it with prony run "+
				"--telemetry=lgtm\n", stackGrafana)
			return nil
		},
	}
	c.Flags().DurationVar(&wait, "wait", 5*time.Minute,
		"how long to wait until the parts of the stack are healthy")
	return c
}

func (a *app) stackDownCmd() *cobra.Command {
	volumes := false
	c := &cobra.Command{
		Use: "down", Short: "Stop the stack and keep its data", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			args := []string{"down"}
			if volumes {
				args = append(args, "--volumes")
			}
			return a.compose(c.Context(), a.stderr, a.stderr, args...)
		},
	}
	c.Flags().BoolVar(&volumes, "volumes", false, "also remove stored data")
	return c
}

func (a *app) stackStatusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "List the parts of the stack and their addresses", Args: cobra.NoArgs,
		Long: "Status lists the parts of the stack. The exit code is 0 if all of them run and " +
			"none is unhealthy, else 1.",
		RunE: func(c *cobra.Command, _ []string) error {
			var text bytes.Buffer
			err := a.compose(c.Context(), &text, a.stderr, "ps", "--all", "--format", "json")
			if err != nil {
				return err
			}
			parts, err := readParts(text.Bytes())
			if err != nil {
				return err
			}
			return a.printParts(parts)
		},
	}
}

// part is a container of the stack, as printed by docker compose ps.
type part struct {
	Service    string
	State      string // running, exited
	Health     string // healthy, unhealthy, starting; empty: it has no health check
	Publishers []struct {
		URL           string
		PublishedPort int
	}
}

// readParts reads one JSON object per line.
func readParts(text []byte) (parts []part, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	for d.More() {
		var p part
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("read the output of docker compose: %w", err)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// grafanaOf returns the address of Grafana among the stack's parts; empty: it does not run.
func grafanaOf(parts []part) string {
	for _, p := range parts {
		if p.Service != "grafana" || p.State != "running" {
			continue
		}
		for _, port := range p.Publishers {
			at, err := netip.ParseAddr(port.URL)
			if err != nil || port.PublishedPort == 0 {
				continue
			}
			if at.IsUnspecified() { // BIND also admits other machines
				at = netip.MustParseAddr("127.0.0.1")
			}
			return fmt.Sprintf("http://%v", netip.AddrPortFrom(at, uint16(port.PublishedPort)))
		}
		return stackGrafana
	}
	return ""
}

func (a *app) printParts(parts []part) error {
	if len(parts) == 0 {
		fmt.Fprintln(a.stdout, "no part of the stack exists; start the stack with prony stack up")
		return cli.End(cli.Failed, "the stack does not run")
	}
	var rows [][]string
	bad := 0
	for _, p := range parts {
		var at []string
		for _, port := range p.Publishers {
			if port.PublishedPort != 0 {
				at = append(at, fmt.Sprintf("%s:%d", port.URL, port.PublishedPort))
			}
		}
		state := strings.TrimSpace(p.State + " " + p.Health)
		rows = append(rows, []string{p.Service, state, strings.Join(at, " ")})
		if p.State != "running" || p.Health == "unhealthy" {
			bad++
		}
	}
	if err := a.grid(rows); err != nil {
		return err
	}
	if bad > 0 {
		return cli.End(cli.Failed, "%d parts of the stack do not run or are unhealthy", bad)
	}
	return nil
}

// compose runs docker compose on the stack's part of the file. Its output goes to out, its messages
// to talk.
func (a *app) compose(ctx context.Context, out, talk io.Writer, args ...string) error {
	root, err := a.root()
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "deploy")
	if _, err := os.Stat(filepath.Join(folder, "compose.yaml")); err != nil {
		return fmt.Errorf("the stack was not found: %w; run prony in a checkout, or name a "+
			"checkout with --root", err)
	}
	args = append([]string{"compose", "--project-directory", folder, "--profile", "OBS"}, args...)
	// Compose itself moves the cursor of a terminal.
	return a.world.Docker(ctx, format.Raw(out), format.Raw(talk), args)
}
