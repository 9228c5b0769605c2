//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/units"
	"prony.example/internal/suite"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/record"
	"prony.example/stats"
)

// runFlags change a suite from the command line, or where results go.
type runFlags struct {
	asked   lab.Wish // but for the seed and what is observed
	seed    uint64
	retain  bool
	wait    time.Duration
	why     bool
	invalid string
	remote  []string // hosts of a project's URLs that are other machines, and may be loaded
	observe observeFlags
}

// waitDefault is how long a run waits for another lab where no bound is given: longer than any run,
// and not for ever.
const waitDefault = "24h"

func (f *runFlags) suiteFlags(c *cobra.Command) {
	fs, o := c.Flags(), &f.asked.Override
	fs.IntVar(&o.Blocks, "blocks", 0,
		"starts, or blocks without slices, instead of the suite's")
	interleaveFlags(c, o)
	fs.DurationVar((*time.Duration)(&o.For), "for", 0,
		"how long to measure, instead of --blocks: further starts or blocks go to what is "+
			"undecided")
	fs.Uint64Var(&f.seed, "seed", 0, "seed of order, arrivals and keys, instead of the suite's")
	fs.DurationVar((*time.Duration)(&o.Measure), "measure", 0,
		"length of every window, instead of the suite's")
	fs.DurationVar((*time.Duration)(&o.Warmup), "warmup", 0,
		"longest warm-up, instead of the suite's")
	fs.StringSliceVar(&o.Targets, "targets", nil,
		"targets or services, as globs, instead of the suite's")
	fs.StringSliceVar(&o.Scenarios, "scenarios", nil,
		"those of the suite's scenarios alone, as globs over their names")
	fs.StringSliceVar(&o.Loads, "loads", nil, "those of the suite's loads alone, as globs over "+
		"their names, and those that they are shares of")
	fs.IntVar(&o.Generators, "generators", 0, "processes of this machine that offer every load "+
		"together, instead of the suite's")
	fs.Float64Var(&o.Limits.CPUs, "cpus", 0, "cores of a target, instead of the suite's")
	fs.TextVar(&o.Limits.Memory, "memory", strictyaml.Size(0),
		"memory of a target, as 512MiB, instead of the suite's")
	cli.RemovedFlag(fs, "duet", "prony versus and prony run compare targets in slices of "+
		"milliseconds; see docs/slices.md")
	fs.BoolVar(&o.Quick, "quick", false,
		"at most 4 starts with 1s in slices, or 2 blocks; windows of 1s, warm-ups of 6s")
	fs.BoolVar(&o.AA, "aa", false,
		"every target against itself: how much differs here when nothing does")
	fs.StringVar(&f.asked.Against, "against", "",
		"the same targets of another checkout, too: its folder, or NAME=FOLDER")
	fs.StringSliceVar(&f.remote, "remote", nil, remoteHelp)
	cli.SomeOf(c, &o.Launchers, "launcher", "how targets are started, instead of the suite's; "+
		"several are compared", suite.Launchers...)
	f.observe.add(c)
}

// wish is what the flags that choose and change a suite say, of a project where there is one.
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
	if err == nil && project != nil {
		err = ofProject(ctx, l, project, &out, f.remote)
	}
	return out, err
}

