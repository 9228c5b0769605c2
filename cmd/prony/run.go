package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"prony/internal/cli"
	"prony/internal/clock"
	"prony/internal/doctor"
	"prony/internal/host"
	"prony/internal/launch/process"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/telemetry"
	"prony/internal/trial"
)

// runFlags change a suite from the command line, or where results go.
type runFlags struct {
	blocks  int
	seed    uint64
	measure time.Duration
	warmup  time.Duration
	targets []string
	quick   bool
	aa      bool
	duet    string
	against string
	host    string
	started []string // launchers
	out     string
	observe observeFlags
}

func (f *runFlags) suiteFlags(c *cobra.Command) {
	fs := c.Flags()
	fs.IntVar(&f.blocks, "blocks", 0, "blocks, instead of the suite's")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of order, arrivals and keys, instead of the suite's")
	fs.DurationVar(&f.measure, "measure", 0, "length of every window, instead of the suite's")
	fs.DurationVar(&f.warmup, "warmup", 0, "longest warm-up, instead of the suite's")
	fs.StringSliceVar(&f.targets, "targets", nil,
		"targets or services, as globs, instead of the suite's")
	fs.StringVar(&f.duet, "duet", "", duetHelp)
	fs.Lookup("duet").NoOptDefVal = suite.Apart
	fs.BoolVar(&f.quick, "quick", false,
		"a look: 2 blocks, windows of 1s, warm-ups of 6s at most, unless flags say otherwise")
	fs.BoolVar(&f.aa, "aa", false,
		"every target against itself: how much differs here when nothing does")
	fs.StringVar(&f.against, "against", "",
		"the same targets of another checkout, too: its folder, or NAME=FOLDER")
	cli.SomeOf(c, &f.started, "launcher", "how targets are started, instead of the suite's; "+
		"several are compared", suite.Launchers...)
	f.observe.add(c)
}

func (f *runFlags) override(c *cobra.Command) (suite.Override, error) {
	o := suite.Override{
		Blocks: f.blocks, Measure: suite.Duration(f.measure), Warmup: suite.Duration(f.warmup),
		Targets: f.targets, AA: f.aa, Duet: f.duet, Quick: f.quick, Launchers: f.started,
	}
	if c.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	return o, f.observe.override(&o)
}

func (a *app) runCmd() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run [SUITE]", Short: "Run a suite and report what it found",
		Args: cli.Arguments(0, 1),
		Long: `Run builds the services of a suite that can be built here, puts each target under
the suite's loads, block by block in shuffled order, and reports. Without a suite it runs
suites/canonical.yaml.

With --aa each target runs twice in a block, against itself, and the report says how much differs
by chance alone and how small a difference the blocks can tell: the noise floor. With --against the
same targets of another checkout, another branch say, run in the same blocks as rows NAME@base, and
ratios refer to them.

With --duet targets run two at a time, each on cores of its own under loads that begin together, so
that what slows the machine slows both: against the baseline, the other of two, the other checkout
or, with --aa, itself. It takes four cores for services of one CPU; docs/duet.md says when it helps.

With --telemetry each target runs once more after the blocks, watched from inside by an agent, trace
ids and a profiler, in no number of the comparison; prony explain, traces, logs, query and profile
read what came of it. --agent NAME/LEVEL measures what an agent costs, as prony agents lists them.

With --launcher docker each target runs as a container from the image that its Dockerfile makes,
under the same limits, and needs none of its tools here; with --launcher process,docker in both
ways, and the ratio is what the container and its network cost. docs/docker.md tells more.

Before it measures, run grades the machine as "prony doctor" does; with --host fit, or doubtful, it
refuses a worse one: nothing is measured, and the exit code is 1.

Each trial is one record in results/RUN/trials.ndjson, saved before the next one starts, so that an
interrupted run keeps all it has. The exit code is 0 when every trial is VALID or SUSPECT, 4 when
one is INVALID or failed, 1 when the run itself went wrong, 2 for a command line that makes no
sense.`,
		Example: `  prony run
  prony run suites/http.yaml --targets go-nethttp,java-jdk --blocks 5
  prony run --measure 10s --seed 7
  prony run suites/http.yaml --quick
  prony run --aa --targets go-nethttp --blocks 10
  prony run --against ../main --targets go-nethttp
  prony run --telemetry --targets go-nethttp
  prony run --launcher process,docker --targets go-nethttp
  prony run --agent otel-java/full --targets java-spring/virtual`,
		RunE: func(c *cobra.Command, args []string) error { return a.runSuite(c, args, f) },
	}
	f.suiteFlags(c)
	f.host = "any"
	cli.OneOf(c, &f.host, "host", "what the machine must be, as prony doctor grades it",
		doctor.Bars...)
	c.Flags().StringVar(&f.out, "out", "",
		"folder of the results (default: results/TIME below the root)")
	return c
}

