package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	pprof "github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/format"
	"prony.example/internal/observe/profile"
	"prony.example/internal/report"
	"prony.example/record"
)

type profileFlags struct {
	target, trial, process string
	kind, load             string
	diff                   string
	top                    int
	out                    string
}

func (a *app) profileCmd() *cobra.Command {
	f := &profileFlags{}
	c := &cobra.Command{
		Use: "profile [RUN]", Short: "Show where the services of a run spent their time",
		Args: cli.Arguments(0, 1),
		Long: `Profile shows the profiles of a run. RUN is its folder, the folder's name below
results/ (in a project: .prony/run/), or "latest"; without it, profile reads the newest run that has
any. Profile prints a table of the functions with the largest shares: flat is a function's own
share, cum includes the functions that it called. With --output, the suffix chooses the format: a
flame graph (.html), pprof (.pb.gz), folded stacks (.folded), or the flame graph's tree and the
table (.json).

The profiles of all trials of a target are added up. --diff compares with TARGET of this run, with
RUN:TARGET or RUN, or with a trial's id. Changes are in percentage points of the profile's total, so
loads of different length are comparable. A positive change means that the function's share is
larger here than in the profile of --diff.`,
		Example: `  prony profile results/2026-11-21T03-40-11Z --target java-spring/virtual
  prony profile results/2026-11-21T03-40-11Z --target go-gin --kind alloc --top 40
  prony profile results/2026-11-21T03-40-11Z --target go-gin -o gin.html
  prony profile results/2026-11-21T03-40-11Z --target go-gin --diff go-nethttp
  prony profile results/2026-11-22T03-40-11Z --target go-gin --diff results/2026-11-21T03-40-11Z`,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.storedRun(args, "profiles")
			if err != nil {
				return err
			}
			return a.profile(dir, *f)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.target, "target", "", "target to show (default: the run's only one)")
	fs.StringVar(&f.trial, "trial", "", "only this trial, such as b1-03-go-nethttp")
	fs.StringVar(&f.process, "process", "", "only this process of a system")
	f.kind = profile.CPU
	cli.OneOf(c, &f.kind, "kind", "", profile.Kinds...)
	fs.StringVar(&f.load, "load", "", "only profiles of this load")
	fs.StringVar(&f.diff, "diff", "", "profile to compare with: TARGET, RUN, RUN:TARGET or a trial")
	fs.IntVar(&f.top, "top", 20, "number of functions in the table; 0: all")
	fs.StringVarP(&f.out, "output", "o", "", "FILE.html, .pb.gz, .folded or .json")
	return c
}

// suffixes are the file name suffixes that select a format.
var suffixes = []string{".html", ".pb.gz", ".folded", ".json"}

func (f profileFlags) check() error {
	if f.top < 0 {
		return cli.Usagef("--top must be at least 0, got %d", f.top)
	}
	suffix := f.suffix()
	if f.out != "" && suffix == "" {
		return cli.Usagef("--output %s: the file name must end with one of %s", f.out,
			strings.Join(suffixes, ", "))
	}
	if f.diff != "" && (suffix == ".pb.gz" || suffix == ".folded") {
		return cli.Usagef("--output %s: with --diff, only .html and .json are possible",
			f.out)
	}
	return nil
}

func (f profileFlags) suffix() string {
	for _, s := range suffixes {
		if strings.HasSuffix(f.out, s) {
			return s
		}
	}
	return ""
}

// taken is the sum of one or more profiles, with its names.
type taken struct {
	row      string // of the target
	name     string // such as "go-gin, cpu"
	trials   int    // number of profiles
	pprof    *pprof.Profile
	tools    []string
	duration time.Duration // sum of all windows
}

