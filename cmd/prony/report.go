package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"prony/internal/cli"
	"prony/internal/file"
	"prony/internal/print"
	"prony/internal/report"
	"prony/internal/result"
	"prony/internal/shell"
	"prony/internal/table"
	"prony/internal/unit"
)

type reportFlags struct {
	format   string
	table    string // of Parquet
	columns  string // of Markdown: all or essential
	fold     bool   // Markdown's footnotes
	update   string
	section  string
	baseline string
	out      string
	save     bool // the files in the run's folder, too
	why      bool // after the text: causes, and what follows from them

	parquet func(w io.Writer, rows io.Reader) error // stores a table of package flat
}

const whyHelp = "of text: say why numbers are doubted, each cause once, and what to do"

func (a *app) reportCmd() *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use: "report RUN", Short: "Make the report of a run again", Args: cli.Arguments(1, 1),
		Long: `Report prints what the records of a run say: RUN is its folder. A report is a
function of the records alone, so it can be made again at any time, on any machine.

With --update it rewrites the part of a Markdown file between <!-- prony:begin NAME --> and <!--
prony:end NAME -->, where NAME is the suite's unless --section says otherwise. For a README, keep
the table narrow with --columns essential and its footnotes closed with --fold.

For a spreadsheet there is csv: a row a target, load and metric. For a notebook or a database there
is parquet, one table a file: trials has a row a trial and load with all that its record says,
summary the rows of csv, series a row an interval.`,
		Example: `  prony report results/2026-11-21T03-40-11Z
  prony report results/2026-11-21T03-40-11Z --why
  prony report results/2026-11-21T03-40-11Z -o report.html
  prony report results/2026-11-21T03-40-11Z --update README.md --columns essential --fold
  prony report results/2026-11-21T03-40-11Z -o series.parquet --table series`,
		RunE: func(c *cobra.Command, args []string) error {
			f.parquet = func(w io.Writer, rows io.Reader) error {
				return a.parquet(c.Context(), w, rows)
			}
			if f.why && cmp.Or(f.format, "text") != "text" {
				return cli.Usagef("--why is of text: leave out --format %s", f.format)
			}
			_, err := a.report(args[0], *f)
			return err
		},
	}
	fs := c.Flags()
	f.table, f.columns = report.FlatTables[0], "all"
	cli.OneOf(c, &f.table, "table", "of parquet", report.FlatTables...)
	cli.OneOf(c, &f.columns, "columns", "of markdown", "all", "essential")
	fs.BoolVar(&f.why, "why", false, whyHelp)
	fs.BoolVar(&f.fold, "fold", false, "of markdown: footnotes are opened by a click")
	fs.StringVar(&f.update, "update", "", "Markdown file whose section is to be rewritten")
	fs.StringVar(&f.section, "section", "", "name of that section (default: the suite's name)")
	fs.StringVar(&f.baseline, "baseline", "", "target that ratios refer to (default: the run's)")
	cli.Output(c, &f.format, &f.out, reportForms.Names()...)
	return c
}

// reported is what a report was made of.
type reported struct {
	head  result.Run
	study table.Study
	sheet table.Sheet
	bad   int   // trials that are INVALID or failed, or have no record
	lost  error // nothing that was recorded can be used
}

func (a *app) report(dir string, f reportFlags) (*reported, error) {
	r, err := a.study(dir, f)
	if err != nil {
		return nil, err
	}
	if f.save {
		if err := r.save(dir); err != nil {
			return nil, err
		}
	}
	if f.update != "" {
		return r, r.update(f)
	}
	if f.format == "parquet" && f.out == "" && isTerminal(a.stdout) {
		return nil, cli.Usagef("a terminal cannot show parquet: add -o FILE")
	}
	if err := a.write(f.out, func(w io.Writer) error { return r.print(w, f, dir) }); err != nil {
		return r, err
	}
	return r, r.lost
}

