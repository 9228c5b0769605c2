// Package table makes the one table that every report prints. It goes in two steps, both pure:
//
//  1. Analyze groups the records of a run by scenario, target and load and gives every metric a
//     centre, an interval, a ratio to the baseline or the reason why there is none (a Study);
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

// Options say what to compare with and what to put around the numbers.
type Options struct {
	Baseline   string  // a row, or a target that has one row; empty: no ratio columns
	Confidence float64 // of intervals and tiers; 0 means 0.95
	Effect     float64 // the difference that the closing note plans for; 0 means 0.03

	// Slices reads the raw slices of starts; nil: they are not there.
	Slices SlicesReader

	// Stalls is which response times are meant: KeepStalls, or empty for WithoutStalls.
	Stalls string

	Columns []string // beside the usual ones: names of Columns()

	Skipped []record.Skipped // services that could not take part
	Missing []record.Planned // trials of the plan that have no record
	// Unfinished: the run was to go on for a time and ended before it, without a plan of which
	// trials are Missing.
	Unfinished bool
	Notes      []string // on the run as a whole, a sentence each
	Damaged    []string // what of the records was left out, a sentence each
	Reproduce  string   // the command line; empty: that of the first record
	Report     string   // path of the report, printed last; empty: no such line
}

// Values of Options.Stalls: response times without arrivals near stalls of the machine, where these
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

// Sheet is a whole report: a head line, a table a scenario, and closing lines.
type Sheet struct {
	Answers   []string // how targets differ from the baseline, in words; none: it is a ranking
	Head      Head
	Tools     string // versions of what compiled or ran the targets; empty when none is known
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
	OneOfSeveral bool // the run has other scenarios, too
	Columns      []Column
	Rows         []Row
	Footnotes    []Footnote // number k is at k-1, numbered in reading order
	Notes        []Note     // under the footnotes
}

// Kinds of tables beside the comparison.
const (
	OverheadKind = "overhead" // what variants cost
	ToldKind     = "told"     // telemetry
	PartsKind    = "parts"    // what each process of a system used
	FloorKind    = "floor"    // A/A
)

// Row is a target, or a target that has no numbers and says why in Span.
type Row struct {
	Name  string
	Tier  int // from 1; 0 when not ranked
	Cells []Cell
	Span  Note // if there is one, it stands in place of all cells after the name
}

// Tally is how many trials ended in one way, and why, or never did.
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

// MissingGrade is that of a Tally of trials that were planned and have no record.
const MissingGrade = "missing"
