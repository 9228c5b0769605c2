package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/format"
	"prony.example/internal/generator/capacity"
	"prony.example/load"
	"prony.example/record"
	"prony.example/record/slo"
)

// capacityFlags are the settings of the search, in addition to the load's.
type capacityFlags struct {
	load        loadFlags
	generators  int
	options     capacity.Options
	slo         string
	curve       bool
	replicates  int
	concurrency string
	connections []int // parsed concurrency
	stress      string
	rates       []float64 // parsed stress
	asJSON      bool
}

const capacityAbout = `Capacity finds the highest rate at which a server meets its objectives.

After a warm-up, it brackets this rate with open loads. Then it repeats steps near it in random
order, rising and falling, and waits after each overload until the server has recovered. Close to
the limit, it is chance whether a step meets the objectives. The capacity is the rate at which half
of the steps do, with a confidence interval.

Objectives limit the response time (p50, p99, p99.9 and other percentiles, mean, max), errors, or
delivered requests, such as 'p99<50ms,errors<0.1%'. A prefix selects another time: service., lag. or
connect.

--curve also measures response times at 10 to 95 % of the capacity. --concurrency and --stress need
no objectives: --concurrency runs closed loads with more and more connections, --stress runs open
loads at rising rates until one fails. Both take a range or a list: 1..256 doubles each time,
1000..8000 has eight equal steps, 50,100,200,400 is a list.

Exit codes: 0 found, 1 error, 2 usage, 4 no capacity could be found.`

const capacityExamples = `  prony capacity http://127.0.0.1:8080/hello --slo 'p99<50ms,errors<0.1%'
  prony capacity http://127.0.0.1:8080/hello --slo 'p99<50ms' --curve --budget 5m
  prony capacity http://127.0.0.1:8080/hello --concurrency 50,100,200,400
  prony capacity http://127.0.0.1:8080/hello --stress 50000..200000`

func (a *app) capacityCmd() *cobra.Command {
	f := &capacityFlags{}
	c := &cobra.Command{
		Use: "capacity URL", Short: "Find the highest rate that meets the objectives",
		Args: cli.Arguments(1, 1), Long: capacityAbout, Example: capacityExamples,
		RunE: func(c *cobra.Command, args []string) error {
			if err := refuse(c.Flags().Changed,
				noEffect{f.slo == "", "budget confidence precision",
					"needs --slo: it is of the search"},
				noEffect{!f.curve, "replicates", "needs --curve"}); err != nil {
				return err
			}
			return a.capacity(c.Context(), args[0], f)
		},
	}
	fs, o := c.Flags(), &f.options
	f.load.add(c)
	fs.IntVar(&f.generators, "generators", 0, generatorsHelp)
	// --window replaces --duration, with another default.
	fs.Lookup("duration").Hidden = true
	cli.Joined(c, &f.slo, "slo", "objectives, such as 'p99<50ms,errors<0.1%'; repeatable")
	fs.DurationVar(&o.Window, "window", 2*time.Second,
		"least length of a step; longer if the budget allows")
	fs.DurationVar(&o.Budget, "budget", 2*time.Minute, "time for the whole search")
	fs.Float64Var(&o.Confidence, "confidence", 0.95, "confidence level of the interval")
	fs.Float64Var(&o.Precision, "precision", 0.01,
		"half width of the interval, relative to the rate, at which the search ends")
	fs.BoolVar(&f.curve, "curve", false,
		"also measure response times at 10 to 95 % of the capacity")
	fs.IntVar(&f.replicates, "replicates", capacity.Replicates,
		"number of windows at each rate of --curve")
	fs.StringVar(&f.concurrency, "concurrency", "",
		"numbers of connections to sweep, such as 1..256 or 50,100,200")
	fs.StringVar(&f.stress, "stress", "", "rates to raise until one fails, such as 1000..8000")
	fs.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	return c
}

// check parses the flags.
func (f *capacityFlags) check() (err error) {
	o := &f.options
	if f.slo != "" {
		if o.SLO, err = slo.Parse(f.slo); err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
	}
	if f.concurrency != "" {
		if f.connections, err = capacity.Connections(f.concurrency); err != nil {
			return fmt.Errorf("--concurrency: %w", err)
		}
	}
	if f.stress != "" {
		if f.rates, err = capacity.Rates(f.stress); err != nil {
			return fmt.Errorf("--stress: %w", err)
		}
	}
	switch {
	case f.slo+f.concurrency+f.stress == "":
		return fmt.Errorf("nothing to measure: add --slo 'p99<50ms,errors<0.1%%', --concurrency " +
			"1..256 or --stress 1000..8000")
	case f.curve && f.slo == "":
		return fmt.Errorf("--curve needs --slo, because it measures up to the capacity")
	case f.load.given("duration"):
		return fmt.Errorf("--duration is not possible here: set the length of a step with " +
			"--window, and the length of the search with --budget")
	case o.Window <= 0:
		return fmt.Errorf("--window must be greater than 0, such as 2s, got %v", o.Window)
	case f.replicates < 1:
		return fmt.Errorf("--replicates must be at least 1, got %d", f.replicates)
	}
	o.Seed = f.load.spec.Seed
	if f.load.given("lead-in") {
		o.Lead = f.load.spec.Lead
	}
	if f.slo == "" {
		return nil
	}
	return o.CheckSearch()
}