func (a *app) study(dir string, f reportFlags) (*reported, error) {
	head, records, bad, err := result.Read(dir)
	if err != nil {
		return nil, err
	}
	a.tellBad(bad)
	o := table.Options{Baseline: head.Baseline, Columns: head.Columns, Reproduce: reproduce(head)}
	o.Baseline = cmp.Or(f.baseline, o.Baseline)
	if f.baseline != "" && !slices.ContainsFunc(records, func(r *result.Record) bool {
		return table.RowName(r.Target) == f.baseline
	}) {
		return nil, cli.Usagef("--baseline %s: the run has no such row", f.baseline)
	}
	if exists(dir, "report.html") || f.save {
		o.Report = filepath.Join(dir, "report.html")
	}
	for _, s := range head.Skipped {
		o.Skipped = append(o.Skipped, table.Skipped{Name: s.Target, Reason: s.Reason})
	}
	o.Missing = head.Missing(records)
	if s, err := result.ReadSchedule(dir); err != nil || s != nil {
		// Which blocks follow the first one was decided while it ran.
		o.Missing = slices.DeleteFunc(o.Missing, func(p result.Planned) bool { return p.Block > 1 })
	}
	for _, again := range head.Resumed {
		o.Notes = append(o.Notes, fmt.Sprintf("The run was resumed on %s, when %s had a record: "+
			"what is compared within the block that was ended there is further apart in time.",
			again.Time.UTC().Format("2006-01-02 15:04 UTC"), unit.Plural(again.Trials, "trial")))
	}
	for _, b := range bad {
		o.Damaged = append(o.Damaged, fmt.Sprintf("line %d: %v", b.Line, b.Err))
	}
	o.Notes = append(o.Notes, head.Notes...)
	if len(head.Labels) > 0 {
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(head.Labels)) {
			pairs = append(pairs, name+"="+head.Labels[name])
		}
		o.Notes = append(o.Notes, "Labels: "+strings.Join(pairs, ", ")+".")
	}
	r := &reported{head: head, bad: len(o.Missing)}
	for _, rec := range records {
		if rec.Role == "" && rec.Verdict.Grade == result.Invalid {
			r.bad++
		}
	}
	if lost := len(bad) + table.Damaged(records); lost > 0 && lost == len(bad)+len(records) {
		r.lost = fmt.Errorf("report %s: every one of its %s is damaged or not its own; bring %s "+
			"back from where it was copied", dir, unit.Plural(lost, "record"), result.TrialsFile)
	}
	r.study = table.Analyze(result.Values(records), o)
	r.sheet = r.study.Sheet()
	return r, nil
}

// reproduce is the command that repeats a run: what was typed, with suite, seed and blocks spelt
// out.
func reproduce(head result.Run) string {
	if head.File == "" { // all of it is on the command line
		return shell.Join(head.Command)
	}
	args := []string{"prony", "run", head.File}
	skip := false
	for _, a := range head.Command[min(2, len(head.Command)):] {
		name, _, joined := strings.Cut(a, "=")
		switch {
		case skip:
			skip = false
		case name == "--seed" || name == "--blocks" || name == "--out" || name == "--root" ||
			name == "--for":
			skip = !joined
		case strings.HasPrefix(a, "-") || strings.HasPrefix(args[len(args)-1], "--"):
			args = append(args, a)
		}
	}
	length := fmt.Sprintf("--blocks %d", head.Blocks)
	if head.ForNs > 0 {
		length = fmt.Sprintf("--for %v", time.Duration(head.ForNs))
	}
	return fmt.Sprintf("%s --seed %d %s", shell.Join(shell.Hushed(args)), head.Seed, length)
}

func (r *reported) print(w io.Writer, f reportFlags, dir string) error {
	return reportForms.Write(w, cmp.Or(f.format, "text"), printing{r, f, dir})
}

// printing is what is reported, how, and the run's folder.
type printing struct {
	*reported
	reportFlags
	dir string
}

