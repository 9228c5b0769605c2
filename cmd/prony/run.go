//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/units"
	"prony.example/internal/report/runs"
	"prony.example/internal/suite"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/record"
	"prony.example/stats"
)

// runFlags are changes of a suite and the destination of results.
type runFlags struct {
	asked   lab.Wish // without the seed and observations
	seed    uint64
	turn    turnFlags
	why     bool
	invalid string
	remote  []string // hosts of a project's URLs on other machines that may be loaded
	observe observeFlags
}

func (f *runFlags) suiteFlags(c *cobra.Command) {
	fs, o := c.Flags(), &f.asked.Override
	fs.IntVar(&o.Blocks, "blocks", 0,
		"number of starts, or of blocks without slices, instead of the suite's")
	interleaveFlags(c, o)
	fs.DurationVar((*time.Duration)(&o.For), "for", 0,
		"measuring time, instead of --blocks: later starts or blocks measure only undecided "+
			"comparisons")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of the order, arrivals and keys, instead of the "+
		"suite's seed")
	fs.DurationVar((*time.Duration)(&o.Measure), "measure", 0,
		"length of every window, instead of the suite's length")
	fs.DurationVar((*time.Duration)(&o.Warmup), "warmup", 0,
		"longest warm-up, instead of the suite's warm-up")
	fs.StringSliceVar(&o.Targets, "targets", nil,
		"names or globs of targets or services, instead of the suite's targets")
	fs.StringSliceVar(&o.Scenarios, "scenarios", nil,
		"only the suite's scenarios with these names, as globs")
	fs.StringSliceVar(&o.Loads, "loads", nil, "only the suite's loads with these names, as globs, "+
		"and the loads that their rates depend on")
	fs.IntVar(&o.Generators, "generators", 0, "number of processes on this machine that send "+
		"every load together, instead of the suite's number")
	fs.Float64Var(&o.Limits.CPUs, "cpus", 0, "number of cores of a target, instead of the "+
		"suite's number")
	fs.TextVar(&o.Limits.Memory, "memory", strictyaml.Size(0),
		"memory limit of a target, such as 512MiB, instead of the suite's limit")
	fs.BoolVar(&o.Quick, "quick", false,
		"preview: up to 4 starts with 1s in slices, or 2 blocks with windows of 1s; warm-ups of "+
			"6s. With JVMs: 2 starts, warm-ups of up to 30s")
	fs.BoolVar(&o.AA, "aa", false,
		"run every target against itself, to show the noise floor")
	fs.StringVar(&f.asked.Against, "against", "",
		"also run the same targets of another checkout, given by its folder or as NAME=FOLDER")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	cli.SomeOf(c, &o.Launchers, "launcher", "how targets are started, instead of the suite's "+
		"launchers; several launchers are compared", suite.Launchers...)
	cli.SomeOf(c, &o.Drivers, "drivers", "load generators, instead of the suite's; each loads in "+
		"trials of its own", suite.Drivers...)
	f.observe.add(c)
}

// wish returns the wish of the flags that select and change a suite, for a project if there is one.
func (f *runFlags) wish(ctx context.Context, c *cobra.Command, args []string, l *lab.Lab,
	project *suite.Project) (lab.Wish, error) {
	out := f.asked
	if c.Flags().Changed("seed") {
		out.Override.Seed = &f.seed
	}
	if len(args) > 0 {
		out.Suite = args[0]
	}
	err := f.observe.wish(&out)
	if err == nil && project == nil {
		err = refuse(c.Flags().Changed,
			noEffect{true, "remote", "needs a prony.yaml with a target that has a url"})
	}
	if err == nil && project != nil {
		err = ofProject(ctx, l, project, &out, f.remote)
	}
	return out, err
}

