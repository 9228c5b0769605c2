package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/report"
	"prony.example/internal/report/compare"
	"prony.example/record"
	"prony.example/stats"
)

type gateFlags struct {
	compareFlags
	limits       []string
	invalid      int
	inconclusive string
	github       bool
	good         string // file with the folder of the last good run

	most []compare.Limit // parsed limits
}

func (a *app) gateCmd() *cobra.Command {
	f := &gateFlags{}
	c := &cobra.Command{
		Use: "gate BASE [NEW] [-- VERB ...]", Short: "Fail if a run is a regression",
		Args: gateArguments,
		Long: `Gate checks for each metric whether NEW is worse than BASE by more than the limit of
--max-regression. The whole interval of the difference decides, not the difference alone:

  pass          the whole interval is within the limit: exit code 0
  fail          the whole interval is beyond the limit: exit code 3
  inconclusive  the interval includes the limit: exit code 5; the report says about how many more
                starts or blocks would decide; --inconclusive maps it to pass or fail
  insufficient data  a judged metric lacks trials that are INVALID or failed, or there are too few
                starts or blocks for an interval: exit code 4

If trials are independent and both sides are paired, a loss within the limit fails in at most 2.5 %
of gates, and a larger one passes in at most 2.5 %. Rows that only one side has are an error: name
the rows to judge.

Without --metric, gate judges metrics that have a limit of their own, and one more metric. For a run
of prony versus, this is the metric that decides there: CPU time per request, or that of --by. For
other runs, it is the metric of the ranking: throughput at the peak, or p99 of the first open load.

Gate judges response times without the machine's stalls, if these values are known. If a metric
passes only without stalls, the result says so, and --github prints a warning.

With --last-good FILE, name NEW only. FILE names BASE, the last run that passed, and is updated when
NEW passes by its interval. If FILE names no run yet, gate checks that NEW has valid trials, and
NEW becomes the base.

With a prony command after --, gate first runs this command, which makes NEW. If the command fails,
gate ends with its exit code. Trials that are INVALID or failed (exit code 4) are left to the gate.

` + addressing,
		Example: `  prony gate results/RUN:go-nethttp@base results/RUN:go-nethttp
  prony gate results/RUN --max-regression 5% --metric throughput --max-regression p99=10%
  prony gate results/RUN --max-regression 5% --inconclusive pass --github
  prony gate new --last-good good -- run --out new`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if args, err = a.before(c, args, f); err != nil {
				return err
			}
			if args, err = a.runFolders(args); err != nil {
				return err
			}
			if f.good != "" {
				return a.gateLast(args[0], f)
			}
			_, err = a.gate(args, f)
			return err
		},
	}
	f.add(c)
	fs := c.Flags()
	fs.StringSliceVar(&f.limits, "max-regression", []string{"5%"},
		"largest allowed loss, for all metrics (5%) or for one (p99=10%)")
	fs.IntVar(&f.invalid, "allow-invalid", 0,
		"number of trials on each side that may be INVALID or failed")
	cli.OneOf(c, &f.inconclusive, "inconclusive", "count an inconclusive gate as pass or fail",
		stats.Pass, stats.Fail)
	fs.StringVar(&f.good, "last-good", "", "file that names the last run that passed: BASE")
	fs.BoolVar(&f.github, "github", false, "also annotate the change on GitHub (workflow commands)")
	return c
}

// gateArguments checks the arguments before a command after --.
func gateArguments(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	} else if dash == len(args) {
		return cli.Usagef("expected a prony command after --, such as run --out NEW")
	}
	return cli.Arguments(1, 2)(c, args[:dash])
}

// before checks the command line of a gate, runs the command after --, which makes the run to
// judge, and returns the arguments before it.
func (a *app) before(c *cobra.Command, args []string, f *gateFlags) ([]string, error) {
	dash := c.ArgsLenAtDash()
	if dash < 0 {
		return args, f.check(args)
	}
	if err := f.check(args[:dash]); err != nil {
		return nil, err
	}
	err := a.inner(c.Context(), args[dash:])
	if code := cli.Code(err); code != cli.Fine && code != cli.Invalid {
		return nil, cli.End(code, "%v", err)
	}
	if c.Context().Err() != nil {
		return nil, errors.New("gate: ended by a signal before it was complete")
	}
	return args[:dash], nil
}

// inner runs another command of this program. If this one prints external actions, both do.
func (a *app) inner(ctx context.Context, line []string) error {
	if cmdlog.Watched() {
		line = append([]string{"--show"}, line...)
		defer a.show()
	}
	return run(ctx, a.world, line, a.stdout, a.stderr)
}

// check reports wrong flags and arguments, before a command makes the run.
func (f *gateFlags) check(args []string) (err error) {
	switch {
	case f.invalid < 0:
		return cli.Usagef("--allow-invalid must be at least 0, got %d", f.invalid)
	case f.github && (f.format == "json" || f.format == "csv") && f.out == "":
		return cli.Usagef("both --github and --format %s would write to standard output: add "+
			"-o FILE", f.format)
	case f.good != "" && (len(args) != 1 || len(f.targets) > 0):
		return cli.Usagef("--last-good already names BASE: name only NEW, a run's folder")
	}
	f.most, err = compare.ParseLimits(f.Metrics, f.limits)
	return cmp.Or(f.page(), cli.Usage(err))
}

