package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/files"
	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/units"
	"prony.example/internal/generator"
	"prony.example/record"
)

// Kinds describes the formats that Read accepts.
func Kinds() []string {
	return append([]string{
		"a folder of prony run (run.json and trials.ndjson), or its trials.ndjson",
		"prony load --json, and the report as JSON; java-http's results JSON",
		"Markdown that contains tables, JSON or the output of a load generator",
		"CSV or TSV with a line of column heads",
	}, generator.Formats()...)
}

// Open reads a file or a run's folder. Its error for other files names the known formats.
func Open(name string, cols *Columns) (*Document, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if info.IsDir() {
		return openRun(name)
	}
	if filepath.Base(name) == record.TrialsFile {
		return openRun(filepath.Dir(name))
	}
	text, err := files.String(name, files.Results)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return Read(name, text, cols)
}

// Read detects a file's format by its content; name is the file's.
func Read(name, text string, cols *Columns) (*Document, error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if strings.TrimSpace(text) == "" {
		return nil, fmt.Errorf("audit %s: the file is empty", name)
	}
	if strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("audit %s: this is not a text file; %s", name, understood())
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	if parts(text) > maxParts {
		// The requests in a tool's log are summed while it is read.
		if d, err := saved(name, base, text); d != nil || err != nil {
			return d, err
		}
		return nil, fmt.Errorf("audit %s: the file has more than %d values and is not the output "+
			"of a known load generator; audit the published results instead", name, maxParts)
	}
	if d, err := readOwn(name, text, cols); d != nil || err != nil {
		return d, err
	}
	if isMarkdown(name, text) {
		return markdown(name, text, cols)
	}
	if strings.HasPrefix(text, "suite,run,scenario,") {
		return nil, ownReport(name)
	}
	if d, err := saved(name, base, text); d != nil || err != nil {
		return d, err
	}
	foreign := unrecognized(name, text)
	if foreign != nil && foreign.Broken != nil {
		return nil, fmt.Errorf("audit %s: %w; %s", name, foreign.Broken, understood())
	}
	t, err := readSeparated(text, cols)
	if err != nil {
		return nil, fmt.Errorf("audit %s: %w", name, err)
	}
	if t != nil && len(t.Rows) > 0 {
		t.Title = base
		return &Document{File: name, Kind: "CSV or TSV", Tables: []*Table{t}}, nil
	}
	if foreign != nil && foreign.Known != "" {
		return nil, fmt.Errorf("audit %s: %s", name, foreign.Known)
	}
	if t != nil && len(t.Unread) > 0 {
		return nil, fmt.Errorf("audit %s: %w", name, none(t.Unread))
	}
	return nil, fmt.Errorf("audit %s: unrecognized format; %s", name, understood())
}

// unrecognized is why a text is not the output of a tool that can be imported; nil: it is one.
func unrecognized(name, text string) *generator.Unrecognized {
	var foreign *generator.Unrecognized
	_, _, err := generator.Import(name, text)
	errors.As(err, &foreign)
	return foreign
}

// markdown reads Markdown, whose results are in tables and blocks.
func markdown(name, text string, cols *Columns) (*Document, error) {
	d := readMarkdown(name, text, cols)
	if len(d.Tables) > 0 {
		return d, nil
	}
	foreign := unrecognized(name, text)
	switch {
	case foreign != nil && foreign.Known != "":
		return nil, fmt.Errorf("audit %s: %s", name, foreign.Known)
	case strings.Contains(text, "$ prony run"):
		return nil, ownReport(name)
	case len(d.Unread) > 0:
		return nil, fmt.Errorf("audit %s: %w", name, none(d.Unread))
	}
	return nil, fmt.Errorf("audit %s: this Markdown has no results that audit can read: "+
		"no table with a column of rates or latencies, no output of a load generator, no "+
		"JSON with metrics; name a column with --column NAME=MEANING", name)
}

// maxParts bounds the values of tables and JSON, which take some KiB each to read: published
// comparisons have some thousand.
const maxParts = 1 << 17

// parts estimates the number of values in a text by counting separators.
func parts(text string) (n int) {
	for _, mark := range []string{"\n", ",", "|", "\t", ";", "{", "["} {
		n += strings.Count(text, mark)
	}
	return n
}

// saved reads the output of a tool; nil for other texts.
func saved(name, base, text string) (*Document, error) {
	row, err := readSaved(base, text, 1)
	if bad := (*generator.Unreadable)(nil); errors.As(err, &bad) {
		return nil, fmt.Errorf("audit %s as %s: %w", name, bad.Format, bad.Err)
	}
	if row == nil || err != nil {
		return nil, err
	}
	return &Document{File: name, Kind: "output of " + row.Tool,
		Tables: []*Table{{Title: base, Line: 1, Rows: []*Row{row}}}}, nil
}