const runAbout = `Run builds the services of a suite and runs the targets of each scenario side by
side. Prony loads one target at a time for some tens of milliseconds (a slice). If slices are not
possible, whole trials take turns in blocks, and one line says why. Without a suite, run takes
suites/canonical.yaml of a checkout, or the comparison of a prony.yaml in this folder or above
(docs/project.md). Targets that cannot be built on this machine are left out.

With --aa, each target runs twice in a start, against itself. The report then shows the noise floor:
differences by chance alone, and the smallest difference that the run would detect. With --against,
the same targets of another checkout, such as another branch, run in the same starts as rows
NAME@base, and ratios refer to them.

With --for 5m, the run has a time instead of a number of starts. The warm-up of JVMs may last up to
30 s. After each start, run checks which comparisons are decided, and continues with the others.
These checks add at most 1 % of wrong decisions to the 5 % of any table. Builds and --telemetry take
extra time. The last line says which differences another five minutes would detect.

With --telemetry, each target runs once more after the comparison, with an agent, trace ids and a
profiler. The comparison does not use these trials. Read them with the commands explain, traces,
logs, query and profile. --agent NAME/LEVEL measures the cost of an agent of prony agents.

With --launcher docker, each target runs in a container under the same limits, and needs none of its
tools on this machine. With --launcher process,docker, ratios are the cost of the container
(docs/docker.md). With --launcher kubernetes, each target is a pod on this node with its own cores;
with kubernetes-service, the load goes through a Kubernetes Service (docs/kubernetes.md).

Before it measures, run grades the machine as "prony doctor" does. With --host fit or --host
doubtful, it refuses a worse machine with exit code 1.

Only one prony can measure on a machine at a time: run ends at once and names the other one. With
--wait it waits for the other one, with --wait=10m for ten minutes at most.

With -x, run prints each action outside of prony, such as builds and starts, as a shell command.

Each trial is one record in results/RUN/trials.ndjson, saved before the next trial starts. --resume
runs the trials that have no record or were interrupted, if plan, seed, artifacts, tools and machine
are the same. --resume also continues a comparison of prony versus. --resume cannot continue a run
of --for, or repeat a trial that sent telemetry.

The exit code is 0 if every trial is VALID or SUSPECT, and 4 if one is INVALID or failed. --invalid
pass turns 4 into 0, for a gate that follows. The exit code is 1 for a run that failed, and 2 for a
wrong command line.`

const runExamples = `  prony run
  prony run suites/http.yaml --targets go-nethttp,java-jdk --blocks 5
  prony run --measure 10s --seed 7
  prony run --scenarios 'hello*' --cpus 2 --memory 512MiB
  prony run --loads peak --targets go-nethttp,rust-axum
  prony run --for 5m
  prony run suites/http.yaml --quick
  prony run --aa --targets go-nethttp --blocks 10
  prony run --against ../main --targets go-nethttp
  prony run --telemetry --targets go-nethttp
  prony run --launcher process,docker --targets go-nethttp
  prony run --launcher process,kubernetes,kubernetes-service --targets go-nethttp
  prony run --resume results/2026-11-21T03-40-11Z
  prony run --wait=10m
  prony run --drivers prony,wrk --targets go-nethttp
  prony run --agent otel-java/full --targets java-spring/virtual
  prony run suites/overhead.yaml --agent again,otel-java/noop,otel-java/full`

func (a *app) runCmd() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run [SUITE]", Short: "Run a suite of services and report the results",
		Args: cli.Arguments(0, 1),
		Long: runAbout, Example: runExamples,
		RunE: func(c *cobra.Command, args []string) error { return a.runSuite(c, args, f) },
	}
	f.suiteFlags(c)
	f.asked.Host = "any"
	cli.OneOf(c, &f.asked.Host, "host", "lowest grade of the machine in prony doctor with which "+
		"the run may start",
		doctor.Bars...)
	c.Flags().StringVar(&f.asked.Resume, "resume", "",
		"folder of an interrupted run: run the trials that have no record or were interrupted")
	c.Flags().StringVar(&f.asked.Out, "out", "",
		"folder of the results (default: results/TIME below the root)")
	c.Flags().StringToStringVar(&f.asked.Labels, "label", nil,
		"label in all reports of the run, such as branch=main; repeatable")
	f.turn.flags(c)
	cli.OneOf(c, &f.invalid, "invalid", "count INVALID trials as pass or fail in the exit code; "+
		"pass if prony gate judges the run", stats.Fail, stats.Pass)
	c.Flags().BoolVar(&f.why, "why", false, whyHelp)
	return c
}