// reportForms are those of a run; all but the last are saved beside it.
var reportForms = print.Forms[printing]{
	{Format: "text", Write: func(w io.Writer, p printing) error {
		if err := report.Text(w, p.sheet, textOptions(w)); err != nil {
			return err
		}
		if p.why {
			fmt.Fprintln(w)
			if err := report.Why(w, p.study.Records); err != nil {
				return err
			}
		}
		return printDisagreements(w, disagreements(p.study.Records))
	}},
	{Format: "markdown", Write: func(w io.Writer, p printing) error {
		return p.markdown(w, p.reportFlags)
	}},
	{Format: "csv", Write: func(w io.Writer, p printing) error { return report.CSV(w, p.study) }},
	{Format: "json", Write: func(w io.Writer, p printing) error {
		endpoints := map[string]string{}
		for scene, requests := range p.head.Requests {
			endpoints[scene] = strings.Join(requests, ", ")
		}
		return report.JSON(w, p.study, report.JSONOptions{Endpoints: endpoints})
	}},
	{Format: "html", Write: func(w io.Writer, p printing) error {
		all := slices.Concat(p.study.Records, p.study.Beside)
		return report.HTML(w, p.study, report.HTMLOptions{Samples: readSamples(p.dir),
			Host: p.head.Host, Profiles: report.ReadProfiles(os.DirFS(p.dir), all)})
	}},
	{Format: "parquet", Write: func(w io.Writer, p printing) error {
		rows, to := io.Pipe()
		go func() {
			to.CloseWithError(report.Flat(to, p.study, cmp.Or(p.table, report.FlatTables[0])))
		}()
		defer rows.Close()
		return p.parquet(w, rows)
	}},
}

// methodPage is where a README beside docs/ finds how numbers are made.
const methodPage = "docs/method.md"

func (r *reported) markdown(w io.Writer, f reportFlags) error {
	page := methodPage
	if f.save {
		page = "" // from the run's folder it cannot be reached
	}
	return report.Markdown(w, r.sheet, report.MarkdownOptions{
		Essential: f.columns == "essential", Fold: f.fold,
		Method: report.MethodLine(r.study, page),
	})
}

func isTerminal(w io.Writer) bool {
	f, ok := print.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// textOptions fit a text to the terminal, if it goes to one.
func textOptions(w io.Writer) report.TextOptions {
	f, ok := print.Raw(w).(*os.File)
	if !ok || !isTerminal(w) {
		return report.TextOptions{}
	}
	o := report.TextOptions{Color: os.Getenv("NO_COLOR") == ""}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = width
	}
	return o
}

// save writes the reports into the run's folder.
func (r *reported) save(dir string) error {
	saved := reportForms.Names()
	for _, format := range saved[:len(saved)-1] {
		name := "report." + print.Ending(format)
		var b bytes.Buffer
		if err := r.print(&b, reportFlags{format: format, save: true}, dir); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := file.Put(filepath.Join(dir, name), b.Bytes()); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

func (r *reported) update(f reportFlags) error {
	return updatePage(f.update, cmp.Or(f.section, r.head.Suite), func([]byte) ([]byte, error) {
		var b bytes.Buffer
		err := r.markdown(&b, f)
		return b.Bytes(), err
	})
}

// updatePage rewrites a section of a Markdown file by what the file was.
func updatePage(page, section string, anew func(old []byte) ([]byte, error)) error {
	old, err := file.Read(page, file.Page)
	if err != nil {
		return fmt.Errorf("update %s: %w", page, err)
	}
	text, err := anew(old)
	if err != nil {
		return err
	}
	if text, err = report.Update(old, section, text); err != nil {
		return fmt.Errorf("update %s: %w", page, err)
	}
	if err := file.Put(page, text); err != nil {
		return fmt.Errorf("update %s: %w; it is as it was", page, err)
	}
	return nil
}

// readSamples reads what the probe saw, for the page's plots. What is missing is not plotted.
func readSamples(dir string) (out []report.Samples) {
	files, err := filepath.Glob(filepath.Join(dir, "series", "*.json"))
	if err != nil {
		return nil
	}
	for _, name := range files {
		data, err := file.Read(name, file.Page)
		var s result.Samples
		if err != nil || json.Unmarshal(data, &s) != nil || s.Load == "" {
			continue
		}
		out = append(out, report.Samples{
			Trial: s.Trial, Load: s.Load,
			TimeNs: s.TimeNs, CPUCores: s.CPUCores, RSSBytes: s.RSSBytes,
		})
	}
	return out
}
