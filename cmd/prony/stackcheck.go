//go:build linux && !portable

package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/address"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/telemetry/boards"
)

// Limits of stack check.
const (
	checkWindow = 6 * time.Minute // the recorded series last five minutes
	checkPause  = 10 * time.Second
	checkAnswer = time.Minute // of one request
)

// stackCheck is a check of the stack and its flags.
type stackCheck struct {
	grafana, otlp, user string
	wait                time.Duration
}

func (a *app) stackCheckCmd() *cobra.Command {
	var s stackCheck
	c := &cobra.Command{
		Use: "check", Args: cobra.NoArgs,
		Short: "Check with known telemetry that each panel finds data",
		Long: `Check starts the stack unless it runs, sends recorded telemetry to Alloy, puts each
query of Grafana's dashboards to Grafana's HTTP API, and prints a line for each panel. Check repeats
queries that find nothing until --wait is over.

The telemetry is a run whose name ends in -check: metrics of services, loads and trials, spans and
log records, but no profiles. Panels of profiles are queried, and may have no data. The stack keeps
this run like others. Grafana's password is read from GRAFANA_PASSWORD (default a).

The exit code is 0 if each panel has data, else 1.`,
		Example: "  prony stack check",
		RunE: func(c *cobra.Command, _ []string) error {
			for name, text := range map[string]string{"grafana": s.grafana, "otlp": s.otlp} {
				if name == "grafana" && text == "" {
					continue // the stack's
				}
				if _, err := address.Parse(text, "http", "https"); err != nil {
					return cli.Usagef("--%s: %w", name, err)
				}
			}
			if err := checkWait(s.wait); err != nil {
				return err
			}
			return a.checkStack(c.Context(), s)
		},
	}
	c.Flags().DurationVar(&s.wait, "wait", 3*time.Minute, "how long to wait for data in all panels")
	c.Flags().StringVar(&s.grafana, "grafana", "",
		"Grafana's `URL`, instead of the stack's of deploy/compose.yaml")
	c.Flags().StringVar(&s.otlp, "otlp", stackOTLP, "`URL` of Alloy's port for OTLP over HTTP")
	c.Flags().StringVar(&s.user, "user", "a", "Grafana's user")
	return c
}

// checkStack checks the running stack, or starts it.
func (a *app) checkStack(ctx context.Context, s stackCheck) error {
	root, err := a.root()
	if err != nil {
		return err
	}
	recorded, err := boards.Recorded(root)
	if err != nil {
		return err
	}
	files, err := boards.Read(root)
	if err != nil {
		return err
	}
	if s.grafana == "" {
		if s.grafana, err = a.startedGrafana(ctx, s.wait); err != nil {
			return err
		}
	}
	password := os.Getenv("GRAFANA_PASSWORD")
	if password == "" {
		password = "a"
	}
	client := &http.Client{Timeout: checkAnswer}
	g := boards.Grafana{Base: s.grafana, User: s.user, Password: password, HTTP: client}
	shown, err := g.Boards(ctx, "prony")
	if err != nil {
		return err
	}
	now := clock.Wall()
	run := now.UTC().Format("2006-01-02T15-04-05Z") + "-check"
	sender := boards.Sender{OTLP: s.otlp, HTTP: client}
	if err := sender.Send(ctx, recorded, run, now); err != nil {
		return err
	}
	rows, err := a.awaitPanels(ctx, g, shown, now.Add(s.wait))
	if err != nil {
		return err
	}
	return a.printPanels(append(missingBoards(files, shown), rows...))
}

// startedGrafana starts the stack unless it runs, and returns the address of Grafana.
func (a *app) startedGrafana(ctx context.Context, wait time.Duration) (string, error) {
	running := func() (string, error) {
		parts, err := a.stackParts(ctx, a.stderr)
		return grafanaOf(parts), err
	}
	at, err := running()
	if err != nil || at != "" {
		return at, err
	}
	if err := a.upStack(ctx, wait); err != nil {
		return "", err
	}
	if at, err = running(); err == nil && at == "" {
		err = cli.End(cli.Failed, "Grafana does not run; prony stack status lists the parts")
	}
	return at, err
}

// awaitPanels repeats the check until each panel has data, or the time is over.
func (a *app) awaitPanels(ctx context.Context, g boards.Grafana, all []boards.Board,
	end time.Time) ([]boards.Row, error) {
	for {
		rows, err := boards.Check(ctx, g, all, checkWindow, clock.Wall())
		if err != nil {
			return nil, err
		}
		bad := 0
		for _, r := range rows {
			if !r.Complete() && !r.Optional {
				bad++
			}
		}
		if bad == 0 || clock.Wall().Add(checkPause).After(end) {
			return rows, nil
		}
		fmt.Fprintf(a.stderr, "%d of %d panels have no data yet\n", bad, len(rows))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(checkPause):
		}
	}
}

// missingBoards returns a row for each dashboard of the checkout that Grafana does not have, except
// those of the profile TESTER, which has a folder of its own.
func missingBoards(files, shown []boards.Board) (rows []boards.Row) {
	has := map[string]bool{}
	for _, b := range shown {
		has[b.UID] = true
	}
	for _, b := range files {
		if !has[b.UID] && !strings.HasPrefix(b.File, "deploy/tester/") {
			rows = append(rows, boards.Row{Board: b.Title, Panel: "all",
				Problems: []string{"Grafana does not have this dashboard"}})
		}
	}
	return rows
}

func (a *app) printPanels(rows []boards.Row) error {
	grid := [][]string{}
	bad := 0
	for _, r := range rows {
		state := fmt.Sprintf("%d of %d queries found data", r.WithData, r.Queries)
		switch {
		case len(r.Problems) > 0:
			state = strings.Join(r.Problems, "; ")
		case r.WithData == 0:
			state = "no data"
		}
		mark := "ok"
		if !r.Complete() {
			mark = "FAIL"
			if r.Optional {
				mark = "-"
			} else {
				bad++
			}
		}
		grid = append(grid, []string{mark, r.Board, r.Panel, state})
	}
	if err := a.grid(grid); err != nil {
		return err
	}
	if bad > 0 {
		return cli.End(cli.Failed, "%d of %d panels lack data; Alloy's page at "+
			"http://127.0.0.1:12345 shows each pipeline", bad, len(rows))
	}
	return nil
}