func (a *app) gate(args []string, f *gateFlags) (g compare.Gate, err error) {
	limits := f.most
	from, to, err := a.sides(args, f.targets)
	if err != nil {
		return g, err
	}
	o := f.Options
	o.Metrics = []string{every}
	all, err := compareSides(from, to, o)
	if err != nil {
		return g, err
	}
	if from.Head.Decides == to.Head.Decides {
		limits = compare.DecidedLimits(limits, all, to.Head.Decides)
	}
	if o.Metrics, err = compare.Judged(all, limits); err != nil {
		return g, cli.Usage(err)
	}
	c, err := compareSides(from, to, o)
	if err != nil {
		return g, err
	}
	g, err = compare.Judge(c, limits, f.invalid)
	if err != nil {
		return g, err
	}
	if o.Stalls != table.KeepStalls {
		o.Stalls = table.KeepStalls
		if raw, err := compareSides(from, to, o); err == nil { // only a warning depends on it
			if raw, err := compare.Judge(raw, limits, f.invalid); err == nil {
				g.WarnOfStalls(raw)
			}
		}
	}
	err = a.write(f.out, func(w io.Writer) error { return gateForms.Write(w, f.format, g) })
	if err != nil {
		return g, err
	}
	if f.out != "" { // the log also shows the result
		fmt.Fprintln(a.stdout, g.Sentence())
	}
	if f.github {
		if err := compare.Annotations(a.stdout, g); err != nil {
			return g, err
		}
	}
	return g, f.exit(g)
}

func gatePage(w io.Writer, g compare.Gate) error {
	return report.Compare(w, g.Comparison, report.HTMLOptions{Gate: &g})
}

// exit returns the exit code of a gate, whose result was already printed.
func (f *gateFlags) exit(g compare.Gate) error {
	outcome := g.Outcome
	if outcome == stats.Inconclusive && f.inconclusive != "" {
		outcome = f.inconclusive
	}
	codes := map[string]int{stats.Fail: cli.GateFailed, stats.Inconclusive: cli.Inconclusive,
		compare.InsufficientData: cli.Invalid}
	if code, bad := codes[outcome]; bad {
		return cli.End(code, "%s", g.Sentence())
	}
	return nil
}

// nameMost limits the size of a file with a folder's name.
const nameMost = 4 << 10

// gateLast compares a run with the last good run, for labs that run every night without a user who
// names two folders.
func (a *app) gateLast(dir string, f *gateFlags) error {
	if _, row := runTarget(dir); row != "" {
		return cli.Usagef("%s is a row: name only NEW, a run's folder", dir)
	}
	text, err := files.String(f.good, nameMost)
	if errors.Is(err, fs.ErrNotExist) {
		return a.gateFirst(dir, f)
	}
	if err != nil {
		return fmt.Errorf("read the file of --last-good: %w", err)
	}
	base := strings.TrimSpace(text)
	if base == "" { // a night without a base would accept any loss
		return fmt.Errorf("the file of --last-good, %s, is empty: write the folder of the last "+
			"good run into it, or remove it to start over", f.good)
	}
	for _, beside := range []string{base, filepath.Base(base)} { // of a gate in another folder
		if path := filepath.Join(filepath.Dir(f.good), beside); !isRun(base) && isRun(path) {
			base = path
		}
	}
	if !isRun(base) { // runs may have been removed
		a.say("prony: the last good run, " + base + ", no longer exists")
		return a.gateFirst(dir, f)
	}
	if sameFolder(base, dir) {
		return cli.Usagef("%s is itself the last good run that %s names: give each run a folder "+
			"with a new name", dir, f.good)
	}
	g, err := a.gate([]string{base, dir}, f)
	if unlike, ok := errors.AsType[*compare.UnlikeError](err); ok {
		unlike.Hint += fmt.Sprintf("\nto start over, remove %s: the next run that this gate "+
			"judges then becomes the base of later runs", f.good)
	}
	// A run that passed undecided is no base: later losses would be measured from it.
	if err != nil || g.Outcome != stats.Pass {
		return err
	}
	return f.isGood(dir)
}

// gateFirst checks a run that has no base yet.
func (a *app) gateFirst(dir string, f *gateFlags) error {
	side, err := a.side(dir)
	if err != nil {
		return err
	}
	lost, blocks := 0, map[int]bool{}
	for _, r := range side.Records {
		blocks[r.Block] = true
		if r.Outcome != record.Measured || r.Verdict.Grade == record.Invalid {
			lost++
		}
	}
	lacking := ""
	switch {
	case lost > f.invalid:
		lacking = fmt.Sprintf("INSUFFICIENT DATA: %d trials were INVALID or failed, so this run "+
			"is no base for later runs", lost)
	case len(blocks) < 2:
		lacking = "INSUFFICIENT DATA: only 1 trial of each target, so this run is no base for " +
			"later runs"
	}
	if lacking != "" {
		fmt.Fprintln(a.stdout, lacking)
		return cli.End(cli.Invalid, "%s", lacking)
	}
	if f.out != "" {
		a.say("prony: " + f.out + " is not written, because there is nothing to compare with yet")
	}
	fmt.Fprintln(a.stdout, "PASS: there is no earlier good run; later runs are compared with "+
		"this one")
	return f.isGood(dir)
}

func (f *gateFlags) isGood(dir string) error {
	if err := files.Put(f.good, []byte(dir+"\n")); err != nil {
		return fmt.Errorf("write the file of --last-good: %w", err)
	}
	return nil
}
