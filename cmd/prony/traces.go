package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/format"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

type tracesFlags struct {
	traces.Filter     // without the class and the order, which these set
	errors, asked     bool
	uniform, services bool
	limit             int
	format            string
}

func (a *app) tracesCmd() *cobra.Command {
	f := &tracesFlags{}
	c := &cobra.Command{
		Use: "traces [RUN]", Short: "Show the traces of a run",
		Args: cli.Arguments(0, 1),
		Long: `Traces shows single requests by the spans of the run's services. RUN is its folder,
the folder's name below results/ (in a project: .prony/run/), or "latest"; without it, traces reads
the newest run that has any. A run has traces if it was made with --telemetry and the services are
instrumented.

Every span was counted. Whole traces were stored of the requests that the load had marked (asked),
of failed requests (error), and of the slowest of each load (slow). A sample in which every trace
had the same chance is also stored (uniform). Without a flag, the table lists the slowest first.
Only the uniform sample shows typical requests.

With --id, traces shows the calls of one trace, their times, the time of each span without its calls
(SELF), and █ where a span was on the critical path. The critical path is the chain of calls that
the request waited for. Below it are the share of each service, and the log lines of the trace at
their spans.

With --services, traces shows calls, errors and percentiles by service and operation. These numbers
come from the metrics of all spans if the run has them, otherwise from the uniform sample. The
heading names the source.

With --format otlp, traces prints OTLP JSON, which Jaeger opens as a file and any OTLP endpoint
takes.`,
		Example: `  prony traces
  prony traces results/2026-11-21T03-40-11Z --errors
  prony traces --target java-jdk/virtual --load half --slowest 5
  prony traces --id 4bf92f3577b34da6
  prony traces --services
  prony traces --uniform --format otlp > traces.json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c.Flags().Changed, noEffect{f.services,
				"errors asked uniform min slowest limit id",
				"needs single traces: leave out --services"}); err != nil {
				return err
			}
			return a.traces(args, *f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.Trial, "trial", "", "only this trial, such as b1-03-go-nethttp")
	fs.StringVar(&f.Target, "target", "", "only this target")
	fs.StringVar(&f.Window, "load", "", "only traces that began in the window of this load")
	fs.StringVar(&f.ID, "id", "", "id of one trace, or the first characters of its id")
	fs.StringVar(&f.Service, "service", "", "only traces with a span of this service")
	fs.BoolVar(&f.errors, "errors", false, "only traces with an error")
	fs.BoolVar(&f.asked, "asked", false, "only traces of requests to which the load gave a trace "+
		"id")
	fs.BoolVar(&f.uniform, "uniform", false, "only traces of the uniform sample, by time")
	fs.IntVar(&f.Limit, "slowest", 0,
		"only the `N` slowest of the traces that the other flags select")
	fs.IntVar(&f.limit, "limit", 20, "number of lines of the table; 0: all")
	fs.DurationVar((*time.Duration)(&f.Min), "min", 0,
		"only traces that took at least this time")
	fs.BoolVar(&f.services, "services", false, "show services and their operations instead of "+
		"traces")
	f.format = "text"
	cli.OneOf(c, &f.format, "format", "", "text", "json", "otlp")
	return c
}

func (f *tracesFlags) check() error {
	classes := 0
	for _, set := range []bool{f.errors, f.asked, f.uniform} {
		if set {
			classes++
		}
	}
	switch {
	case classes > 1:
		return cli.Usagef("--errors, --asked and --uniform exclude each other: choose one")
	case f.services && f.format == "otlp":
		return cli.Usagef("--services cannot be combined with --format otlp, which has only " +
			"traces; choose text or json")
	case f.Limit < 0 || f.limit < 0 || f.Min < 0:
		return cli.Usagef("--slowest, --limit and --min must be at least 0")
	}
	return nil
}

func (f *tracesFlags) filter() traces.Filter {
	out := f.Filter
	out.Slowest = !f.uniform
	switch {
	case f.errors:
		out.Class = traces.Failed
	case f.asked:
		out.Class = traces.Asked
	case f.uniform:
		out.Class, out.Slowest = traces.Uniform, f.Limit > 0
	}
	return out
}

func (a *app) traces(args []string, f tracesFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	dir, err := a.findRun(args, "traces", func(dir string) bool {
		return exists(homeIn(dir), telemetry.SpansFile)
	})
	if err != nil {
		return err
	}
	if f.services {
		return a.operations(dir, f)
	}
	traceList, err := a.kept(dir, f.filter())
	if err != nil {
		return err
	}
	if f.ID != "" {
		return a.oneTrace(dir, traceList, f)
	}
	switch f.format {
	case "otlp":
		return traces.WriteOTLP(a.stdout, traceList)
	case "json":
		return format.JSON(a.stdout, struct {
			Traces []*traces.Trace `json:"traces"`
		}{traceList})
	}
	return a.traceTable(dir, traceList, f)
}

// kept reads the stored traces of a run.
func (a *app) kept(dir string, f traces.Filter) ([]*traces.Trace, error) {
	traceList, bad, err := traces.Read(homeIn(dir), f)
	a.tellBad(bad)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no stored traces; record traces with prony run "+
			"--telemetry", dir)
	}
	return traceList, err
}

func (a *app) tellBad(bad []*record.BadRecord) {
	for _, b := range bad {
		fmt.Fprintf(a.stderr, "prony: %v\n", b)
	}
}

func (a *app) traceTable(dir string, traceList []*traces.Trace, f tracesFlags) error {
	if len(traceList) == 0 {
		fmt.Fprintf(a.stdout, "No stored trace of %s matches.\n", dir)
		return nil
	}
	shown := first(traceList, f.limit)
	rows := [][]string{{"TRACE", "TRIAL", "LOAD", "WHY", "ROOT", "DURATION", "SPANS", "ERRORS"}}
	for _, t := range shown {
		rows = append(rows, []string{shortID(t.TraceID), t.Trial, cmp.Or(t.Window, "–"),
			strings.Join(t.Classes, ","), traces.Line(t.Service + " " + t.Name),
			traces.Duration(t.DurationNs), strconv.Itoa(len(t.Spans)), strconv.Itoa(t.Errors)})
	}
	if err := a.grid(rows); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n%d of %d traces. Show one trace with: prony traces %s --id "+
		"%s\n", len(shown),
		len(traceList), cmdlog.Quote(dir), shortID(shown[0].TraceID))
	return nil
}

// shortID returns enough of an id to find it again in one run.
func shortID(id string) string {
	const digits = 16
	if strings.Trim(id[:min(digits, len(id))], "0") == "" {
		return id // of 64 bits, as in Zipkin
	}
	return id[:min(digits, len(id))]
}

// oneTrace prints a trace with its log lines.
func (a *app) oneTrace(dir string, traceList []*traces.Trace, f tracesFlags) error {
	if len(traceList) == 0 {
		return fmt.Errorf("trace %s was not stored; prony traces %s lists the stored traces",
			f.ID, dir)
	}
	if traceList[0].TraceID != traceList[len(traceList)-1].TraceID {
		return fmt.Errorf("trace %s is ambiguous: %d ids begin with these characters; write more "+
			"of the id", f.ID, len(traceList))
	}
	if f.format == "otlp" {
		return traces.WriteOTLP(a.stdout, traceList)
	}
	t := traceList[0]
	lines, bad, err := logs.Read(homeIn(dir), logs.Filter{TraceID: t.TraceID})
	a.tellBad(bad)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var own []logs.Line
	if len(lines) == 0 {
		own, err = logs.ReadFiles(filepath.Join(dir, "logs"), logs.Filter{Trial: t.Trial,
			TraceID: t.TraceID, Limit: maxOwnLines}, nil)
		if err != nil {
			return err
		}
	}
	if f.format == "json" {
		return format.JSON(a.stdout, struct {
			Traces []*traces.Trace `json:"traces"`
			Logs   []*logs.Record  `json:"logs"`
			Lines  []logs.Line     `json:"lines,omitempty"`
		}{traceList, lines, own})
	}
	return a.drawTrace(dir, t, lines, own)
}

// maxOwnLines is the maximum number of lines from the service's own files below a trace.
const maxOwnLines = 50

func (a *app) drawTrace(dir string, t *traces.Trace, lines []*logs.Record, own []logs.Line) error {
	head := [][]string{
		{"trace", fmt.Sprintf("%s (%s)", t.TraceID, strings.Join(t.Classes, ", "))},
		{"trial", fmt.Sprintf("%s of target %s, load "+
			"%s", t.Trial, t.Target, cmp.Or(t.Window, "none"))},
		{"began", time.Unix(0, t.StartNs).UTC().Format(time.RFC3339Nano)},
	}
	if text := requestOf(dir, t); text != "" {
		head = append(head, []string{"request", text})
	}
	if err := a.grid(head); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout)
	notes := make([]traces.Note, len(lines))
	for i, l := range lines {
		notes[i] = traces.Note{SpanID: l.SpanID, Ns: l.Ns,
			Text: traces.Line("log " + l.Severity + " " + l.Body)}
	}
	if err := traces.Waterfall(a.stdout, t, traces.Drawing{Notes: notes}); err != nil {
		return err
	}
	rows := [][]string{{"SERVICE", "SPANS", "SELF", "CRITICAL PATH", "SHARE"}}
	for _, s := range traces.Shares(traces.Tree(t)) {
		share := "–"
		if t.DurationNs > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(s.PathNs)/float64(t.DurationNs))
		}
		rows = append(rows, []string{traces.Line(s.Service), strconv.Itoa(s.Spans),
			traces.Duration(s.SelfNs), traces.Duration(s.PathNs), share})
	}
	fmt.Fprintln(a.stdout)
	if err := a.grid(rows); err != nil {
		return err
	}
	if len(own) > 0 {
		fmt.Fprintln(a.stdout, "\nLines with the trace's id in the output files of the services:")
		for _, l := range own {
			fmt.Fprintf(a.stdout, "%s:%d  %s\n", l.File, l.Line, traces.Line(l.Text))
		}
	}
	return nil
}

// requestOf describes the load's measurement of a traced request, if its record has it.
func requestOf(dir string, t *traces.Trace) string {
	_, records, _, err := record.Read(dir)
	if err != nil {
		return "" // the trace can be shown without it
	}
	for _, r := range records {
		for _, l := range r.Loads {
			for _, q := range l.Traced {
				if r.Trial == t.Trial && q.TraceID == t.TraceID {
					return requestText(l.Name, q)
				}
			}
		}
	}
	return ""
}

func requestText(load string, q record.Traced) string {
	text := fmt.Sprintf("%s request of load %s: due %s after the window began, sent %s "+
		"later", q.Class, load,
		traces.Duration(q.ScheduledNs), traces.Duration(q.LagNs))
	if q.Failed {
		return text + fmt.Sprintf(", failed %s after it was due", traces.Duration(q.ResponseNs))
	}
	return text + fmt.Sprintf(", first byte %s after sending, complete %s after it was due",
		traces.Duration(q.FirstByteNs), traces.Duration(q.ResponseNs))
}

// operations prints services by their operations.
func (a *app) operations(dir string, f tracesFlags) error {
	source := "span metrics: of every span, from the beginning to the end of the trial"
	calls, bad, err := traces.ReadCalls(homeIn(dir), f.Trial, f.Target)
	a.tellBad(bad)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := traces.Metered(calls)
	if len(calls) == 0 || f.Window != "" {
		source = "the uniform sample of stored traces, which does not contain the number of calls"
		filter := f.filter()
		filter.Class = traces.Uniform
		traceList, err := a.kept(dir, filter)
		if err != nil {
			return err
		}
		list = traces.Sampled(traceList)
	}
	list = slices.DeleteFunc(list, func(o traces.Operation) bool {
		return f.Service != "" && o.Service != f.Service
	})
	if f.format == "json" {
		return format.JSON(a.stdout, struct {
			Source     string             `json:"source"`
			Operations []traces.Operation `json:"operations"`
		}{source, list})
	}
	fmt.Fprintf(a.stdout, "From %s.\n\n", source)
	rows := [][]string{{"SERVICE", "OPERATION", "KIND", "CALLS", "CALLS/S", "ERRORS", "P50", "P99"}}
	for _, o := range list {
		perS := "–"
		if o.PerS >= 0 {
			perS = fmt.Sprintf("%.1f", o.PerS)
		}
		rows = append(rows, []string{traces.Line(o.Service), traces.Line(o.Name), o.Kind,
			fmt.Sprint(o.Calls), perS, fmt.Sprint(o.Errors), traces.Duration(o.P50Ns),
			traces.Duration(o.P99Ns)})
	}
	return a.grid(rows)
}
