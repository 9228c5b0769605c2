package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/generator"
	"prony.example/internal/generator/distributed"
	"prony.example/internal/generator/progress"
	"prony.example/internal/generator/summary"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/stallfree"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/record/slo"
)

// outputFlags are the settings of the output during and after a load.
type outputFlags struct {
	view      string
	output    string
	asJSON    bool
	spectrum  bool
	saveTrace string
	threshold string
	otlp      string
	ceiling   bool

	objectives []slo.Objective // parsed threshold
}

const loadAbout = `Load sends requests to a server and reports rates, errors and response times.

Closed model (default): each connection sends its next request as soon as the last response is
complete. This finds the peak throughput. Open model (--rate): requests are due on a schedule that
does not depend on responses. Response time counts from the moment at which a request was due, as
users experience it.

The rate may change over time. A shape is one of these, or several with commas between them:

  ramp 100..2000 in 30s
  steps 1000..5000 by 1000 every 10s
  spike 1000..10000 at 10s for 2s
  sine 1000..5000 every 60s

With --users, the closed model has virtual users who pause (--think) between their requests.

URL, headers, body and --want may contain {key} (a random number from --keys), {seq} (the request's
number), {random 1..9}, {hex 8}, {uuid} and {pick a|b}. A --scenario file describes a weighted mix
of requests, or a flow in which a request uses values from earlier responses.

--traces 1% adds a trace id (W3C Trace Context) to 1 % of the requests. A service with OpenTelemetry
puts the trace id on its spans and log lines. The slowest traced requests are listed with their ids.

--generators 4 starts four processes on this machine, and each sends every fourth request. Their
results are added up, not averaged. With --listen and --key, the processes are started elsewhere by
prony generate. A generator that is late or ends early makes the load INVALID.

URLs begin with http, https, h2, h2c, h3, grpc, grpcs, ws or wss. For gRPC and WebSocket, --body is
the message. For gRPC, it is JSON if the server has reflection, otherwise the encoded bytes.

Exit codes: 0 fine, 1 error, 2 usage, 3 a --threshold was missed, 4 the load is INVALID.`

const loadExamples = `  prony load http://127.0.0.1:8080/hello -c 64 -d 10s
  prony load http://127.0.0.1:8080/hello --rate 5000 --threshold 'p99<50ms,errors<0.1%'
  prony load http://127.0.0.1:8080/hello --rate 'ramp 100..5000 in 30s'
  prony load http://127.0.0.1:8080/hello --users 'ramp 0..700 in 1m, 700 for 3m' --think 1s
  prony load 'http://127.0.0.1:8080/hello/virtual?key={key}' --keys 1-50000 --zipf 1.1 --rate 2000
  prony load https://127.0.0.1:8443/ --http2 --streams 10 -k --rate 1000
  prony load https://127.0.0.1:8443/ --http3 -k --rate 1000
  prony load http://127.0.0.1:8080/ --rate 40000 --generators 4 --cores 4,5,6,7
  prony load http://127.0.0.1:8080/hello --rate 1000 --traces 1%`

func (a *app) loadCmd() *cobra.Command {
	f, o, s, m := &loadFlags{}, &outputFlags{}, &saveFlags{}, &manyFlags{}
	c := &cobra.Command{
		Use: "load URL", Short: "Load one server and report its responses",
		Args: cli.Arguments(1, 1), Long: loadAbout, Example: loadExamples,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.plan(c.Context(), args[0])
			if err != nil {
				return cli.Usage(err)
			}
			if err := m.check(p, o, c.Flags().Changed); err != nil {
				return err
			}
			p.many = *m
			a.noted(p)
			return a.offer(c.Context(), p, o, s)
		},
	}
	fs := c.Flags()
	f.add(c)
	f.addModel(c)
	m.add(c)
	cli.Joined(c, &o.threshold, "threshold", "objectives, such as 'p99<50ms,errors<0.1%'; "+
		"exit code 3 if an objective is missed; repeatable")
	o.view, o.output = string(progress.Auto), "text"
	cli.OneOf(c, &o.view, "view", "progress display", "auto", "live", "plain", "json", "none")
	cli.OneOf(c, &o.output, "output,o", "format of the result", "text", "json", "csv", "hlog")
	fs.BoolVar(&o.asJSON, "json", false, "same as --output json")
	fs.BoolVar(&o.spectrum, "spectrum", false, "also print the percentile spectrum")
	fs.StringVar(&o.saveTrace, "save-trace", "", "file to which the arrivals are written, for "+
		"--trace")
	fs.StringVar(&o.otlp, "otlp", "",
		"OTLP endpoint for live metrics, such as http://127.0.0.1:4318")
	fs.BoolVar(&o.ceiling, "ceiling", false, "first measure the generator limit against a server "+
		"that does nothing")
	s.add(c)
	return c
}

