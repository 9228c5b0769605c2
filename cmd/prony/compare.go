package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/report"
	"prony.example/internal/report/audit"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// compareFlags are the flags of compare and gate.
type compareFlags struct {
	compare.Options
	targets     []string
	format, out string
}

const addressing = `A and B are folders of runs, their names below results/, "latest" for the newest
run there, or RUN:TARGET for one row of a run. Rows of one run are paired within its starts or
blocks, so changes of the machine cancel. Two runs are not paired: differences include changes of
the machine between them. With --control, a target whose artifact is the same in both runs, each
ratio is divided by the control's own change. One folder alone compares what that run was made for:
rows against those of another checkout (run --against), arms (run --aa), or targets against the
baseline.

Runs that were measured under different conditions (scenario, loads, limits, machine, kernel, ...)
are refused with their differences; --allow-mismatch compares them with a warning.`

func (f *compareFlags) add(c *cobra.Command) {
	fs := c.Flags()
	f.Refused = allTheSame
	fs.StringSliceVar(&f.targets, "targets", nil, "two rows of the same run: A,B")
	fs.StringSliceVar(&f.Metrics, "metric", nil,
		"metrics, such as throughput, p99 or half/p99 (that of one load); all shows all")
	fs.StringVar(&f.Control, "control", "",
		"row with the same artifact in both runs: ratios are divided by its change")
	fs.BoolVar(&f.Unlike, "allow-mismatch", false,
		"compare results of different configurations, with a warning")
	stallsFlag(c, &f.Stalls)
	cli.Output(c, &f.format, &f.out, compareForms.Names()...)
}

func (a *app) compareCmd() *cobra.Command {
	f := &compareFlags{}
	c := &cobra.Command{
		Use: "compare A [B]", Short: "Compare two runs, or two targets, metric by metric",
		Args: cli.Arguments(1, 2),
		Long: `Compare prints for each metric the difference of B from A with its interval, and
whether B is faster, slower or not significantly different. If there is no significant difference,
it prints the smallest one that the run would detect.

` + addressing + `

A and B may also be files (or FILE:ROW) with published results. The files are tables in Markdown or
CSV, java-http's JSON, or the output of wrk, wrk2, hey, oha, k6, h2load, JMeter or vegeta. Compare
quotes the figures of published results and first prints the contradictions that prony audit finds.
Single results have no interval and no verdict. Rows that occur several times in a file are
repetitions.`,
		Example: `  prony compare results/RUN --targets go-nethttp,rust-axum
  prony compare results/RUN:go-nethttp@base results/RUN:go-nethttp
  prony compare results/MONDAY results/TUESDAY --control go-nethttp
  prony compare results/MONDAY results/TUESDAY --format markdown --metric throughput,p99
  prony compare monday.json tuesday.json
  prony compare wrk-before.txt wrk-after.txt`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.page(); err != nil {
				return err
			}
			args, err := a.runFolders(args)
			if err != nil {
				return err
			}
			x, err := a.compare(args, f)
			if err != nil {
				return err
			}
			return a.write(f.out, func(w io.Writer) error {
				return compareForms.Write(w, f.format, x)
			})
		},
	}
	f.add(c)
	return c
}

// compare compares runs, or published results if an argument is a file.
func (a *app) compare(args []string, f *compareFlags) (c compare.Comparison, err error) {
	if slices.ContainsFunc(args, func(arg string) bool {
		file, _ := addressOf(arg, files.IsFile)
		return files.IsFile(file)
	}) {
		return a.comparePublished(args, f)
	}
	from, to, err := a.sides(args, f.targets)
	if err != nil {
		return c, err
	}
	return compareSides(from, to, f.Options)
}

// page refuses to print HTML on a terminal.
func (f *compareFlags) page() error {
	if f.format == "html" && f.out == "" {
		return cli.Usagef("a terminal cannot show a page: write it to a file with -o page.html")
	}
	return nil
}

// compareForms are the formats of a comparison, and gateForms those of a gate.
var (
	compareForms = append(compare.Forms, format.Form[compare.Comparison]{Format: "html",
		Write: func(w io.Writer, c compare.Comparison) error {
			return report.Compare(w, c, report.HTMLOptions{})
		}})
	gateForms = append(compare.GateForms, format.Form[compare.Gate]{Format: "html",
		Write: gatePage})
)

// every is the value of --metric for all metrics.
const every = "all"

// allTheSame is the hint for runs that were measured under different conditions.
const allTheSame = "to compare them with a warning, add --allow-mismatch"