// extents reports invalid flags for the amount of work: a zero would keep the suite's value.
func extents(c *cobra.Command) error {
	if c.Flag("for").Changed && c.Flag("blocks").Changed && !c.Flag("precision").Changed {
		return cli.Usagef("--for and --blocks exclude each other: give a time or a number")
	}
	for _, name := range []string{"blocks", "for", "measure", "slices", "warmup", "cpus", "memory",
		"generators", "precision"} {
		v := c.Flag(name).Value.String()
		if c.Flag(name).Changed && (strings.Trim(v, "0sB%") == "" || v[0] == '-') {
			return cli.Usagef("--%s must be greater than 0, got %s", name, v)
		}
	}
	return refuse(c.Flags().Changed, noEffect{c.Flag("interleave").Value.String() == suite.ByBlocks,
		"slices freeze precision", "needs slices: leave out --interleave blocks"})
}

// check reports invalid flags that the suite does not check.
func (f *runFlags) check(c *cobra.Command) error {
	if err := extents(c); err != nil {
		return err
	}
	if err := f.turn.check(c); err != nil {
		return err
	}
	if err := runs.CheckLabels(f.asked.Labels); err != nil {
		return cli.Usagef("--label: %w", err)
	}
	if f.asked.Resume != "" && f.asked.Out != "" {
		return cli.Usagef("--resume and --out exclude each other: a resumed run continues in its " +
			"own folder")
	}
	if out := f.asked.Out; out != "" && isRun(out) {
		return cli.Usagef("--out %s already contains a run; choose another folder, or print the "+
			"run with prony report", out)
	}
	return nil
}

func (a *app) runSuite(c *cobra.Command, args []string, f *runFlags) error {
	if err := errors.Join(misplaced(args), f.check(c)); err != nil {
		return err
	}
	var err error
	if f.asked.Resume, err = a.runFolder(f.asked.Resume); err != nil {
		return err
	}
	if f.asked.Resume != "" && !givenBeside(c, args) {
		return a.again(c, f.asked.Resume)
	}
	f.asked.Resume = cmp.Or(f.asked.Resume, a.resumes)
	l, project, show, err := a.labOrProject()
	if err != nil {
		return err
	}
	f.turn.set(l)
	wish, err := f.wish(c.Context(), c, args, l, project)
	if err != nil {
		return err
	}
	wish.Command, wish.Version = append([]string{"prony"}, a.args...), version()
	leave := func() error { return nil }
	if project != nil {
		if l, leave, err = hold(c.Context(), l, project, &wish); err != nil {
			show.end()
			return err
		}
	}
	dir, err := l.Run(c.Context(), wish)
	err = errors.Join(err, leave())
	show.end()
	ended := a.conclude(dir, err, f.why)
	if err == nil && f.invalid == stats.Pass && cli.Code(ended) == cli.Invalid {
		a.say("prony: " + ended.Error())
		ended = nil
	}
	return errors.Join(ended, a.further(dir))
}

// runOnly are flags that change no trial of a run to resume, and that prony versus does not have.
var runOnly = []string{"host", "invalid", "why"}

// givenBeside reports whether a command line changes more of a run to resume than its place and
// what becomes of it.
func givenBeside(c *cobra.Command, args []string) (given bool) {
	c.Flags().Visit(func(f *pflag.Flag) {
		given = given || !slices.Contains(append(runOnly, "resume", "root", "show", "wait"), f.Name)
	})
	return given || len(args) > 0
}