// noted reports addresses of the host that stay unused.
func (a *app) noted(p *offer) {
	if p.note != "" {
		a.say(p.note)
	}
}

// offer runs a load with its view, and prints and judges the result.
func (a *app) offer(ctx context.Context, p *offer, o *outputFlags, s *saveFlags) error {
	if err := o.check(); err != nil {
		return cli.Usage(err)
	}
	if err := slo.Routes(o.objectives, p.spec.Scenario.RouteNames()); err != nil {
		return cli.Usagef("--threshold: %w", err)
	}
	kept, err := a.keep(s)
	if err != nil {
		return err
	}
	report, res, err := a.measured(ctx, p, o, kept)
	saved := kept.close()
	if err != nil {
		return errors.Join(err, saved)
	}
	return errors.Join(a.print(report, res, o), saved, a.judge(report, o.objectives, o.output))
}

// measured offers the load and records the result, also if it is an error.
func (a *app) measured(ctx context.Context, p *offer, o *outputFlags, kept *keeper) (
	summary.Report, *load.Result, error) {
	began := clock.Wall()
	report, res, err := a.measure(ctx, p, o)
	kept.add(p, began, report, res, err)
	return report, res, err
}

// measure offers the load and judges it, without output.
func (a *app) measure(ctx context.Context, p *offer, o *outputFlags) (report summary.Report,
	res *load.Result, err error) {
	// More connections than the soft limit allows are common. If raising the limit fails,
	// connections without a socket report the error.
	_, _ = load.RaiseFiles()
	if o.saveTrace != "" {
		if err := saveTrace(ctx, o.saveTrace, &p.spec); err != nil {
			return report, nil, err
		}
	}
	var ceiling float64
	if o.ceiling {
		if ceiling, err = a.ceiling(ctx, p); err != nil {
			return report, nil, err
		}
	}
	if err := a.warm(ctx, p); err != nil {
		return report, nil, err
	}
	res, cut, err := a.watched(ctx, p, o)
	if err != nil {
		return report, nil, err
	}
	if res.Model == record.Closed {
		res.CeilingPerS = ceiling
	}
	res.Load.Requests = p.spec.Requests
	rec := &record.Record{Outcome: record.Measured, Loads: []record.Load{res.Load},
		Warmup: p.warmed}
	rec.Verdict = verdict.Judge(rec)
	rec.Prove()
	report = summary.Report{
		Target: p.url, Load: &rec.Loads[0], Verdict: rec.Verdict, Command: a.command(),
	}
	if cut {
		report.Ran = time.Duration(res.WindowNs)
		report.Verdict = summary.CutShort(report.Verdict, res.Name, report.Ran, p.spec.Window,
			p.spec.Requests)
	}
	return report, res, nil
}

func (o *outputFlags) check() (err error) {
	if o.asJSON && o.output != "text" && o.output != "json" {
		return fmt.Errorf("--json and --output %s exclude each other", o.output)
	}
	if o.asJSON {
		o.output = "json"
	}
	if o.spectrum && slices.Contains([]string{"json", "csv", "hlog"}, o.output) {
		return fmt.Errorf("--spectrum is for the text; --output %s contains the histogram or "+
			"the intervals", o.output)
	}
	if o.threshold == "" {
		return nil
	}
	if o.objectives, err = slo.Parse(o.threshold); err != nil {
		return fmt.Errorf("--threshold: %w", err)
	}
	return nil
}

// watch watches the service's cores and the load's, for loads of a model to a service on a port of
// this machine.
func (p *offer) watch(model string) *stallfree.Nearby {
	if p.spec.Users != nil {
		return nil
	}
	network, port := "tcp", int(p.spec.Address.Port())
	if c := p.by.Stack; c != nil && c.Protocol == nethttp.H3 {
		network = "udp"
	}
	if isOwn, err := host.Ours(p.spec.Address.Addr()); err != nil || !isOwn {
		port = 0 // no service of this machine
	}
	return stallfree.WatchNearby(model, network, port, p.spec.Cores)
}

