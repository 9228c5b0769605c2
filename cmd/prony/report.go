package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/base/format"
	"prony.example/internal/base/units"
	"prony.example/internal/report"
	"prony.example/internal/report/runs"
	"prony.example/record"
	"prony.example/record/metric"
)

type reportFlags struct {
	format   string
	table    string // of Parquet
	complete bool   // with text: all notes
	columns  string // of Markdown: all, essential, or keys
	fold     bool   // Markdown's footnotes
	update   string
	section  string
	baseline string
	out      string
	save     bool   // also write the files in the run's folder
	why      bool   // after the text: causes, and what follows from them
	stalls   string // as in table.Options
	answered bool   // with text: the result was already printed, with more metrics

	parquet func(w io.Writer, rows io.Reader) error // stores a table of package flat
}

const whyHelp = "with text: also print notes on the method, and each cause of doubts once, with " +
	"what to do"

func (a *app) reportCmd() *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use: "report RUN", Short: "Print or write the report of a run", Args: cli.Arguments(1, 1),
		Long: `Report prints the results of a run. RUN is its folder, the folder's name below
results/ (in a project: .prony/run/), or "latest", the newest run there. A report depends on the
records alone, so you can make it again at any time, on any machine.

With --update, report rewrites the part of a Markdown file between <!-- prony:begin NAME --> and
<!-- prony:end NAME -->. NAME is the suite's name, or the one of --section. For a README, use
--columns essential for a narrow table and --fold to close its footnotes.

Format csv is for a spreadsheet: a row for each target, load and metric. Format parquet is for a
notebook or a database, with one table in a file. Table trials has a row for each trial and load
with all values of its record, summary has the rows of csv, and series has a row for each interval.
Format svg is a picture of the ratios, with colors for light and for dark pages.`,
		Example: `  prony report latest
  prony report results/2026-11-21T03-40-11Z --why
  prony report results/2026-11-21T03-40-11Z -o report.html
  prony report results/2026-11-21T03-40-11Z -o report.svg
  prony report results/2026-11-21T03-40-11Z --update README.md --columns essential --fold
  prony report results/2026-11-21T03-40-11Z -o series.parquet --table series`,
		RunE: func(c *cobra.Command, args []string) error {
			f.parquet = func(w io.Writer, rows io.Reader) error {
				return a.parquet(c.Context(), w, rows)
			}
			isPage := f.update != ""
			const alone = "needs a report of its own: leave out --update"
			err := refuse(c.Flags().Changed,
				noEffect{isPage, "output why", alone},
				noEffect{isPage && f.format != "markdown", "format", alone},
				noEffect{f.format != "text", "why", "needs format text: omit --format " + f.format},
				noEffect{!isPage, "section", "needs --update with the Markdown file"},
				noEffect{!isPage && f.format != "markdown", "columns fold",
					"needs --format markdown or --update"},
				noEffect{f.format != "parquet", "table", "needs --format parquet"})
			if err != nil {
				return err
			}
			dir, err := a.runFolder(args[0])
			if err == nil {
				_, err = a.report(dir, *f)
			}
			return err
		},
	}
	fs := c.Flags()
	f.table, f.columns = report.FlatTables[0], allColumns
	cli.OneOf(c, &f.table, "table", "table of parquet", report.FlatTables...)
	fs.StringVar(&f.columns, "columns", f.columns, "columns of markdown: all, essential, or "+
		"their keys, such as peak/throughput,cost/cpu")
	_ = c.RegisterFlagCompletionFunc("columns", cobra.FixedCompletions( // the flag is there
		[]string{allColumns, essentialColumns}, cobra.ShellCompDirectiveNoFileComp))
	fs.BoolVar(&f.why, "why", false, whyHelp)
	fs.BoolVar(&f.fold, "fold", false, "fold the footnotes of markdown, so a click opens them")
	fs.StringVar(&f.update, "update", "", "Markdown file in which to rewrite a section")
	fs.StringVar(&f.section, "section", "", "name of that section (default: the suite's name)")
	fs.StringVar(&f.baseline, "baseline", "", "target that ratios refer to (default: the run's)")
	stallsFlag(c, &f.stalls)
	cli.Output(c, &f.format, &f.out, reportForms.Names()...)
	return c
}