// again continues an interrupted run with its own command line.
func (a *app) again(c *cobra.Command, dir string) error {
	head, _, _, err := record.Read(dir)
	if err != nil {
		return err
	}
	var first, names []string // of the flags beside --resume, which replace those of the line
	wrong := ""
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "resume" {
			first = append(first, "--"+f.Name+"="+f.Value.String())
		}
		if names = append(names, "--"+f.Name); slices.Contains(runOnly, f.Name) {
			wrong = f.Name
		}
	})
	if a.rootFlag != "" { // perhaps of the environment
		names = append(names, "--root")
	}
	line, verb := repeated(head.Command, names)
	switch {
	case verb == "":
		return fmt.Errorf("cannot resume %s: only runs of prony run and prony versus can be "+
			"resumed; start a new run with %s", dir, runs.Reproduce(head))
	case verb == "versus" && wrong != "":
		return cli.Usagef("--%s is not possible for a run of prony versus; leave it out", wrong)
	case head.ForNs > 0:
		return fmt.Errorf("cannot resume the --for run %s: later starts depended on earlier "+
			"results; start a new run with %s", dir, runs.Reproduce(head))
	case verb == "versus" && cmdlog.Lacking(head.Command):
		return fmt.Errorf("cannot resume %s: its command line had a password or a credential, "+
			"which is not stored; start a new run, with the credential as ${NAME} of an "+
			"environment variable", dir)
	}
	root := newRoot(&app{world: a.world, args: a.args, stdout: a.stdout, stderr: a.stderr,
		resumes: dir})
	root.SetArgs(slices.Concat([]string{verb}, first, line))
	err = root.ExecuteContext(c.Context())
	if cli.Code(err) == cli.Misused { // the line was right once: its paths are relative
		err = fmt.Errorf("cannot resume %s: %w; resume it in the folder in which it was started",
			dir, err)
	}
	return err
}

// repeated returns the verb of a run's command line, and its other words without the folder of the
// run, the wait for the machine and the flags that replaced names. The verb is empty if the run
// cannot be resumed.
func repeated(command, replaced []string) (line []string, verb string) {
	if len(command) == 1 {
		return nil, "run" // that of a checkout without a verb
	}
	for i := 1; i < len(command); i++ {
		word := command[i]
		name, _, joined := strings.Cut(word, "=")
		switch {
		case word == "--":
			return append(line, command[i:]...), verb
		case name == "--wait": // its value is joined
		case slices.Contains([]string{"--out", "--resume", "--root", "--host", "--invalid"}, name):
			with := min(len(command), i+2)
			if joined {
				with = i + 1
			}
			if !slices.Contains(append(replaced, "--out", "--resume"), name) {
				line = append(line, command[i:with]...)
			}
			i = with - 1
		case verb == "" && slices.Contains([]string{"run", "versus"}, word):
			verb = word
		case verb == "" && !strings.HasPrefix(word, "-"):
			return nil, ""
		default:
			line = append(line, word)
		}
	}
	return line, verb
}

// conclude prints the report and returns the error for the exit code.
func (a *app) conclude(dir string, runErr error, why bool) error {
	if !isRun(dir) && runErr != nil {
		return runErr // it ended before there was anything to report
	}
	rep, err := a.study(dir, reportFlags{save: true})
	if err != nil {
		return errors.Join(runErr, err)
	}
	return a.concluded(rep, dir, runErr, reportFlags{why: why})
}

// concluded is conclude for records that were read.
func (a *app) concluded(rep *reported, dir string, runErr error,
	f reportFlags) error {
	f.save = true
	if err := a.publish(rep, dir, f); err != nil {
		return errors.Join(runErr, err)
	}
	if runErr != nil {
		return runErr
	}
	if rep.bad > 0 {
		return cli.End(cli.Invalid, "%d trials are INVALID, failed or lost", rep.bad)
	}
	return nil
}

// further prints the last line of a run with a time budget: the effect of more time.
func (a *app) further(dir string) error {
	if !isRun(dir) {
		return nil
	}
	s, err := record.ReadSchedule(dir)
	if err != nil || s == nil || s.Next == nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, bought(s.Next))
	return err
}

// bought formats this line.
func bought(n *record.Next) string {
	text := "all comparisons are decided"
	if n.Open > 0 {
		text = units.Plural(n.Open, "comparison") + " open"
	}
	text += fmt.Sprintf("; another %s would allow ", units.Roughly(time.Duration(n.ForNs)))
	of := strings.Join(n.Targets, ", ")
	if n.Blocks == 0 {
		return text + fmt.Sprintf("no trial of %s, which take %s together", of,
			units.Roughly(time.Duration(n.BlockNs)))
	}
	text += units.Plural(n.Blocks, "trial") + " of each of " + of
	if n.Would <= 0 || table.Undetectable(n.Would) {
		return text
	}
	text += fmt.Sprintf(" and detect differences of %s; now it detects ", units.Percent(n.Would))
	if table.Undetectable(n.Resolves) {
		return text + "only large ones"
	}
	return text + units.Percent(n.Resolves)
}
