// Package table makes the one table that every report prints. It goes in two steps, both pure:
//
//  1. Analyze groups the records of a run by scenario, target and load and gives every metric a
//     centre, an interval, a ratio to the baseline or the reason why there is none (a Study);
//  2. Study.Sheet projects that to columns and rows of printed text with footnotes (a Sheet).
//
// Text, Markdown and the HTML page print the Sheet; CSV and JSON print the Study, in base units.
// The unit of inference is the trial: no number here pools requests of different trials.
//
// Non-goals: it renders nothing, reads no files, and judges no trial (verdicts come in records).
package table

import (
	"cmp"

	"prony.example/internal/base/format"
	"prony.example/record"
)

// Options say what to compare with and what to put around the numbers.
type Options struct {
	Baseline   string  // a row's name; empty: no ratio columns
	Confidence float64 // of intervals and tiers; 0 means 0.95
	Effect     float64 // the difference that the closing note plans for; 0 means 0.03

	Columns []string // beside the usual ones: names of Columns()

	Skipped   []record.Skipped // services that could not take part
	Missing   []record.Planned // trials of the plan that have no record
	Notes     []string         // on the run as a whole, a sentence each
	Damaged   []string         // what of the records was left out, a sentence each
	Reproduce string           // the command line; empty: that of the first record
	Report    string           // path of the report, printed last; empty: no such line
}

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

// Sheet is a whole report in words: a head line, a table a scenario, and closing lines.
type Sheet struct {
	Head      string
	Tools     string // versions of what compiled or ran the targets; empty when none is known
	Tables    []Table
	Numbers   Numbers
	Verdicts  []Tally
	Reproduce string
	Report    string
}

// Table is one scenario's comparison. Every row has one cell per column, unless it has a Span.
type Table struct {
	Kind      string // one of Kinds; empty: the comparison of a scenario
	Scenario  string
	Title     string // empty when the run has one scenario only
	Columns   []Column
	Rows      []Row
	Footnotes []string // number k is at k-1, numbered in reading order
	Notes     []string // sentences under the footnotes
}

// Kinds of tables beside the comparison.
const (
	OverheadKind = "overhead" // what variants cost
	ToldKind     = "told"     // telemetry
	PartsKind    = "parts"    // what each process of a system used
	FloorKind    = "floor"    // A/A
)

// Column is a heading, with what a renderer needs to set it.
type Column struct {
	Key     string // stable name for programs: "peak/throughput"
	Group   string // heading over several columns, e.g. "peak (closed, 64 connections)"
	Short   string // the same in a word, for renderers without spanning headings
	Heading string
	Unit    string // base unit of Cell.Value: "1/s", "ns", "B", "J", "1"; empty for text
	Align   format.Align
	Weight  int // 0 stays; a narrow terminal leaves out the highest first
}

// Weights of columns.
const (
	Essential = 0
	Detail    = 1
	Extra     = 2
)

// Row is a target, or a target that has no numbers and says why in Span.
type Row struct {
	Name  string
	Tier  int // from 1; 0 when not ranked
	Cells []Cell
	Span  string // when set, it stands in place of all cells after the name
}

// Tally is how many trials ended in one way, and why, or never did.
type Tally struct {
	Grade  string // VALID, SUSPECT, INVALID or failed
	Trials int
	Reason string // rules, with how many trials broke each; empty for VALID
}

// FailedGrade is the Grade of a Tally of trials that were not measured to their end.
const FailedGrade = "failed"

// MissingGrade is that of a Tally of trials that were planned and have no record.
const MissingGrade = "missing"
