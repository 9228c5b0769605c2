//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
dashboards of runs, services, JVMs, the generator and the host. All parts of the stack listen on
127.0.0.1 only. prony run --telemetry=lgtm sends telemetry to the stack.

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
			if err := checkWait(wait); err != nil {
				return err
			}
			if err := a.upStack(c.Context(), wait); err != nil {
				// Otherwise docker or Compose is missing.
				if _, started := errors.AsType[*exec.ExitError](err); started {
					err = fmt.Errorf("%w; prony stack status shows why a part does not run", err)
				}
				return err
			}
			parts, err := a.stackParts(c.Context(), a.stderr)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "Grafana is at %s; send telemetry to it with prony run "+
				"--telemetry=lgtm\n", cmp.Or(grafanaOf(parts), stackGrafana))
			return nil
		},
	}
	c.Flags().DurationVar(&wait, "wait", 5*time.Minute,
		"how long to wait until the parts of the stack are healthy")
	return c
}

// checkWait refuses a time without a whole second, because 0 is endless for Compose.
func checkWait(wait time.Duration) error {
	if wait < time.Second {
		return cli.Usagef("--wait must be at least 1s, got %v", wait)
	}
	return nil
}

// upStack starts the stack and waits until it is healthy.
func (a *app) upStack(ctx context.Context, wait time.Duration) error {
	return a.compose(ctx, a.stderr, a.stderr, "up", "--detach", "--no-recreate", "--wait",
		"--wait-timeout", fmt.Sprint(int(wait.Seconds())))
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