// stallsFlag declares --stalls.
func stallsFlag(c *cobra.Command, to *string) {
	*to = table.WithoutStalls
	cli.OneOf(c, to, "stalls", "response times near stalls of the machine (docs/stalls.md)",
		table.WithoutStalls, table.KeepStalls)
}

// reported is the data of a report.
type reported struct {
	run   *runs.Run
	study table.Study
	sheet table.Sheet
	bad   int   // trials that failed, are INVALID for the comparison, or have no record
	lost  error // no record can be used
}

func (a *app) report(dir string, f reportFlags) (*reported, error) {
	r, err := a.study(dir, f)
	if err != nil {
		return nil, err
	}
	if _, err := r.columnKeys(f); err != nil {
		return nil, err
	}
	return r, a.publish(r, dir, f)
}

// publish saves and prints a report, according to the flags.
func (a *app) publish(r *reported, dir string, f reportFlags) error {
	if f.save {
		if err := r.save(dir); err != nil {
			return err
		}
	}
	if f.update != "" {
		return r.update(f)
	}
	if f.format == "parquet" && f.out == "" && isTerminal(a.stdout) {
		return cli.Usagef("a terminal cannot show parquet: write it to a file with -o FILE")
	}
	if err := a.write(f.out, func(w io.Writer) error { return r.print(w, f) }); err != nil {
		return err
	}
	return r.lost
}

func (a *app) study(dir string, f reportFlags) (*reported, error) {
	run, err := runs.Read(dir)
	if err != nil {
		return nil, err
	}
	o := run.Options()
	o.Baseline, o.Stalls = cmp.Or(f.baseline, o.Baseline), f.stalls
	for key := range strings.SplitSeq(f.columns, ",") { // the suite may not have requested them
		_, name, _ := strings.Cut(key, "/")
		if slices.Contains(metric.ColumnNames(), name) && !slices.Contains(o.Columns, name) {
			o.Columns = append(slices.Clone(o.Columns), name)
		}
	}
	var rows []string
	for _, r := range run.Records {
		rows = table.AddNew(rows, table.RowName(r.Target))
	}
	if f.baseline != "" && !slices.Contains(rows, f.baseline) &&
		!slices.ContainsFunc(run.Records, func(r *record.Record) bool {
			return r.Target.Name == f.baseline
		}) {
		return nil, cli.Usagef("--baseline %s: the run has no row with this name; the rows are %s",
			f.baseline, strings.Join(rows, ", "))
	}
	if exists(dir, "report.html") || f.save {
		o.Report = filepath.Join(dir, "report.html")
	}
	return a.reported(run, run.Study(o)), nil
}

// reported returns the data of a report of a run that was read and analyzed.
func (a *app) reported(run *runs.Run, study table.Study) *reported {
	a.tellBad(run.Bad)
	records, bad := run.Records, run.Bad
	r := &reported{run: run, study: study, sheet: study.Sheet(), bad: len(run.Missing)}
	r.sheet.Answers = run.AnswerTexts(&study)
	for _, rec := range records {
		if grade := table.AnswerGrade(rec); rec.Role == "" && grade != record.Valid &&
			grade != record.Suspect {
			r.bad++
		}
	}
	if lost := len(bad) + table.Damaged(records); lost > 0 && lost == len(bad)+len(records) {
		r.lost = fmt.Errorf("report %s: all of its %s are damaged or belong to another run; copy "+
			"%s again from its source", run.Dir, units.Plural(lost, "record"),
			record.TrialsFile)
	}
	return r
}

func (r *reported) print(w io.Writer, f reportFlags) error {
	return reportForms.Write(w, cmp.Or(f.format, "text"), printing{r, f})
}

// printing is a report and its settings.
type printing struct {
	*reported
	reportFlags
}

