// Package comparison compares two runs, or two targets of one run, metric by metric, and decides
// whether the second is a regression.
//
// It goes in two steps, both pure: Compare makes a Comparison of two Sides, which are the records
// of a run and a target's name, and Judge decides about some of its rows, which is a Gate. Text,
// Markdown, CSV and JSON print a Comparison; the page is made of it in internal/report.
//
// A comparison is always of B against A: a ratio of 1.05 says that B's value is 5 % above A's,
// whether that is good or bad; Outcome says which. Unlike methods are refused (UnlikeError) unless
// the caller insists, and then every rendering carries what differs.
//
// Non-goals: it reads no files, judges no trial (verdicts come in records, and what is INVALID is
// excluded as in package table), and has no statistics of its own beyond Holm's correction: levels
// are package table's, ratios package stats'.
package comparison

import (
	"prony/internal/stats"
	"prony/internal/table"
)

// Comparison is everything that is said about B against A, in base units.
type Comparison struct {
	Title      string  // e.g. "go-nethttp@base against go-nethttp"
	Paired     bool    // both sides come from one run, and are paired within its blocks
	Confidence float64 // of all intervals; the error rate of the outcomes is 1 - Confidence
	Control    string  // a target that ratios are divided by, run by run; empty: none
	Tests      int     // rows with a P: what Holm's procedure corrects for

	// Fingerprint is that of the method both sides share; empty when they do not.
	Fingerprint string
	// Unlike is what the sides' methods do not share though they should; all renderings carry it
	// as a banner. Told are differences that a reader should know and that forbid nothing.
	Unlike []table.Difference
	Told   []table.Difference

	Warnings  []string // sentences, the gravest first
	Pairs     []Pair   // one for each scenario and pair of targets
	Missing   []string // targets and scenarios that only one side has, in words
	Reproduce []string // the commands that made the runs of both sides, A's first
}

// Pair is two rows of tables that are compared, under one scenario.
type Pair struct {
	Scenario string
	A, B     Subject
	Rows     []Row
}

// Subject is one side of a pair: which target, of which run, built from what.
type Subject struct {
	Run      string // its id
	Dir      string // its folder, as the caller named it
	Suite    string
	Time     string // the run's first trial, RFC 3339
	Target   string // the row's name
	Commit   string // of the checkout; with " (modified)" when it was not clean
	Artifact string // SHA-256 of what was built, the first 12 digits
	Prony    string // version
	Machine  string // "Xeon, 2 cores, Linux 6.18"
	Blocks   int    // with a usable trial
	Counts   table.Counts
	Method   string   // fingerprint
	Excluded []string // why trials are not in the numbers, a sentence each
}

// Row is one metric of a pair.
type Row struct {
	Load   string // empty: of the whole trial
	Title  string // of the load, e.g. "peak (closed, 64 connections)"
	Model  string // "closed", "open", or empty
	Metric string // as package table names it, e.g. "throughput", "p99"
	Label  string // for people: "CPU per request"
	Unit   string // "1/s", "ns", "B" or "1" (a share)
	Better string // Higher or Lower
	A, B   Value

	// Ratio is B to A: paired within blocks, or between runs, or with the control divided out.
	// Nil where one side has no number, or where the values are exact and need no test.
	Ratio *stats.Ratio
	// Blocks are the ratios of single blocks, where trials are paired; else empty.
	Blocks []BlockRatio
	// Control is the control's own ratio between the two runs, which Ratio is divided by; else nil.
	Control *stats.Ratio
	PHolm   float64 // Ratio.P corrected for the number of rows; NaN without a test

	Outcome string // one of the outcomes below
	Word    string // the outcome in words that fit the metric, with B as subject: "slower"
	// Detectable is the smallest relative difference that this many blocks would have told from
	// none in 8 of 10 cases (0.03 is 3 %), at the error rate that Holm leaves in the worst case;
	// NaN when unknown.
	Detectable float64

	a, b []float64 // what Ratio was computed from
}

// Value is what one side has of a metric.
type Value struct {
	Summary  stats.Summary // level: median of the trials with its interval; NaN when withheld
	Points   []table.Point // one a trial, with block and verdict
	Withheld string        // why there is no number; empty when there is one
}

// BlockRatio is B to A in one block.
type BlockRatio struct {
	Block int
	Ratio float64
}

// Directions of metrics.
const (
	Higher = "higher" // is better
	Lower  = "lower"
)

// Outcomes of a row. Better and Worse are said where PHolm is at most 1 - Confidence.
const (
	Better = "better"
	Worse  = "worse"
	Alike  = "alike" // cannot be told apart: the same, or too few blocks; Detectable says which
	Equal  = "equal" // exact values, and the same
	Silent = "none"  // one side has no number, or there are fewer than two blocks
)

// Change is B to A as a relative difference: 0.05 is 5 % more. It is NaN where there is none.
func (r Row) Change() float64 {
	if r.Ratio != nil {
		return r.Ratio.Center - 1
	}
	return r.B.Summary.Center/r.A.Summary.Center - 1
}

// HasRatio tells whether there is a ratio with an interval.
func (r Row) HasRatio() bool { return r.Ratio != nil && r.Ratio.HasInterval() }