func ownReport(name string) error {
	return fmt.Errorf("audit %s: this is a report of Prony for people; audit the folder of its "+
		"run, or report.json", name)
}

func understood() string { return "known formats are:\n  " + strings.Join(Kinds(), "\n  ") }

// isMarkdown reports whether a text is Markdown, by its name or by fences, headings, or table
// rules.
func isMarkdown(name, text string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".markdown", ".mdx":
		return true
	case ".csv", ".tsv", ".json", ".jtl":
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") || heading.MatchString(line) ||
			strings.Contains(line, "|") && strings.Contains(line, "--") &&
				ruleLine.MatchString(line) {
			return true
		}
	}
	return false
}

// readOwn reads JSON: Prony's load, or results in objects; nil for other texts.
func readOwn(name, text string, cols *Columns) (*Document, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, nil
	}
	var load struct {
		Load    *record.Load   `json:"load"`
		Verdict record.Verdict `json:"verdict"`
	}
	current := record.Upgrade([]byte(text))
	if json.Unmarshal(current, &load) == nil && load.Load != nil && load.Load.WindowNs > 0 {
		if problem, line := jsontree.BadKey(current, &load); line > 0 {
			return nil, fmt.Errorf("audit %s: line %d: %s", name, line, problem)
		}
		t := &Table{Title: "load", Line: 1, Rows: []*Row{ownRow(load.Load, load.Verdict, 1)}}
		d := &Document{File: name, Kind: loadKind, Tables: []*Table{t}}
		if err := load.Load.Check(); err != nil && load.Verdict.Grade != record.Invalid {
			d.violated = append(d.violated, violation{1, load.Load.Name, err})
		}
		return d, nil
	}
	// A text that is not JSON may be a tool's, whose error is more exact.
	if tables, err := readObjects(text, 0, cols); err == nil && len(tables) > 0 {
		return &Document{File: name, Kind: "results as JSON", Tables: tables}, nil
	}
	return nil, nil
}

// ownRow returns a row for a load of Prony. With think time it has no connections, because they are
// no measure of the requests under way.
func ownRow(l *record.Load, v record.Verdict, line int) *Row {
	r := &Row{Name: l.Name, Line: line, Tool: "prony", Model: l.Model,
		Values: map[Quantity]Value{}, ownLoad: l, verdict: v}
	r.take(l, line, false)
	r.Values[Requests] = Value{V: float64(l.Done), Text: units.Whole(float64(l.Done)), Line: line}
	if l.Think != "" || l.Users != "" {
		delete(r.Values, Connections)
	}
	return r
}

// openRun reads a run's folder: each load of each trial is a row, each kind of load a table.
func openRun(dir string) (*Document, error) {
	head, all, lines, bad, err := record.ReadNumbered(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	records := record.Compared(all)
	d := &Document{File: filepath.Join(dir, record.TrialsFile), Kind: runKind}
	byLoad := map[string]*Table{}
	plan := head.Plan()
	for _, rec := range records {
		line := lines[rec.Trial]
		for _, v := range rec.Violations() {
			d.violated = append(d.violated, violation{line, rec.Trial, v})
		}
		if err := plan.Follows(rec); err != nil {
			d.violated = append(d.violated, violation{line, rec.Trial, err})
		}
		for j := range rec.Loads {
			l := &rec.Loads[j]
			row := ownRow(l, ofLoad(rec.Verdict, l.Name), line)
			row.Name, row.Of = rec.Trial+" "+l.Name, table.RowName(rec.Target)
			key := rec.Scenario + " " + l.Name
			if byLoad[key] == nil {
				// Repetitions are rows here; prony report has their statistics.
				byLoad[key] = &Table{Title: key, Line: line, spread: true}
				d.Tables = append(d.Tables, byLoad[key])
			}
			row.Key = key
			byLoad[key].Rows = append(byLoad[key].Rows, row)
		}
	}
	for _, b := range bad {
		d.Notes = append(d.Notes, b.Error())
	}
	if len(d.Tables) == 0 {
		return nil, fmt.Errorf("audit %s: no trial of the run has a load", dir)
	}
	return d, nil
}

// ofLoad returns the findings about one load, or about the whole trial.
func ofLoad(v record.Verdict, load string) record.Verdict {
	out := record.Verdict{Grade: record.Valid}
	for _, f := range v.Findings {
		if f.Load == "" || f.Load == load {
			out.Findings = append(out.Findings, f)
			if f.Grade == record.Invalid || out.Grade == record.Valid {
				out.Grade = f.Grade
			}
		}
	}
	return out
}
