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
	"iter"

	"prony/internal/stats"
	"prony/internal/table"
)

// Comparison is everything that is said about B against A, in base units.
type Comparison struct {
	Title  string `json:"title"`  // e.g. "go-nethttp@base against go-nethttp"
	Paired bool   `json:"paired"` // within the blocks of one run
	// Published: of results that somebody published or a tool saved, which Prony did not measure.
	Published bool `json:"published,omitempty"`
	// Confidence of all intervals; the error rate of the outcomes is 1 - Confidence.
	Confidence float64 `json:"confidence"`
	Control    string  `json:"control,omitempty"` // a target that ratios are divided by, run by run
	Tests      int     `json:"tests"`             // rows with a P: what Holm corrects for

	// Fingerprint is that of the method both sides share; empty when they do not.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Unlike is what the sides' methods do not share though they should; all renderings carry it
	// as a banner. Told are differences that a reader should know and that forbid nothing.
	Unlike []table.Difference `json:"unlike"`
	Told   []table.Difference `json:"told"`

	Warnings  []string `json:"warnings"`  // sentences, the gravest first
	Missing   []string `json:"missing"`   // targets and scenarios that only one side has, in words
	Reproduce []string `json:"reproduce"` // what made the runs of both sides, A's first
	Pairs     []Pair   `json:"pairs"`     // one for each scenario and pair of targets

	first []string
}

// each goes through the rows of all pairs.
func (c *Comparison) each() iter.Seq2[*Pair, *Row] {
	return func(yield func(*Pair, *Row) bool) {
		for i := range c.Pairs {
			p := &c.Pairs[i]
			for j := range p.Rows {
				if !yield(p, &p.Rows[j]) {
					return
				}
			}
		}
	}
}

// Pair is two rows of tables that are compared, under one scenario.
type Pair struct {
	Scenario string  `json:"scenario"`
	A        Subject `json:"a"`
	B        Subject `json:"b"`
	Rows     []Row   `json:"rows"`
}

// Subject is one side of a pair: which target, of which run, built from what.
type Subject struct {
	Dir      string `json:"-"`   // the run's folder, as the caller named it
	Run      string `json:"run"` // its id
	Suite    string `json:"suite"`
	Time     string `json:"time,omitempty"`     // the run's first trial, RFC 3339
	Target   string `json:"target"`             // the row's name
	Commit   string `json:"commit,omitempty"`   // of the checkout; " (modified)" when not clean
	Artifact string `json:"artifact,omitempty"` // SHA-256 of what was built, the first 12 digits
	Prony    string `json:"prony,omitempty"`    // version
	Tool     string `json:"tool,omitempty"`     // what measured it, of published results
	Machine  string `json:"machine,omitempty"`  // "Xeon, 2 cores, Linux 6.18"
	Method   string `json:"method"`             // fingerprint
	Blocks   int    `json:"blocks"`             // with a usable trial
	table.Counts
	Excluded []string `json:"excluded"` // why trials are not in the numbers, a sentence each

	ran string // how the artifact was run
}

// Row is one metric of a pair.
type Row struct {
	Load   string `json:"load"`   // empty: of the whole trial
	Title  string `json:"-"`      // of the load, e.g. "peak (closed, 64 connections)"
	Model  string `json:"model"`  // "closed", "open", or empty
	Metric string `json:"metric"` // as package metric names it, e.g. "throughput", "p99"
	Label  string `json:"-"`      // for people: "CPU per request"
	Unit   string `json:"unit"`   // "1/s", "ns", "B", "J" or "1" (a share)
	Better string `json:"better"` // Higher or Lower
	A      Value  `json:"a"`
	B      Value  `json:"b"`

	// Ratio is B to A: paired within blocks, or between runs, or with the control divided out.
	// Nil where one side has no number, or where the values are exact and need no test.
	Ratio *stats.Ratio `json:"ratio"`
	// Control is the control's own ratio between the two runs, which Ratio is divided by; else nil.
	Control *stats.Ratio `json:"control,omitempty"`
	// Blocks are the ratios of single blocks, where trials are paired; else empty.
	Blocks []BlockRatio `json:"blocks,omitempty"`
	PHolm  float64      `json:"pHolm"` // Ratio.P corrected for the number of rows; NaN without test

	Outcome string `json:"outcome"` // one of the outcomes below
	Word    string `json:"word"`    // the outcome in words that fit the metric: B is "slower"
	// Detectable is the smallest relative difference that this many blocks would have told from
	// none in 8 of 10 cases (0.03 is 3 %), at the error rate that Holm leaves in the worst case;
	// NaN when unknown.
	Detectable float64 `json:"detectable"`

	at    func(confidence float64) stats.Ratio // Ratio at another one
	share float64                              // of the error that all rows are allowed
	asked bool                                 // the question was about it
}

// Value is what one side has of a metric: its level is the median of the trials with an interval.
type Value struct {
	stats.Summary
	// Mean is the geometric mean that Ratio is of; NaN where there is none. It may lie on the other
	// side of the other's than the medians do.
	Mean     float64       `json:"mean"`
	Withheld string        `json:"withheld,omitempty"` // why there is none; empty: there is
	Points   []table.Point `json:"points"`             // one a trial, with block and verdict
}

// BlockRatio is B to A in one block.
type BlockRatio struct {
	Block int     `json:"block"`
	Ratio float64 `json:"ratio"`
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