func (a *app) planCmd() *cobra.Command {
	f := &runFlags{}
	var effect, from string
	c := &cobra.Command{
		Use: "plan [SUITE]", Short: "Print what a suite would run, in order",
		Args: cli.Arguments(0, 1),
		Long: `Plan expands a suite into its trials: targets × scenarios in blocks, each block in
an order shuffled from the seed. The same suite, seed and catalog give the same plan, byte for
byte.

With --detect it says how many blocks it takes to see such a difference on this machine, from the
noise of an A/A run ("prony run --aa"): the newest in results/, or the one that --from names.`,
		Example: "  prony plan\n  prony plan suites/http.yaml --blocks 2 --seed 7\n" +
			"  prony plan --detect 3%",
		RunE: func(c *cobra.Command, args []string) error {
			root, err := a.root()
			if err != nil {
				return err
			}
			_, p, _, err := a.plan(c, root, args, f)
			if err != nil {
				return err
			}
			if effect != "" {
				return a.detect(root, p, effect, from)
			}
			return printPlan(a.stdout, p)
		},
	}
	f.suiteFlags(c)
	c.Flags().StringVar(&effect, "detect", "",
		"instead of the plan: the blocks that such a difference takes here, as in 3%")
	c.Flags().StringVar(&from, "from", "", "folder of the A/A run that --detect goes by")
	return c
}

// plan reads and expands a suite against the whole catalog, so that a missing toolchain is no typo.
func (a *app) plan(c *cobra.Command, root string, args []string, f *runFlags) (*suite.Suite,
	*suite.Plan, []*service.Service, error) {
	s, err := a.readSuite(root, args)
	if err != nil {
		return nil, nil, nil, err
	}
	o, err := f.override(c)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := s.Override(o); err != nil {
		return nil, nil, nil, cli.Usage(err)
	}
	if err := a.attach(root, s); err != nil {
		return nil, nil, nil, err
	}
	services, err := a.catalog(root)
	if err != nil {
		return nil, nil, nil, err
	}
	others, err := a.rivals(f)
	if err != nil {
		return nil, nil, nil, err
	}
	services = append(services, others...)
	p, err := s.Plan(targets(services))
	if err != nil && (len(f.targets) > 0 || f.duet != "") {
		err = cli.Usage(err)
	}
	if err == nil {
		err = f.observe.ride(p)
	}
	return s, p, services, err
}

// narrow leaves out the targets that lack a tool here, and says which and why.
func (a *app) narrow(s *suite.Suite, p *suite.Plan, services []*service.Service,
	tools *service.Tools, lost []result.Skipped) (*suite.Plan, []result.Skipped, error) {
	var kept []string
	var skipped []result.Skipped
	for _, t := range p.Aside {
		skipped = append(skipped, result.Skipped{Target: t.Name,
			Reason: "kept aside: " + t.Aside + " (--targets " + t.Name + " measures it)"})
	}
	for _, name := range targetsOf(p) {
		x, t, _ := find(services, name)
		if missing := a.world.missing(tools, x, t); len(missing) > 0 && plain(s) {
			reason := fmt.Sprintf("%s (see services/%s/README.md)", missing[0], x.Name)
			skipped = append(skipped, result.Skipped{Target: name, Reason: reason})
			continue
		}
		kept = append(kept, name)
	}
	drivers, absent := a.presentDrivers(s)
	skipped = slices.Concat(skipped, absent, lost, uncontained(s, services, targetsOf(p)))
	if len(skipped) == len(p.Aside) {
		return p, skipped, nil
	}
	if len(absent) > 0 && len(drivers) == 0 {
		return nil, nil, fmt.Errorf("run %s: none of its drivers is installed; %s: %s", s.Name,
			absent[0].Target, absent[0].Reason)
	}
	s.Drivers = drivers
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("run %s: none of its targets can run here; %s: %s", s.Name,
			skipped[len(p.Aside)].Target, skipped[len(p.Aside)].Reason)
	}
	if err := s.Override(suite.Override{Targets: kept}); err != nil {
		return nil, nil, err
	}
	p, err := s.Plan(targets(services))
	return p, skipped, err
}