// compareSides compares two sides that were read.
func compareSides(from, to compare.Side, o compare.Options) (compare.Comparison, error) {
	c, err := compare.Compare(from, to, o)
	return compared(c, err, o.Metrics)
}

// compared reports a comparison without rows, or a wrong name, as a usage error.
func compared(c compare.Comparison, err error, metrics []string) (
	compare.Comparison, error) {
	if _, ok := errors.AsType[*compare.NoTargetError](err); ok {
		return c, cli.Usage(err)
	}
	some := func(p compare.Pair) bool { return len(p.Rows) > 0 }
	if err == nil && slices.Equal(metrics, []string{every}) && !slices.ContainsFunc(c.Pairs, some) {
		err = cli.Usagef("the two sides have no metric in common that can be judged")
	} else if err == nil && len(metrics) > 0 && !slices.ContainsFunc(c.Pairs, some) {
		err = cli.Usagef("no row has the metric %s; --metric all shows all metrics",
			strings.Join(metrics, " or "))
	}
	return c, err
}

// comparePublished reads each argument as prony audit does, also a run's folder, because the other
// side has no blocks for pairs.
func (a *app) comparePublished(args []string, f *compareFlags) (
	c compare.Comparison, err error) {
	if err := oneRun(args, f.targets); err != nil {
		return c, err
	}
	var documents []*audit.Document
	var rows []string
	for _, arg := range args {
		file, row := addressOf(arg, isFileOrRun)
		d, err := audit.Open(file, nil)
		if err != nil {
			return c, err
		}
		documents, rows = append(documents, d), append(rows, row)
	}
	if len(args) == 1 || documents[0].File == documents[1].File {
		documents = []*audit.Document{documents[0], documents[0]}
	}
	if len(args) == 1 {
		rows = append(f.targets, "", "")
	}
	c, err = compare.Published(documents[0], documents[1], rows[0], rows[1], f.Options)
	return compared(c, err, f.Metrics)
}

func isFileOrRun(name string) bool { return files.IsFile(name) || isRun(name) }

// oneRun refuses --targets unless they are two rows of one run, and RUN: without a row, which would
// compare unintended rows.
func oneRun(args, targets []string) error {
	for _, arg := range args {
		name, row := addressOf(arg, isFileOrRun)
		if row == "" && name != arg {
			return cli.Usagef("%q: the row after the colon is empty, perhaps because a variable "+
				"of your script is not set; name a row, or omit the colon", arg)
		}
	}
	if name, row := addressOf(args[0], isFileOrRun); len(args) == 1 && row != "" {
		return cli.Usagef("%s names only one row: name a second row, or only %s", args[0], name)
	}
	if len(targets) > 0 && (len(args) != 1 || len(targets) != 2) {
		return cli.Usagef("--targets names two rows A,B of one run; for two runs, write " +
			"RUN:TARGET twice")
	}
	return nil
}

// sides reads the one or two arguments.
func (a *app) sides(args, targets []string) (from, to compare.Side, err error) {
	if err := oneRun(args, targets); err != nil {
		return from, to, err
	}
	if from, err = a.side(args[0]); err != nil {
		return from, to, err
	}
	if len(args) == 1 {
		to = from
		if len(targets) == 2 {
			from.Target, to.Target = targets[0], targets[1]
		}
		return from, to, nil
	}
	if dir, target := runTarget(args[1]); sameFolder(dir, from.Dir) {
		to = from
		to.Target = target
		return from, to, nil
	}
	to, err = a.side(args[1])
	return from, to, err
}

func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// side reads a run's folder, or RUN:TARGET.
func (a *app) side(arg string) (compare.Side, error) {
	dir, target := runTarget(arg)
	if files.IsFile(dir) {
		return compare.Side{}, cli.Usagef("%s is a file, but a gate needs the trials in a run's "+
			"folder; compare published results with prony compare", dir)
	}
	run, err := runs.Read(dir)
	if err != nil {
		return compare.Side{}, err
	}
	a.tellBad(run.Bad)
	if len(run.Records) == 0 {
		return compare.Side{}, fmt.Errorf("read run %s: the run has no records; it may have "+
			"ended before its first trial", dir)
	}
	return run.Side(target), nil
}

// runTarget splits RUN:TARGET if RUN is a run's folder. Folder names may also contain colons.
func runTarget(arg string) (dir, target string) { return addressOf(arg, isRun) }

func addressOf(arg string, is func(string) bool) (name, row string) {
	if is(arg) {
		return arg, ""
	}
	for i, c := range arg {
		if c == ':' && is(arg[:i]) {
			return arg[:i], arg[i+1:]
		}
	}
	return arg, ""
}

func isRun(dir string) bool { return exists(dir, record.RunFile) }
