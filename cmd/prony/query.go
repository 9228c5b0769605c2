package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/result"
	"prony/internal/telemetry"
	"prony/internal/telemetry/metrics"
)

type queryFlags struct {
	at     string
	trial  string
	step   time.Duration
	format string
	list   bool
	serve  string
	out    string
}

const queryAbout = `Query asks the metrics that services told during a run with --telemetry, in
PromQL, Prometheus' language. RUN is the run's folder, or its name below results/; without it, the
newest run that has metrics. A folder of "prony telemetry serve" is as good.

The answer is a row a series: its last value, the least, the mean and the greatest over the run's
whole time, and its course. --trial looks at one trial alone, --at at one moment: end, a time such
as 2026-11-21T12:00:00Z, or seconds of Unix time.

Names are Prometheus': http.server.request.duration in seconds is
http_server_request_duration_seconds_count, _sum and _bucket; dots of labels are underscores. Each
series has service_name, and prony_trial, prony_target and prony_variant of its trial.

--list says which metrics there are. --serve answers Prometheus' HTTP API on the stored run, for
Grafana (a Prometheus data source), promtool, or curl, until Ctrl-C.

Such numbers are what a service says of itself, from inside, at its own pace. What Prony measured is
in the report; see docs/query.md for which to believe when.`

const queryExamples = `  prony query RUN --list
  prony query RUN 'sum by (service_name) (rate(http_server_request_duration_seconds_count[15s]))'
  prony query RUN 'sum by (endpoint) (rate(spring_request_count_total[15s]))'
  prony query RUN 'sum by (jvm_memory_pool_name, area) (jvm_memory_used_bytes)'
  prony query RUN 'max by (jvm_memory_pool_name) (jvm_memory_used_after_last_gc_bytes)' --at end
  prony query RUN 'sum by (service_name) (jvm_memory_committed_bytes - jvm_memory_used_bytes)
      / 1024 / 1024' --trial b1-02-java-spring
  prony query RUN 'histogram_quantile(0.99, sum by (le, service_name) (
      rate(http_server_request_duration_seconds_bucket[15s])))' --format csv -o p99.csv
  prony query RUN --serve 127.0.0.1:9090`