// presentDrivers are those of the suite that can be had here, and those that cannot.
func (a *app) presentDrivers(s *suite.Suite) (kept []string, lost []result.Skipped) {
	for _, name := range s.Drivers {
		if name != suite.Drivers[0] {
			if _, err := a.world.driver(name); err != nil {
				lost = append(lost, result.Skipped{Target: "driver " + name, Reason: err.Error()})
				continue
			}
		}
		kept = append(kept, name)
	}
	return kept, lost
}

// targetsOf lists a plan's targets, each once.
func targetsOf(p *suite.Plan) (out []string) {
	for _, t := range p.Trials {
		if !slices.Contains(out, t.Target) {
			out = append(out, t.Target)
		}
	}
	return out
}

// check says what is wrong with flags that the suite does not see.
func (f *runFlags) check(c *cobra.Command) error {
	for _, name := range []string{"blocks", "measure", "warmup"} {
		if v := c.Flag(name).Value.String(); c.Flag(name).Changed && (v == "0" || v == "0s") {
			return cli.Usagef("--%s %s: want more than nothing", name, v)
		}
	}
	if _, err := os.Stat(filepath.Join(f.out, result.RunFile)); f.out != "" && err == nil {
		return cli.Usagef("--out %s: it holds a run already; choose another folder, or "+
			"see it with prony report", f.out)
	}
	return nil
}

func (a *app) runSuite(c *cobra.Command, args []string, f *runFlags) (err error) {
	if err := errors.Join(misplaced(args), f.check(c)); err != nil {
		return err
	}
	ctx := c.Context()
	root, err := a.root()
	if err != nil {
		return err
	}
	tools := service.FindTools(ctx)
	s, p, services, err := a.plan(c, root, args, f)
	if err != nil {
		return err
	}
	if err := f.observe.stack(ctx, a.world); err != nil {
		return err
	}
	rides, unfetched, err := a.board(ctx, root, s, p, a.say)
	if err != nil {
		return err
	}
	ships, adrift, err := a.muster(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ships.close()) }()
	p, skipped, err := a.narrow(s, p, services, tools, slices.Concat(unfetched, adrift))
	if err != nil {
		return err
	}
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	layout, sides, err := divide(cores, p)
	if err != nil {
		return fmt.Errorf("run %s: %w", p.Suite.Name, err)
	}
	journal, reaped, err := a.world.enter()
	if err != nil {
		return err
	}
	defer journal.Close()
	show := newProgress(a.stderr, p)
	defer show.end()
	show.begin(p, layout, append(reaped, ships.reaped...))
	sayDuets(show.line, sides, p)
	e := a.experiment(ctx, root, p, tools)
	e.Head.Skipped, e.Rides = skipped, rides
	if err := a.prepare(ctx, root, services, tools, &e, show); err != nil {
		return err
	}
	if err := a.grade(ctx, &e, f.host, show); err != nil {
		return err
	}
	dir := f.out
	if dir == "" {
		e.Head.ID, dir = newFolder(filepath.Join(root, "results"), e.Head.ID)
	}
	err = a.observed(ctx, root, f,
		observedRun{e, services, layout, sides, cores, dir, journal, ships, show})
	show.end()
	return a.conclude(dir, err)
}

// observedRun is all that is ready before the first trial.
type observedRun struct {
	e        trial.Experiment
	services []*service.Service
	layout   host.Layout
	sides    *host.Sides
	cores    []int
	dir      string
	journal  *process.Journal
	ships    *fleet
	show     *progress
}

// observed measures, with a home of telemetry beside it where one is wanted.
func (a *app) observed(ctx context.Context, root string, f *runFlags, r observedRun) error {
	spec := telemetry.LaunchSpec{Dir: filepath.Join(r.dir, telemetry.Dir)}
	f.observe.home(&spec)
	spec.Cores = coreOfHome(r.layout)
	if r.ships.gateway.IsValid() {
		spec.Listen = r.ships.gateway.String()
	}
	lab := a.world.lab(r.journal, r.ships, r.layout, r.dir, r.show.event)
	lab.Sides = r.sides
	lab.Tools, lab.Profiler = a.world.profiler(ctx, root, r.e.Plan, r.services, r.show.line)
	if len(f.observe.telemetry) > 0 || r.e.Plan.Suite.NeedsHome() {
		home, own, end, err := a.world.home(ctx, spec)
		if err != nil { // what sends into it fails, trial by trial; all else goes on
			r.show.line("no home of telemetry: " + err.Error())
		} else {
			defer func() {
				if err := end(); err != nil {
					r.show.line("telemetry may not be whole: " + err.Error())
				}
			}()
			lab.Home, lab.Own = home, own
			if meter, ok := home.(trial.Meter); ok && len(f.observe.telemetry) > 0 {
				lab.Meter = meter
				defer a.tellResults(ctx, meter, r.dir)
			}
		}
	}
	return a.world.measure(ctx, lab, r.e, r.cores, r.show.line)
}