func (a *app) profile(run string, f profileFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	shown, err := a.readProfile(run, f)
	if err != nil {
		return err
	}
	var other *taken
	if f.diff != "" {
		g := f
		if g.diff, err = a.runFolder(f.diff); err != nil {
			return err
		}
		if other, err = a.readProfile(g.against(run)); err != nil {
			return fmt.Errorf("--diff %s: %w", f.diff, err)
		}
	}
	return a.write(f.out, func(w io.Writer) error { return printProfile(w, f, shown, other) })
}

// against returns the run of --diff, and the flags that select a profile in it.
func (f profileFlags) against(run string) (string, profileFlags) {
	g, name := f, f.diff
	if dir, target := runTarget(name); isRun(dir) {
		if run, name = dir, target; name == "" {
			return run, g // the same target of another run
		}
	}
	g.trial, g.target = "", name
	if _, records, _, err := record.Read(run); err == nil {
		for _, r := range records {
			if r.Trial == name {
				g.trial, g.target = name, ""
			}
		}
	}
	return run, g
}

// readProfile adds up the profiles of a run that the flags select.
func (a *app) readProfile(run string, f profileFlags) (*taken, error) {
	_, records, bad, err := record.Read(run)
	if err != nil {
		return nil, err
	}
	a.tellBad(bad)
	var all []*pprof.Profile
	out := &taken{}
	var rows, failed, has []string
	for _, r := range records {
		name := table.RowName(r.Target)
		for _, p := range r.Profiles {
			if has = append(has, name+" "+p.Kind); !f.wants(r, p) {
				continue
			}
			if p.Failed != "" {
				failed = append(failed, r.Trial+": "+p.Failed)
				continue
			}
			one, err := profile.Open(os.DirFS(run), p.File)
			if err != nil {
				return nil, err
			}
			all, rows = append(all, one), append(rows, name)
			out.tools = append(out.tools, p.Tool)
			out.duration += time.Duration(p.DurationNs)
		}
	}
	slices.Sort(rows)
	if rows = slices.Compact(rows); len(rows) > 1 {
		return nil, cli.Usagef("%s has profiles of %s: choose one with --target",
			run, strings.Join(rows, ", "))
	}
	if len(all) == 0 {
		return nil, noProfile(run, f, failed, has)
	}
	slices.Sort(out.tools)
	out.tools = slices.Compact(out.tools)
	out.row, out.name, out.trials = rows[0], rows[0]+", "+f.kind, len(all)
	if out.pprof, err = profile.Merge(all...); err != nil {
		return nil, fmt.Errorf("%s: %w", run, err)
	}
	return out, nil
}

func (f profileFlags) wants(r *record.Record, p record.Profile) bool {
	return p.Kind == f.kind && (f.trial == "" || r.Trial == f.trial) &&
		(f.target == "" || table.RowName(r.Target) == f.target || r.Target.Name == f.target) &&
		(f.load == "" || p.Load == f.load) && (f.process == "" || p.Process == f.process)
}

// noProfile returns an error with the profiles that exist, or how to take one.
func noProfile(run string, f profileFlags, failed, has []string) error {
	what := strings.Join(strings.Fields(strings.Join([]string{f.target, f.trial, f.process, f.load},
		" ")), " ")
	err := fmt.Errorf("%s has no %s profile", run, f.kind)
	if what != "" {
		err = fmt.Errorf("%s has no %s profile of %s", run, f.kind, what)
	}
	slices.Sort(has)
	switch has = slices.Compact(has); {
	case len(failed) > 0:
		return fmt.Errorf("%w; profiling failed: %s", err, strings.Join(failed, "; "))
	case len(has) > 0:
		return fmt.Errorf("%w; the run has these profiles: %s", err, strings.Join(has, ", "))
	}
	return fmt.Errorf("%w: record profiles with prony run --profile %s, or with observe.profile "+
		"in the suite", err, f.kind)
}