func (a *app) queryCmd() *cobra.Command {
	f := &queryFlags{}
	c := &cobra.Command{
		Use: "query [RUN] 'PROMQL'", Short: "Ask the metrics that a run's services told",
		Args: cli.Arguments(0, 2), Long: queryAbout, Example: queryExamples,
		RunE: func(c *cobra.Command, args []string) error {
			return a.query(c.Context(), args, *f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.at, "at", "", "one moment: end, a time (RFC 3339), or Unix time in seconds")
	fs.StringVar(&f.trial, "trial", "", "look at this trial's time and series alone")
	fs.DurationVar(&f.step, "step", 0, "between points (default: 1s, or more in a long run)")
	fs.BoolVar(&f.list, "list", false, "list the metrics that there are")
	fs.StringVar(&f.serve, "serve", "", "serve Prometheus' HTTP API on this address instead")
	cli.Output(c, &f.format, &f.out, "text", "json", "csv")
	return c
}

// split tells the run from the query: without one, either may stand alone.
func (f *queryFlags) split(args []string) (run, expr string, err error) {
	if f.step < 0 {
		return "", "", cli.Usagef("--step %s: want more than 0", f.step)
	}
	switch alone := f.list || f.serve != ""; {
	case alone && len(args) == 2:
		return "", "", cli.Usagef("--list and --serve take no query")
	case alone && f.list && f.serve != "":
		return "", "", cli.Usagef("choose one of --list and --serve")
	case alone && len(args) == 1:
		return args[0], "", nil
	case alone:
		return "", "", nil
	case len(args) == 2:
		return args[0], args[1], nil
	case len(args) == 1 && !isDir(args[0]):
		return "", args[0], nil
	}
	return "", "", cli.Usagef("what is to be asked? Such as " +
		"prony query RUN --list, or prony query RUN 'jvm_memory_used_bytes'")
}

func (a *app) query(ctx context.Context, args []string, f queryFlags) (err error) {
	run, expr, err := f.split(args)
	if err != nil {
		return err
	}
	dir, db, err := a.metricsOf(run)
	if err != nil {
		return err
	}
	s, err := metrics.OpenReadOnly(db, metrics.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	switch {
	case f.list:
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		return a.write(f.out, func(w io.Writer) error { return metrics.PrintList(w, list) })
	case f.serve != "":
		return a.serveMetrics(ctx, s, f.serve)
	}
	answer, err := askMetrics(ctx, s, dir, expr, f)
	if err != nil {
		return err
	}
	print := map[string]func(io.Writer) error{
		"text": answer.Text, "json": answer.JSON, "csv": answer.CSV,
	}[f.format]
	return a.write(f.out, print)
}

// metricsOf finds a run's folder and the database in it.
func (a *app) metricsOf(run string) (dir, db string, err error) {
	var args []string
	if run != "" {
		args = []string{run}
	}
	dir, err = a.findRun(args, "metrics", func(dir string) bool { return databaseIn(dir) != "" })
	if err != nil {
		return "", "", fmt.Errorf("query: %w", err)
	}
	if db = databaseIn(dir); db == "" {
		return "", "", fmt.Errorf("query %s: it has no metrics; was it run with --telemetry?", dir)
	}
	return dir, db, nil
}

// databaseIn is the database of a run's folder, or of the folder of a home that served alone.
func databaseIn(dir string) string {
	for _, db := range []string{filepath.Join(dir, telemetry.Dir, telemetry.TSDBDir),
		filepath.Join(dir, telemetry.TSDBDir), dir} {
		if isDir(filepath.Join(db, "wal")) {
			return db
		}
	}
	return ""
}

func askMetrics(ctx context.Context, s *metrics.Store, dir, expr string, f queryFlags) (
	*metrics.Answer, error) {
	w := metrics.Window{Trial: f.trial}
	var ok bool
	if w.From, w.To, ok = s.Bounds(); !ok {
		return nil, fmt.Errorf("query %s: it has no samples", dir)
	}
	if f.trial != "" {
		if err := windowOf(dir, f.trial, &w); err != nil {
			return nil, err
		}
	}
	w.Step = f.step
	if w.Step == 0 {
		w.Step = metrics.StepFor(w.To.Sub(w.From))
	}
	switch f.at {
	case "":
		return s.Query(ctx, expr, w)
	case "end":
		return s.QueryEnd(ctx, expr, w)
	}
	moment, err := parseMoment(f.at)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return s.Query(ctx, expr, metrics.Window{From: moment, To: moment, Trial: f.trial})
}

func parseMoment(s string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil {
		return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("--at %s: want end, a time such as 2026-11-21T12:00:00Z, or seconds "+
			"of Unix time", s)
	}
	return t, nil
}

// windowOf is the time of a trial, by its record.
func windowOf(dir, trial string, w *metrics.Window) error {
	_, records, _, err := result.Read(dir)
	if err != nil {
		return err
	}
	var ids []string
	for _, r := range records {
		if r.Trial == trial {
			w.From, w.To = r.Time, r.Time.Add(time.Duration(r.DurationNs))
			return nil
		}
		ids = append(ids, r.Trial)
	}
	return cli.Usagef("--trial %s: there are %s", trial, strings.Join(ids, ", "))
}

// serveMetrics answers until the command is ended.
func (a *app) serveMetrics(ctx context.Context, s *metrics.Store, address string) error {
	if host, _, err := net.SplitHostPort(address); err == nil && !loopback(host) {
		return cli.Usagef("--serve %s: others could reach it; use 127.0.0.1", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve metrics: %w; name another address, such as 127.0.0.1:0", err)
	}
	from, to, _ := s.Bounds()
	fmt.Fprintf(a.stdout, "http://%s answers as Prometheus does, from %s to %s; Ctrl-C ends it\n",
		l.Addr(), from.Format(time.RFC3339), to.Format(time.RFC3339))
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	ended := context.AfterFunc(ctx, func() { srv.Close() })
	defer ended()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