// reportForms are the formats of a run's report; all but the last two are saved in its folder.
var reportForms = format.Forms[printing]{
	{Format: "text", Write: func(w io.Writer, p printing) error {
		sheet := p.sheet
		if p.answered {
			sheet = sheet.Answered()
		}
		options := textOptions(w)
		if !p.why && !p.complete {
			options.Brief = "prony report " + cmdlog.Quote(p.run.Dir) + " --why"
		}
		if err := report.Text(w, sheet, options); err != nil {
			return err
		}
		if p.why {
			fmt.Fprintln(w)
			return report.Why(w, p.study.Records)
		}
		return nil
	}},
	{Format: "markdown", Write: func(w io.Writer, p printing) error {
		return p.markdown(w, p.reportFlags)
	}},
	{Format: "csv", Write: func(w io.Writer, p printing) error { return report.CSV(w, p.study) }},
	{Format: "json", Write: func(w io.Writer, p printing) error {
		return report.JSON(w, p.study, report.JSONOptions{Answers: p.sheet.Answers,
			Endpoints: p.run.Endpoints()})
	}},
	{Format: "html", Write: func(w io.Writer, p printing) error {
		return report.HTML(w, p.study, report.OfRun(p.run, p.study))
	}},
	{Format: "svg", Write: func(w io.Writer, p printing) error { return report.SVG(w, p.sheet) }},
	{Format: "parquet", Write: func(w io.Writer, p printing) error {
		rows, to := io.Pipe()
		go func() {
			to.CloseWithError(report.Flat(to, p.study, cmp.Or(p.table, report.FlatTables[0])))
		}()
		defer rows.Close()
		return p.parquet(format.Raw(w), rows) // binary
	}},
}

// Values of --columns, beside keys.
const allColumns, essentialColumns = "all", "essential"

// methodPage is the page about computation, from a README beside docs/.
const methodPage = "docs/method.md"

func (r *reported) markdown(w io.Writer, f reportFlags) error {
	page := methodPage
	if f.save {
		page = "" // the link does not work from the run's folder
	}
	o := report.MarkdownOptions{Essential: f.columns == essentialColumns, Fold: f.fold,
		Method: report.MethodLine(r.study, page)}
	var err error
	if o.Columns, err = r.columnKeys(f); err != nil {
		return err
	}
	return report.Markdown(w, r.sheet, o)
}

// columnKeys returns the keys of --columns; none: the value is a name.
func (r *reported) columnKeys(f reportFlags) ([]string, error) {
	if slices.Contains([]string{"", allColumns, essentialColumns}, f.columns) {
		return nil, nil
	}
	chosen, keys := strings.Split(f.columns, ","), report.ColumnKeys(r.sheet)
	for _, key := range chosen {
		if !slices.Contains(keys, key) {
			return nil, cli.Usagef("--columns %q does not exist; choose %s, %s, or for this run "+
				"%s", key,
				allColumns, essentialColumns, strings.Join(keys, ", "))
		}
	}
	return chosen, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := format.Raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// isScreen reports whether a writer is a terminal with control sequences.
func isScreen(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// textOptions returns options that fit the terminal, if the output is one.
func textOptions(w io.Writer) report.TextOptions {
	f, ok := format.Raw(w).(*os.File)
	if !ok || !isTerminal(w) {
		return report.TextOptions{}
	}
	o := report.TextOptions{Color: os.Getenv("NO_COLOR") == "" && isScreen(w)}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width = width
	}
	return o
}

// save writes the reports into the run's folder.
func (r *reported) save(dir string) error {
	saved := reportForms.Names()
	for _, formatName := range saved[:len(saved)-2] {
		name := "report." + format.Ending(formatName)
		var b bytes.Buffer
		if err := r.print(&b, reportFlags{format: formatName, save: true,
			complete: true}); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := files.Put(filepath.Join(dir, name), b.Bytes()); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}

func (r *reported) update(f reportFlags) error {
	return updatePage(f.update, cmp.Or(f.section, r.run.Head.Suite), func([]byte) ([]byte, error) {
		var b bytes.Buffer
		err := r.markdown(&b, f)
		return b.Bytes(), err
	})
}

// updatePage replaces a section of a Markdown file. replace receives the file's content.
func updatePage(page, section string, replace func(old []byte) ([]byte, error)) error {
	old, err := files.Read(page, files.Page)
	if err != nil {
		return fmt.Errorf("update %s: %w", page, err)
	}
	text, err := replace(old)
	if err != nil {
		return err
	}
	if text, err = report.Update(old, section, text); err != nil {
		return fmt.Errorf("update %s: %w", page, err)
	}
	if err := files.Put(page, text); err != nil {
		return fmt.Errorf("update %s: %w; the file was not changed", page, err)
	}
	return nil
}