// watched offers the load with its view. cut reports whether the user ended it.
func (a *app) watched(ctx context.Context, p *offer, o *outputFlags) (res *load.Result, cut bool,
	err error) {
	s := p.spec
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	engine, err := p.by.Describe(s.Network)
	if err != nil {
		return nil, false, cli.Usage(err)
	}
	kind := progress.Kind(o.view)
	if o.output != "text" && kind == progress.Auto {
		kind = progress.None
	}
	view, err := progress.New(progress.Config{
		Target: p.url, Model: summary.Model(outline(&s, engine)), Engine: engine.Name,
		Open: s.Model == record.Open, Lead: s.Lead, Window: s.Window, Drain: s.Drain,
		Steady:   s.Users == nil && s.Schedule.Arrivals != pace.Replay && s.Schedule.Rate.IsFlat(),
		Requests: s.Requests * int64(s.Scenario.Steps()), Kind: kind, Out: a.stderr, In: os.Stdin,
		Env:    os.Environ(),
		Cancel: cancel, OTLP: o.otlp,
	})
	if err != nil {
		return nil, false, err
	}
	// The first Ctrl-C ends the load with the results so far, the second immediately.
	stop := context.AfterFunc(ctx, view.Interrupt)
	defer stop()
	s.Observer, s.Every, s.Detail = view, view.Every(), load.Full
	if p.many.number > 0 {
		res, err = a.together(inner, ctx, p, s)
	} else {
		watcher := p.watch(s.Model)
		defer watcher.Close()
		res, err = watcher.Offer(inner, s, slo.Quantiles(o.objectives), p.by.Offer)
	}
	if e := view.Close(); e != nil {
		a.say(fmt.Sprintf("the view: %v", e))
	}
	_, cut = view.Cut()
	switch {
	case errors.Is(err, context.Canceled):
		err = fmt.Errorf("load %s: the load ended before its window began", p.url)
	case errors.Is(err, distributed.ErrNoReport):
		a.say(fmt.Sprintf("prony: INVALID: load %s: %v", p.url, err))
		err = cli.End(cli.Invalid, "%v", err)
	}
	return res, cut, err
}

// outline returns the known fields of a load before it is offered.
func outline(s *load.Spec, engine load.EngineInfo) *record.Load {
	streams := max(engine.Streams, 1)
	l := &record.Load{
		Model: s.Model, Arrivals: s.Schedule.Arrivals, Churn: s.Churn, Protocol: engine.Protocol,
		Streams: engine.Streams, Connections: (s.Connections + streams - 1) / streams,
		Network: load.Simulated(s.Network),
	}
	switch {
	case s.Users != nil:
		l.Users = s.Users.Number.String()
		if l.Think = s.Users.Think.String(); s.Users.Think.Kind == "" {
			l.Think = ""
		}
	case s.Schedule.Arrivals == pace.Replay:
		l.RatePerS = float64(len(s.Schedule.Trace)) / s.Window.Seconds()
	case s.Model == record.Open:
		l.RatePerS = s.Schedule.Rate.Mean(int64(s.Lead), int64(s.Lead+s.Window))
		if !s.Schedule.Rate.IsFlat() {
			l.Shape = s.Schedule.Rate.String()
		}
	}
	return l
}

// print writes the result in the requested format.
func (a *app) print(r summary.Report, res *load.Result, o *outputFlags) error {
	switch o.output {
	case "json":
		return summary.JSON(a.stdout, r)
	case "csv":
		return summary.CSV(a.stdout, r.Load, res.Intervals)
	case "hlog":
		return summary.HLog(a.stdout, summary.HLogTitle(r.Target), res.Intervals)
	}
	if err := summary.Text(a.stdout, r, summary.Options{Spectrum: o.spectrum}); err != nil {
		return err
	}
	return a.traced(r.Load)
}

// tracedShown is the number of listed traced requests; other formats contain all.
const tracedShown = 8

// traced lists the slowest requests with a trace id.
func (a *app) traced(l *record.Load) error {
	if l.TraceShare == 0 {
		return nil
	}
	p := &format.Page{}
	p.Line("\n  traced: %s of the requests, the slowest first", units.Percent(l.TraceShare))
	slowest := slices.DeleteFunc(slices.Clone(l.Traced), func(x record.Traced) bool {
		return x.Class != "slowest"
	})
	if len(slowest) == 0 {
		p.Line("  no traced request ended within the window and its drain")
		return p.To(a.stdout)
	}
	row := func(cells ...any) {
		line := fmt.Sprintf("  %9s  %9s  %10s  %9s  %-32s  %s", cells...)
		p.Line("%s", strings.TrimRight(line, " "))
	}
	row("due at", "lag", "first byte", "response", "trace id", "")
	for _, x := range first(slowest, tracedShown) {
		rest := x.Route
		if x.Failed {
			rest = strings.TrimSpace(rest + " (failed)")
		}
		row(fmt.Sprintf("%.3f s", float64(x.ScheduledNs)/1e9), ms(x.LagNs),
			units.KnownDuration(x.FirstByteNs), ms(x.ResponseNs), x.TraceID, rest)
	}
	return p.To(a.stdout)
}