// capacityReport is the complete result.
type capacityReport struct {
	Target      string           `json:"target"`
	Concurrency []capacity.Tried `json:"concurrency,omitempty"`
	Stress      []capacity.Tried `json:"stress,omitempty"`
	Capacity    *capacity.Found  `json:"capacity,omitempty"`
	Curve       []capacity.Point `json:"curve,omitempty"`
	Reproduce   string           `json:"reproduce"`
}

func (a *app) capacity(ctx context.Context, target string, f *capacityFlags) error {
	if err := f.check(); err != nil {
		return cli.Usage(err)
	}
	o, err := f.load.plan(ctx, target)
	if err != nil {
		return cli.Usage(err)
	}
	if err := slo.Routes(f.options.SLO, o.spec.Scenario.RouteNames()); err != nil {
		return cli.Usagef("--slo: %w", err)
	}
	if err := checkGenerators(f.generators, o.spec.Connections, f.load.given); err != nil {
		return err
	}
	a.noted(o)
	o.spec.Part.Of = f.generators
	_, _ = load.RaiseFiles() // as for load
	if f.slo != "" && !hasNull {
		a.say("the generator limit is unknown: its measurement works only on Linux")
	} else if f.slo != "" {
		perS, err := a.ceiling(ctx, o)
		if err != nil {
			return err
		}
		f.options.CeilingPerS = o.turns(perS)
	}
	if err := a.warm(ctx, o); err != nil {
		return err
	}
	if f.generators <= 1 {
		o.watcher = o.watch(record.Open)
		defer o.watcher.Close()
	}
	f.options.Offer = func(ctx context.Context, step capacity.Step) (*record.Load, error) {
		return o.step(ctx, step, f.options.SLO)
	}
	f.options.Progress = func(t capacity.Tried) { a.say(t.Line()) }
	r := &capacityReport{Target: o.url, Reproduce: cmdlog.Join(a.command())}
	err = r.measure(ctx, f)
	if e := a.printCapacity(r, f.options.SLO, f.asJSON); err == nil {
		err = e
	}
	if err == nil && r.Capacity != nil && !r.Capacity.Found {
		return cli.End(cli.Invalid, "no capacity was found")
	}
	return err
}

// measure runs the requested parts. The search and its curve are last, because they load the server
// most.
func (r *capacityReport) measure(ctx context.Context, f *capacityFlags) (err error) {
	if f.connections != nil {
		if r.Concurrency, err = capacity.Concurrency(ctx, f.options, f.connections); err != nil {
			return err
		}
	}
	if f.rates != nil {
		if r.Stress, err = capacity.Stress(ctx, f.options, f.rates); err != nil {
			return err
		}
	}
	if f.slo == "" {
		return nil
	}
	if r.Capacity, err = capacity.Find(ctx, f.options); err != nil {
		return err
	}
	if f.curve && r.Capacity.Found {
		r.Curve, err = capacity.Curve(ctx, f.options, r.Capacity.RatePerS, capacity.Shares,
			f.replicates)
	}
	return err
}

// step offers one step of a search: the load of the flags with the step's rate or connections.
func (o *offer) step(ctx context.Context, step capacity.Step, objectives []slo.Objective) (
	*record.Load, error) {
	s := o.stepped(step)
	res, err := o.watcher.Offer(ctx, s, slo.Quantiles(objectives),
		func(ctx context.Context, s load.Spec) (*load.Result, error) {
			return o.together(ctx, o.by, s)
		})
	if err != nil {
		return nil, err
	}
	return &res.Load, nil
}

// stepped returns the load of a step. A sweep's connections have the streams of the flags.
func (o *offer) stepped(step capacity.Step) load.Spec {
	s := step.Load(o.spec)
	s.Name = step.Phase
	if c := o.by.Stack; c != nil && step.Phase == capacity.Sweep && step.Connections > 0 {
		s.Connections *= max(c.Streams, 1)
	}
	return s
}

// turns converts a rate of requests to the unit of a search: requests or flows.
func (o *offer) turns(perS float64) float64 { return perS / float64(o.spec.Scenario.Steps()) }

func (a *app) printCapacity(r *capacityReport, objectives []slo.Objective, asJSON bool) error {
	w := a.stdout
	if asJSON {
		return format.JSON(w, r)
	}
	var err error
	part := func(there bool, print func() error) {
		if there {
			err = cmp.Or(err, print())
			fmt.Fprintln(w)
		}
	}
	sweep := func(of []capacity.Tried) {
		part(of != nil, func() error { return capacity.SweepText(w, of, objectives) })
	}
	sweep(r.Concurrency)
	sweep(r.Stress)
	part(r.Capacity != nil, func() error { return r.Capacity.Text(w) })
	part(r.Curve != nil, func() error { return capacity.CurveText(w, r.Curve) })
	_, last := fmt.Fprintf(w, "reproduce  %s\n", r.Reproduce)
	return cmp.Or(err, last)
}
