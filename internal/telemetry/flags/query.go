package flags

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
)

const queryAbout = `Query evaluates PromQL, Prometheus' language, on the metrics that services sent
during a run with --telemetry. RUN is the run's folder, its name below results/, or "latest";
without it, query reads the newest run that has metrics. RUN may also be a folder of "prony
telemetry serve".

The result has a row for each series: its last value, the least, the mean and the greatest over the
whole run, and its course. --trial selects one trial. --at selects one moment: end, a time such as
2026-11-21T12:00:00Z, or seconds of Unix time.

Names are Prometheus': http.server.request.duration in seconds is
http_server_request_duration_seconds_count, _sum and _bucket; dots of labels are underscores. Each
series has service_name, and prony_trial, prony_target and prony_variant of its trial.

--list lists the metrics. --serve answers Prometheus' HTTP API on the stored run until Ctrl-C, for
Grafana (a Prometheus data source), promtool, or curl. Clients reach it by its address or as
localhost; PRONY_HOSTS lists other names, with commas between them.

A service measures these metrics itself. Prony's own measurements are in the report. docs/query.md
explains when to use which.`

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

// Query holds the flags and arguments of the command query.
type Query struct {
	Run   string // as given by the user; empty: the newest
	Expr  string // PromQL; empty with List or Serve
	At    string // a moment; empty: a range of time
	Trial string
	Step  time.Duration // 0: automatic
	List  bool
	Serve string // an address for Prometheus' HTTP API

	Format, Out string
}

// Ask returns the command query. It calls do with valid arguments.
func Ask(do func(context.Context, Query) error) *cobra.Command {
	q := Query{}
	c := &cobra.Command{
		Use: "query [RUN] 'PROMQL'", Short: "Query the metrics of a run with PromQL",
		Args: cli.Arguments(0, 2), Long: queryAbout, Example: queryExamples,
		RunE: func(c *cobra.Command, args []string) error {
			q := q
			if err := q.split(args); err != nil {
				return err
			}
			return do(c.Context(), q)
		},
	}
	fs := c.Flags()
	fs.StringVar(&q.At, "at", "", "one moment: end, a time (RFC 3339), or Unix time in seconds")
	fs.StringVar(&q.Trial, "trial", "", "limit the query to the time and the series of this trial")
	fs.DurationVar(&q.Step, "step", 0, "time between points (default: 1s, or more in a long run)")
	fs.BoolVar(&q.List, "list", false, "list the metrics")
	fs.StringVar(&q.Serve, "serve", "", "serve Prometheus' HTTP API on this address instead")
	cli.Output(c, &q.Format, &q.Out, "text", "json", "csv")
	return c
}

// Args returns the arguments with which prony-home runs the same query on the run in dir.
func (q Query) Args(dir string) []string {
	args := []string{"query", "--at=" + q.At, "--trial=" + q.Trial, "--step=" + q.Step.String(),
		"--list=" + strconv.FormatBool(q.List), "--serve=" + q.Serve, "--format=" + q.Format,
		"--output=" + q.Out, "--", dir}
	if q.Expr != "" {
		args = append(args, q.Expr)
	}
	return args
}

// split separates the run from the query in args. Either may be missing.
func (q *Query) split(args []string) error {
	alone := q.List || q.Serve != ""
	host, _, err := net.SplitHostPort(q.Serve)
	switch {
	case q.Step < 0:
		return cli.Usagef("--step must be greater than 0, got %s", q.Step)
	case alone && len(args) == 2:
		return cli.Usagef("--list and --serve take no query")
	case q.List && q.Serve != "":
		return cli.Usagef("choose one of --list and --serve")
	case q.Serve != "" && err == nil && !loopback(host):
		return cli.Usagef("--serve %s: other machines could reach this address; use 127.0.0.1",
			q.Serve)
	case alone && len(args) == 1:
		q.Run = args[0]
	case alone:
	case len(args) == 2:
		q.Run, q.Expr = args[0], args[1]
	case len(args) == 1 && !files.IsDir(args[0]):
		q.Expr = args[0]
	default:
		return cli.Usagef("give a query, such as prony query RUN --list, or prony query RUN " +
			"'jvm_memory_used_bytes'")
	}
	_, err = q.Moment()
	return cli.Usage(err)
}

// Moment returns the time in At; zero if At is empty or "end".
func (q Query) Moment() (time.Time, error) {
	if q.At == "" || q.At == "end" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseFloat(q.At, 64); err == nil {
		return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, q.At)
	if err != nil {
		return t, fmt.Errorf("--at %s: use end, a time such as 2026-11-21T12:00:00Z, or seconds "+
			"of Unix time", q.At)
	}
	return t, nil
}