// judge turns missed objectives and an INVALID verdict into an exit code.
func (a *app) judge(r summary.Report, objectives []slo.Objective, form string) error {
	missed := 0
	if r.Verdict.Grade == record.Invalid && (form == "csv" || form == "hlog") { // without a verdict
		for _, f := range r.Verdict.Findings {
			if f.Grade == record.Invalid {
				w := wording.Finding(f)
				fmt.Fprintf(a.stderr, "INVALID %s: %s (%s); %s\n", f.Rule, w.Observed,
					wording.Against(f), w.Hint)
			}
		}
	}
	for i, c := range slo.CheckQuoted(objectives, r.Load) {
		if r.Ran > 0 {
			c.Known, c.Text = false, c.Text+" of a load that was cut short"
		}
		line := "threshold " + c.Line()
		if doubt := objectives[i].Doubt(c, r.Verdict.Findings); doubt != "" {
			line += ", " + doubt
		}
		fmt.Fprintln(a.stderr, line)
		if !c.Known || !c.Met {
			missed++
		}
	}
	switch {
	case r.Verdict.Grade == record.Invalid:
		return cli.End(cli.Invalid, "the load is INVALID")
	case missed > 0:
		return cli.End(cli.GateFailed, "%d of %d thresholds were missed", missed,
			len(objectives))
	}
	return nil
}

// enoughMost bounds the arrivals that enough draws.
const enoughMost = 1_000_000

// enough refuses a number of requests that the schedule does not have, because the load would wait
// for them for a day.
func enough(s *load.Spec) error {
	if s.Model != record.Open {
		return nil
	}
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		return cli.Usage(err)
	}
	for n := int64(0); n < min(s.Requests, enoughMost); {
		atNs := p.Next()
		if atNs >= int64(s.Lead+s.Window) {
			return cli.Usagef("--requests %d: the schedule has only %d arrivals after the "+
				"lead-in; use a smaller number, or leave it out", s.Requests, n)
		}
		if atNs >= int64(s.Lead) {
			n++
		}
	}
	return nil
}

// interruptible is a writer that fails when its context ends.
type interruptible struct {
	context.Context
	io.Writer
}

func (w interruptible) Write(b []byte) (int, error) {
	if err := w.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

// saveTrace writes the arrivals to a file.
func saveTrace(ctx context.Context, name string, s *load.Spec) error {
	if s.Model != record.Open {
		return cli.Usagef("--save-trace needs --rate: a closed load has no schedule of arrivals")
	}
	p, err := s.Schedule.Process(s.Seed)
	if err != nil {
		return cli.Usage(err)
	}
	if s.Requests > 0 { // the window may last a day
		p = pace.Limit(p, int64(s.Lead), s.Requests)
	}
	err = files.Write(name, func(w io.Writer) error {
		return pace.WriteTrace(interruptible{ctx, w}, p, int64(s.Lead+s.Window))
	})
	if err != nil {
		return fmt.Errorf("write trace: %w", err)
	}
	return nil
}

// command returns the command line that repeats this load.
func (a *app) command() []string {
	return slices.DeleteFunc(cmdlog.Repeatable(append([]string{"prony"}, a.args...)),
		func(arg string) bool { return arg == "--save" })
}

// steadyMost is the maximum time of a warm-up until a steady rate: JVMs take up to half a minute.
const steadyMost = time.Minute

// warming returns the requested warm-up; 0: none.
func (o *offer) warming() (most time.Duration, steady bool, err error) {
	switch o.warmup {
	case "":
		return 0, false, nil
	case "steady":
		return steadyMost, true, nil
	}
	most, err = time.ParseDuration(o.warmup)
	if err != nil || most <= 0 {
		err = cli.Usagef("--warmup %q must be steady, or a time such as 30s", o.warmup)
	}
	return most, false, err
}

// warm warms up the server if requested, and reports the result.
func (a *app) warm(ctx context.Context, o *offer) error {
	most, steady, err := o.warming()
	if err != nil || most == 0 {
		return err
	}
	if o.warmed, err = generator.WarmUp(ctx, o.by.Offer, o.spec, most, steady); err != nil {
		return fmt.Errorf("warm up %s: %w", o.url, err)
	}
	w := &o.warmed
	line := fmt.Sprintf("warmed up for %v with %d requests, ",
		time.Duration(w.DurationNs).Round(100*time.Millisecond), w.Requests)
	if w.Steady {
		line += fmt.Sprintf("steady after %v", time.Duration(w.SteadyAtNs))
	} else {
		line += "but the rate is not steady: a longer --warmup may help"
	}
	a.say(line)
	return nil
}