const runAbout = `Run builds the services of a suite that can be built here and runs the targets of
each scenario side by side. It loads one at a time for some tens of milliseconds (a slice).
If slices are not possible, whole trials take turns in blocks, and one line says why. Without a
suite it runs suites/canonical.yaml; in a folder with a prony.yaml, or below, and outside of a
checkout, it runs that file's comparison, or its suite of that name (docs/project.md).

With --aa each target runs twice in a start, against itself, and the report shows how much differs
by chance alone, and which difference the run would detect: the noise floor. With --against the same
targets of another checkout, such as another branch, run in the same starts as rows NAME@base, and
ratios refer to them.

With --for 5m it goes on for that long instead of a number of starts. JVMs get the warm-up that
they need, up to 30 s. After each start it checks which comparisons are decided, and goes on with
those that are open. These checks add at most 1 % of wrong decisions to the 5 % of any table. Builds
are not counted, nor what --telemetry adds. The last line says what the next five minutes would buy.

With --telemetry each target runs once more after the comparison, watched from inside by an agent,
trace ids and a profiler. No number of the comparison uses that. The commands explain, traces, logs,
query and profile read the results. --agent NAME/LEVEL measures the cost of an agent that prony
agents lists.

With --launcher docker each target runs as a container from the image that its Dockerfile makes,
under the same limits, and needs none of its tools here; with --launcher process,docker in both
ways, and the ratio is what the container and its network cost. docs/docker.md tells more.
With --launcher kubernetes each is a pod of the cluster that kubectl knows, on this very node, with
cores of its own; kubernetes-service goes through a service before it: docs/kubernetes.md.

Before it measures, run grades the machine as "prony doctor" does; with --host fit, or doubtful, it
refuses a worse one: nothing is measured, and the exit code is 1.

With --retain the service of a trial that fails is not stopped at once: run says where it listens,
its process, log and folder, and waits until Enter, which goes on, or Ctrl-C, which ends the run.
Labs of a machine take turns: where another prony measures, run gives up at once and names it. With
--wait it waits for its turn and says for whom, with --wait=10m for ten minutes at most.

With -x every outside action is shown as a line for a shell, builds and starts above all.

Each trial is one record in results/RUN/trials.ndjson, saved before the next one starts, so that an
interrupted run keeps all it has. With --resume the trials that have no record follow, where plan,
seed, artifacts, tools and machine are what they were; the report says when. The exit code is 0
when every trial is VALID or SUSPECT, 4 when one is INVALID or failed (with --invalid pass 0: a
gate that follows has its own word on it), 1 when the run itself went
wrong, 2 if the command line is wrong.`

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
  prony run --retain --targets go-nethttp
  prony run --wait=10m
  prony run --agent otel-java/full --targets java-spring/virtual`

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
	cli.OneOf(c, &f.asked.Host, "host", "what the machine must be, as prony doctor grades it",
		doctor.Bars...)
	c.Flags().StringVar(&f.asked.Resume, "resume", "",
		"folder of a run that was ended: run the trials that have no record")
	c.Flags().StringVar(&f.asked.Out, "out", "",
		"folder of the results (default: results/TIME below the root)")
	c.Flags().StringToStringVar(&f.asked.Labels, "label", nil,
		"what reports are to say of the run, as branch=main; repeatable")
	c.Flags().DurationVar(&f.wait, "wait", 0, "wait for another prony that measures on this "+
		"machine, instead of giving up; =10m: for so long at most")
	c.Flags().Lookup("wait").NoOptDefVal = waitDefault
	cli.OneOf(c, &f.invalid, "invalid", "what the exit code makes of INVALID trials; pass, where "+
		"prony gate judges the run", stats.Fail, stats.Pass)
	c.Flags().BoolVar(&f.why, "why", false, whyHelp)
	c.Flags().BoolVar(&f.retain, "retain", false,
		"keep the service of a trial that fails, to look at, until Enter or Ctrl-C")
	return c
}

// maxLabels bounds what each report says of a run, in bytes.
const maxLabels = 4 << 10

// extents says what is wrong with flags for how much is run: a zero is the suite's own to an
// override.
func extents(c *cobra.Command) error {
	if c.Flag("for").Changed && c.Flag("blocks").Changed && !c.Flag("precision").Changed {
		return cli.Usagef("--for and --blocks: give one of them: a time, or a fixed design")
	}
	if labels := c.Flag("label"); labels != nil && len(labels.Value.String()) > maxLabels {
		return cli.Usagef("--label: %d bytes of labels; want at most %d",
			len(labels.Value.String()), maxLabels)
	}
	for _, name := range []string{"blocks", "for", "measure", "slices", "warmup", "cpus", "memory",
		"generators", "precision"} {
		v := c.Flag(name).Value.String()
		if c.Flag(name).Changed && strings.Trim(v, "0sB%") == "" {
			return cli.Usagef("--%s %s: want more than nothing", name, v)
		}
	}
	return nil
}

// check says what is wrong with flags that the suite does not see.
func (f *runFlags) check(c *cobra.Command) error {
	if err := extents(c); err != nil {
		return err
	}
	if c.Flag("wait").Changed && f.wait <= 0 {
		return cli.Usagef("--wait %v: want more than nothing", f.wait)
	}
	if f.asked.Resume != "" && f.asked.Out != "" {
		return cli.Usagef("--resume and --out: a run is gone on with in its own folder")
	}
	if out := f.asked.Out; out != "" && isRun(out) {
		return cli.Usagef("--out %s: it holds a run already; choose another folder, or "+
			"see it with prony report", out)
	}
	return nil
}

func (a *app) runSuite(c *cobra.Command, args []string, f *runFlags) error {
	if err := errors.Join(misplaced(args), f.check(c)); err != nil {
		return err
	}
	if f.asked.Resume != "" && !a.repeated && !givenBeside(c, args) {
		return a.again(c, f.asked.Resume)
	}
	l, project, show, err := a.labOrProject()
	if err != nil {
		return err
	}
	l.Wait = f.wait
	wish, err := f.wish(c.Context(), c, args, l, project)
	if err != nil {
		return err
	}
	wish.Command, wish.Version = append([]string{"prony"}, a.args...), version()
	if f.retain {
		wish.Hold = (&retainer{tell: show, in: os.Stdin}).hold
	}
	if project != nil {
		if err := hold(c.Context(), l, project, &wish); err != nil {
			show.end()
			return err
		}
	}
	dir, err := l.Run(c.Context(), wish)
	show.end()
	ended := a.conclude(dir, err, f.why)
	if err == nil && f.invalid == stats.Pass && cli.Code(ended) == cli.Invalid {
		a.say("prony: " + ended.Error())
		ended = nil
	}
	return errors.Join(ended, a.further(dir))
}

// givenBeside tells whether a command line says anything beside what to resume and where.
func givenBeside(c *cobra.Command, args []string) (given bool) {
	c.Flags().Visit(func(f *pflag.Flag) {
		given = given ||
			!slices.Contains([]string{"resume", "root", "show", "host", "wait"}, f.Name)
	})
	return given || len(args) > 0
}

// again is the command line of a run that was ended, to go on with it.
func (a *app) again(c *cobra.Command, dir string) error {
	head, _, _, err := record.Read(dir)
	if err != nil {
		return err
	}
	if head.File == "" || len(head.Command) == 0 {
		return fmt.Errorf("resume %s: the line that began it cannot be repeated; begin a new run",
			dir)
	}
	line := []string{"run"}
	verb := false // it has stood, which flags that every verb has may come before
	for words := head.Command[1:]; len(words) > 0; words = words[1:] {
		if words[0] == "run" && !verb {
			verb = true
			continue
		}
		name, _, joined := strings.Cut(words[0], "=")
		if !slices.Contains([]string{"--out", "--resume", "--root", "--wait"}, name) {
			line = append(line, words[0])
		} else if !joined && len(words) > 1 {
			words = words[1:]
		}
	}
	line = append(line, "--resume", dir)
	if wait := c.Flag("wait"); wait.Changed {
		line = append(line, "--wait="+wait.Value.String())
	}
	if a.rootFlag != "" {
		line = append(line, "--root", a.rootFlag)
	}
	root := newRoot(&app{world: a.world, args: a.args, stdout: a.stdout, stderr: a.stderr,
		repeated: true})
	root.SetArgs(line)
	return root.ExecuteContext(c.Context())
}

// conclude prints what the records say and gives the exit code that fits.
func (a *app) conclude(dir string, runErr error, why bool) error {
	if !isRun(dir) && runErr != nil {
		return runErr // it ended before there was anything to report
	}
	rep, err := a.study(dir, reportFlags{save: true})
	if err != nil {
		return errors.Join(runErr, err)
	}
	return a.concluded(rep, dir, runErr, why)
}

// concluded is conclude of records that have been read.
func (a *app) concluded(rep *reported, dir string, runErr error, why bool) error {
	if err := a.publish(rep, dir, reportFlags{save: true, why: why}); err != nil {
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

// further is the last line of a run that went on for a time: what more of it would buy.
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

// bought says it in words.
func bought(n *record.Next) string {
	text := "no comparison is open"
	if n.Open > 0 {
		text = units.Plural(n.Open, "comparison") + " open"
	}
	text += fmt.Sprintf("; the next %s would buy ", roughly(time.Duration(n.ForNs)))
	of := strings.Join(n.Targets, ", ")
	if n.Blocks == 0 {
		return text + fmt.Sprintf("no trial of %s, which together take %s", of,
			roughly(time.Duration(n.BlockNs)))
	}
	text += units.Plural(n.Blocks, "trial") + " of each of " + of
	if n.Would <= 0 || table.Unfound(n.Would) {
		return text
	}
	text += fmt.Sprintf(": differences of %s would show, now ", units.Percent(n.Would))
	if table.Unfound(n.Resolves) {
		return text + "none but large ones"
	}
	return text + units.Percent(n.Resolves)
}
