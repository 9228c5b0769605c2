// Package table makes the table that every report prints. It has two steps, both pure:
//
//  1. Analyze groups the records of a run by scenario, target and load and gives every metric a
//     center, an interval, a ratio to the baseline or the reason why there is none (a Study);
//  2. Study.Sheet projects that to columns, rows and footnotes (a Sheet). Its cells, notes and
//     headings are values with a state or a kind; their methods make the texts, which renderers
//     call last. notetext.go has the texts of all notes.
//
// Text, Markdown and the HTML page print the Sheet; CSV and JSON print the Study, in base units.
// The unit of inference is the trial: no number here pools requests of different trials.
//
// Non-goals: it renders nothing, reads no files, and judges no trial (verdicts come in records).
package table

import (
	"cmp"

	"prony.example/record"
)

// Options select the baseline of a comparison and the notes around its numbers.
type Options struct {
	Baseline   string  // a row, or a target that has one row; empty: no ratio columns
	Confidence float64 // of intervals and tiers; 0 means 0.95
	Effect     float64 // the difference that the closing note plans for; 0 means 0.03

	// Slices reads the raw slices of starts; nil: not available.
	Slices SlicesReader

	// Stalls selects response times: KeepStalls, or empty for WithoutStalls.
	Stalls string

	Columns []string // in addition to the usual ones: names of Columns()

	Skipped []record.Skipped // services that could not take part
	Missing []record.Planned // trials of the plan that have no record
	// Unfinished marks a run with a time budget that ended before its time, so that no plan has its
	// Missing trials.
	Unfinished bool
	Notes      []string // on the whole run, a sentence each
	Damaged    []string // which parts of the records were left out, a sentence each
	Reproduce  string   // the command line; empty: that of the first record
	Report     string   // path of the report, printed last; empty: no such line
}

// Values of Options.Stalls: response times without arrivals near stalls of the machine, if these
// were recorded, or of all arrivals.
const (
	WithoutStalls = "without"
	KeepStalls    = "keep"
)

// Defaults of Options.
const (
	DefaultConfidence = 0.95
	DefaultEffect     = 0.03
)

func (o Options) withDefaults() Options {
	o.Confidence = cmp.Or(o.Confidence, DefaultConfidence)
	o.Effect = cmp.Or(o.Effect, DefaultEffect)
	return o
}

// Sheet is a complete report: a head line, a table per scenario, and closing lines.
type Sheet struct {
	Answers   []string // differences to the baseline in words; none: a ranking
	Head      Head
	Tools     string // versions of tools that compiled or ran the targets; empty if unknown
	Tables    []Table
	Numbers   Numbers
	Verdicts  []Tally
	Reproduce string
	Report    string
}

// Table is one scenario's comparison. Every row has one cell per column, unless it has a Span.
type Table struct {
	Kind         string // one of Kinds; empty: the comparison of a scenario
	Scenario     string
	OneOfSeveral bool // the run also has other scenarios
	Columns      []Column
	Rows         []Row
	Footnotes    []Footnote // number k is at k-1, numbered in reading order
	Notes        []Note     // under the footnotes
}

// Kinds of tables other than the comparison.
const (
	OverheadKind = "overhead" // cost of variants
	ToldKind     = "told"     // telemetry
	PartsKind    = "parts"    // resource usage of each process of a system
	FloorKind    = "floor"    // A/A
)

// Row is a target, or a target without numbers with the reason in Span.
type Row struct {
	Name  string
	Tier  int // from 1; 0 if not ranked
	Cells []Cell
	Span  Note // replaces all cells after the name, if set
}

// Tally counts the trials that ended in one way or have no record, with the reasons.
type Tally struct {
	Grade  string // VALID, SUSPECT, INVALID, failed or stopped
	Trials int
	Reason string // rules, with how many trials broke each; empty for VALID
}

// FailedGrade is the Grade of a Tally of trials that were not measured to their end.
const FailedGrade = "failed"

// StoppedGrade is the Grade of a Tally of trials that ended because their user stopped the run.
const StoppedGrade = "stopped"

// unmeasured reports whether trials of a grade were not measured to their end.
func unmeasured(grade string) bool { return grade == FailedGrade || grade == StoppedGrade }

// UnknownGrade is the grade of a number whose interval is unknown.
const UnknownGrade = "not known"

// MissingGrade is the Grade of a Tally of trials that were planned and have no record.
const MissingGrade = "missing"