func printProfile(w io.Writer, f profileFlags, shown, other *taken) error {
	if f.suffix() == ".pb.gz" {
		return shown.pprof.Write(w)
	}
	if f.suffix() == ".folded" {
		_, err := w.Write(profile.Folded(shown.pprof))
		return err
	}
	tree, title := profile.Flame(shown.pprof), shown.name
	var changes []profile.Change
	if other != nil {
		var err error
		if changes, err = profile.Diff(other.pprof, shown.pprof); err != nil {
			return err
		}
		if tree, err = profile.FlameDiff(other.pprof, shown.pprof); err != nil {
			return err
		}
		title += " against " + other.name
	}
	_, unit := profile.Total(shown.pprof)
	switch f.suffix() {
	case ".json":
		return format.JSON(w, struct {
			Name    string           `json:"name"`
			Tools   []string         `json:"tools"`
			Notes   []string         `json:"notes"`
			Unit    string           `json:"unit"`
			Top     []profile.Row    `json:"top"`
			Changes []profile.Change `json:"changes,omitempty"`
			Flame   *profile.Frame   `json:"flame"`
		}{title, shown.tools, profile.Notes(shown.pprof), unit, profile.Top(shown.pprof, f.top),
			first(changes, f.top), tree})
	case ".html":
		return pageOf(w, f, title, shown, other)
	}
	return printTop(w, f, shown, other, changes)
}

// pageOf writes the report's flame graph of a profile, or of its difference from another one.
func pageOf(w io.Writer, f profileFlags, title string, shown, other *taken) error {
	of := func(t *taken, name string) report.Profiled {
		p := report.Profiled{Target: name, Load: cmp.Or(f.load, "all loads"), Kind: f.kind,
			Process: f.process, DurationNs: int64(t.duration), Trials: t.trials}
		p.Fill(t.pprof)
		p.Tool = strings.Join(t.tools, " and ")
		return p
	}
	if other == nil {
		return report.Profile(w, title, of(shown, shown.row))
	}
	name := other.row
	if name == shown.row {
		name += " (" + f.diff + ")"
	}
	return report.Profile(w, title, of(shown, shown.row), of(other, name))
}

// about describes the data of a profile.
func (t *taken) about() []string {
	total, unit := profile.Total(t.pprof)
	line := fmt.Sprintf("%s in total, by %s", profile.Amount(float64(total), unit),
		strings.Join(t.tools, " and "))
	if n := profile.Samples(t.pprof); n >= 0 {
		line = fmt.Sprintf("%d samples, %s", n, line)
	}
	if t.duration > 0 {
		line += fmt.Sprintf(", in windows of %v", t.duration.Round(time.Millisecond))
	}
	return append([]string{line}, profile.Notes(t.pprof)...)
}

func printTop(w io.Writer, f profileFlags, shown, other *taken, changes []profile.Change) error {
	p := &format.Page{}
	p.Line("%s: %s", shown.name, strings.Join(shown.about(), "\n  "))
	if other == nil {
		_, unit := profile.Total(shown.pprof)
		p.Line("\n%10s %7s %10s %7s  function", "flat", "", "cum", "")
		for _, row := range profile.Top(shown.pprof, f.top) {
			p.Line("%10s %6.1f%% %10s %6.1f%%  %s", profile.Amount(float64(row.Flat), unit),
				100*row.FlatShare, profile.Amount(float64(row.Cum), unit), 100*row.CumShare,
				row.Name)
		}
	} else {
		p.Line("against %s: %s", other.name, strings.Join(other.about(), "\n  "))
		p.Line("\n%8s %7s %8s %8s %8s  function", "flat", "±", "now", "before", "cum")
		for _, c := range first(changes, f.top) {
			p.Line("%+7.1fp %7s %7.1f%% %7.1f%% %+7.1fp  %s", 100*c.Flat(), noise(c), 100*c.FlatB,
				100*c.FlatA, 100*c.Cum(), c.Name)
		}
		p.Line("\np: percentage points of the total. ±: two standard errors, from the numbers of " +
			"samples")
	}
	return p.To(w)
}

// noise formats two standard errors of a change, in percentage points.
func noise(c profile.Change) string {
	if c.Error < 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f", 200*c.Error)
}
