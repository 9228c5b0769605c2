//go:build linux && !portable

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
)

func (a *app) stackStatusCmd() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "List the parts of the stack and their addresses", Args: cobra.NoArgs,
		Long: "Status lists the parts of the stack, and why a part does not run or is " +
			"unhealthy. The exit code is 0 if all parts run and none is unhealthy, else 1.",
		RunE: func(c *cobra.Command, _ []string) error {
			parts, err := a.stackParts(c.Context(), a.stderr)
			if err != nil {
				return err
			}
			return a.printParts(c.Context(), parts)
		},
	}
}

// part is a service of the profile OBS with its container, as printed by docker compose ps.
type part struct {
	Service    string
	Name       string // of the container; empty: it has none
	State      string // running, exited
	Health     string // healthy, unhealthy, starting; empty: it has no health check
	ExitCode   int
	Publishers []struct {
		URL           string
		PublishedPort int
	}
}

// absent is the state of a part without a container.
const absent = "absent"

func (p part) bad() bool { return p.State != "running" || p.Health == "unhealthy" }

// stackParts returns the parts of the stack, without other services of the project. It returns none
// if no part has a container.
func (a *app) stackParts(ctx context.Context, talk io.Writer) ([]part, error) {
	var names, text bytes.Buffer
	if err := a.compose(ctx, &names, talk, "config", "--services"); err != nil {
		return nil, err
	}
	if err := a.compose(ctx, &text, talk, "ps", "--all", "--format", "json"); err != nil {
		return nil, err
	}
	return readParts(text.Bytes(), strings.Fields(names.String()))
}

// readParts reads one JSON object per line, and returns the services of the names in their order.
func readParts(text []byte, names []string) (parts []part, err error) {
	found := map[string]part{}
	d := json.NewDecoder(bytes.NewReader(text))
	for d.More() {
		var p part
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("read the output of docker compose: %w", err)
		}
		if slices.Contains(names, p.Service) {
			found[p.Service] = p
		}
	}
	if len(found) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	for _, name := range names {
		p, exists := found[name]
		if !exists {
			p = part{Service: name, State: absent}
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

func (a *app) printParts(ctx context.Context, parts []part) error {
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
		if p.bad() {
			bad++
		}
	}
	if err := a.grid(rows); err != nil {
		return err
	}
	for _, p := range parts {
		if p.bad() {
			fmt.Fprintf(a.stdout, "%s: %s\n", p.Service, a.whyBad(ctx, p))
		}
	}
	if bad == 0 {
		return nil
	}
	fmt.Fprintf(a.stdout, "%d of %d parts do not run or are unhealthy\n", bad, len(parts))
	return cli.End(cli.Failed, "%d parts of the stack do not run or are unhealthy", bad)
}

// killed is the exit code of a container that SIGKILL ended.
const killed = 128 + 9

// logLines is the number of a log's last lines that explain why a part ended.
const logLines = "3"

// whyBad returns why a part does not run or is unhealthy, in the words of the engine, of the health
// check or of the part's log.
func (a *app) whyBad(ctx context.Context, p part) string {
	if p.State == absent {
		return "has no container; start it with prony stack up"
	}
	if p.Health == "unhealthy" {
		said := a.engine(ctx, "inspect", "--format",
			"{{range .State.Health.Log}}{{.Output}}\n{{end}}", p.Name)
		return "the last health check printed: " + lastLine(said)
	}
	why := fmt.Sprintf("%s with exit code %d", p.State, p.ExitCode)
	if p.ExitCode == killed {
		why += ", killed, for example because it exceeded its memory limit"
	}
	if fault := strings.TrimSpace(a.engine(ctx, "inspect", "--format", "{{.State.Error}}",
		p.Name)); fault != "" {
		return why + ": " + fault
	}
	log := strings.TrimSpace(a.engine(ctx, "logs", "--tail", logLines, p.Name))
	if log == "" {
		return why + "; its log is empty"
	}
	return why + "; docker logs " + p.Name + " ends with:\n  " +
		strings.ReplaceAll(log, "\n", "\n  ")
}

// engine returns the output of a docker command, or why it failed.
func (a *app) engine(ctx context.Context, args ...string) string {
	var out bytes.Buffer
	if err := a.world.Docker(ctx, &out, &out, args); err != nil {
		return err.Error()
	}
	return format.Clip(out.String())
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