// grade looks at the host, after all builds and before anything is measured, and refuses one that
// is not what was demanded.
func (a *app) grade(ctx context.Context, e *trial.Experiment, bar string, show *progress) error {
	limits := e.Plan.Suite.Limits
	g := a.world.examine(ctx, doctor.Options{CPUs: limits.CPUs, MemoryBytes: int64(limits.Memory)})
	e.Head.Host = &g
	if err := doctor.Refuse(g, bar); err != nil {
		// Not the status of INVALID trials, which scripts pass on to a gate: there is no run.
		return err
	}
	if g.Grade != result.Fit {
		show.line("the host is " + g.Grade + ": prony doctor says why, and what to do")
	}
	return nil
}

// newFolder names a run's folder by its start; runs that begin within a second get a number.
func newFolder(results, start string) (id, dir string) {
	id = start
	for n := 2; ; n++ {
		dir = filepath.Join(results, id)
		if _, err := os.Stat(dir); err != nil {
			return id, dir
		}
		id = fmt.Sprintf("%s-%d", start, n)
	}
}

// experiment is the plan with the head of its run and where it all comes from.
func (a *app) experiment(ctx context.Context, root string, p *suite.Plan,
	tools *service.Tools) trial.Experiment {
	e := trial.Experiment{
		Plan: p, Subjects: map[string]trial.Subject{}, Broken: map[string]error{},
		Prov: a.provenance(ctx, root, p, tools),
		Head: result.Run{
			ID: clock.Wall().Format("2006-01-02T15-04-05Z"), Suite: p.Suite.Name,
			Question: p.Suite.Question, File: p.Suite.File, Baseline: p.Baseline,
			Blocks: p.Suite.Blocks, Seed: p.Suite.Seed, PlanHash: p.Hash,
			Command: append([]string{"prony"}, a.args...), AA: p.Suite.AA,
			Duet: p.Suite.Duet != "", Columns: p.Suite.Columns,
		},
	}
	for _, t := range p.Trials {
		e.Head.Trials = append(e.Head.Trials, t.ID)
	}
	e.Head.Requests = map[string][]string{}
	for _, scene := range p.Suite.Scenarios {
		for _, r := range scene.Requests {
			e.Head.Requests[scene.Name] = append(e.Head.Requests[scene.Name], r.Request)
		}
	}
	return e
}

// prepare builds what the plan needs. What cannot be built does not stop the others.
func (a *app) prepare(ctx context.Context, root string, services []*service.Service,
	tools *service.Tools, e *trial.Experiment, show *progress) error {
	builder := &service.Builder{Root: root, Tools: tools, Progress: show.line}
	var wanted []*service.Service
	for _, t := range e.Plan.Trials {
		s, _, _ := find(services, t.Target)
		if t.Launcher == "" && !slices.Contains(wanted, s) {
			wanted = append(wanted, s)
		}
	}
	outcomes := a.buildAll(ctx, a.world.build, builder, wanted, 0)
	if ctx.Err() != nil {
		return errors.New("build: interrupted")
	}
	for _, o := range outcomes {
		if o.err != nil {
			show.line(o.err.Error())
		}
	}
	for _, name := range targetsOf(e.Plan) {
		s, t, _ := find(services, name)
		x := trial.Subject{Service: s, Target: t}
		if at := slices.Index(wanted, s); at >= 0 {
			x.Built = outcomes[at].built
			if outcomes[at].err != nil {
				e.Broken[name] = outcomes[at].err
			}
		}
		if s.Origin != "" {
			x.Commit, x.Dirty = commit(ctx, s.Dir)
		}
		e.Subjects[name] = x
	}
	a.twins(ctx, e.Plan, services, builder, e)
	a.images(ctx, services, builder, e, show)
	return ctx.Err()
}

// conclude prints what the records say and gives the exit code that fits.
func (a *app) conclude(dir string, runErr error) error {
	if _, err := os.Stat(filepath.Join(dir, result.RunFile)); err != nil && runErr != nil {
		return runErr // it ended before there was anything to report
	}
	rep, err := a.report(dir, reportFlags{save: true})
	if err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil {
		return runErr
	}
	if rep.bad > 0 {
		return cli.End(cli.Invalid, "%d trials are INVALID or failed", rep.bad)
	}
	return nil
}
