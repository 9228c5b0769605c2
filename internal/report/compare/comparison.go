// Package compare compares two runs, or two targets of one run, metric by metric, and decides
// whether the second is a regression.
//
// It goes in two steps, both pure: Compare makes a Comparison of two Sides, which are the records
// of a run and a target's name, and Judge decides about some of its rows, which is a Gate. Text,
// Markdown, CSV and JSON print a Comparison; the page is made of it in internal/report.
//
// A comparison is always of B with A: a ratio of 1.05 means that B's value is 5 % above A's, and
// Outcome whether that is better or worse. Compare refuses different methods (UnlikeError) unless
// the caller insists; then every rendering has the differences.
//
// Non-goals: it reads no files, judges no trial (verdicts come in records, and INVALID loads are
// excluded as in package table), and has no statistics of its own except Holm's correction: levels
// come from package table, ratios from package stats.
package compare

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// Comparison has all results of B compared with A, in base units.
type Comparison struct {
	Title  string `json:"title"`  // for example "go-nethttp@base against go-nethttp"
	Paired bool   `json:"paired"` // whether trials are paired within the blocks of one run
	// Published marks results that somebody published or a tool saved, which Prony did not measure.
	Published bool `json:"published,omitempty"`
	// Confidence is the confidence level of all intervals; the error rate of the outcomes is 1 -
	// Confidence.
	Confidence float64 `json:"confidence"`
	Control    string  `json:"control,omitempty"` // a target that ratios are divided by, run by run
	Tests      int     `json:"tests"`             // rows with a P value, for Holm's correction

	// ConfigHash is the fingerprint of both sides' method; empty if the methods differ.
	ConfigHash string `json:"configHash,omitempty"`
	// Mismatches are differences of the sides' methods that make them incomparable; all renderings
	// show them as a banner. Differences are other differences that a reader should know.
	Mismatches  []table.Difference `json:"mismatches"`
	Differences []table.Difference `json:"differences"`

	// Findings are on all starts of the run together, for example a control that differs from
	// itself.
	Findings []record.Finding `json:"findings,omitempty"`

	Warnings  []string `json:"warnings"`  // sentences, the most serious first
	Missing   []string `json:"missing"`   // targets and scenarios of only one side, in words
	Reproduce []string `json:"reproduce"` // commands that made the runs of both sides, A's first
	Pairs     []Pair   `json:"pairs"`     // one for each scenario and pair of targets

	first []string
}

// each iterates over the rows of all pairs.
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

// Pair is a comparison of two targets under one scenario.
type Pair struct {
	Scenario string  `json:"scenario"`
	A        Subject `json:"a"`
	B        Subject `json:"b"`
	// Starts are the starts in which both targets ran side by side; nil: none.
	Starts *table.Starts `json:"starts,omitempty"`
	Rows   []Row         `json:"rows"`
}

// Subject describes one side of a pair: its target, run and artifact.
type Subject struct {
	Dir        string `json:"-"`   // the run's folder, as the caller named it
	Run        string `json:"run"` // its id
	Suite      string `json:"suite"`
	Time       string `json:"time,omitempty"`     // the run's first trial, RFC 3339
	Target     string `json:"target"`             // the row's name
	Commit     string `json:"commit,omitempty"`   // of the checkout; " (modified)" unless clean
	Artifact   string `json:"artifact,omitempty"` // SHA-256 of the artifact, the first 12 digits
	Prony      string `json:"prony,omitempty"`    // version
	Tool       string `json:"tool,omitempty"`     // the tool that measured published results
	Machine    string `json:"machine,omitempty"`  // "Xeon, 2 cores, Linux 6.18"
	ConfigHash string `json:"configHash"`         // fingerprint
	Blocks     int    `json:"blocks"`             // blocks, or starts, with a usable trial
	table.Counts
	Excluded []string `json:"excluded"` // why trials are not in the numbers, a sentence each

	ran       string        // how the artifact was run
	repeat    string        // "block" or "start"
	blockTime time.Duration // of a block or start, with everything in it
}

// Repeat returns the unit of Blocks: "block", or "start" if targets ran side by side.
func (x Subject) Repeat() string { return cmp.Or(x.repeat, (*table.Starts)(nil).Repeat()) }

// Row is one metric of a pair.
type Row struct {
	Load   string `json:"load"`   // empty: of the whole trial
	Title  string `json:"-"`      // of the load, for example "peak (closed, 64 connections)"
	Model  string `json:"model"`  // "closed", "open", or empty
	Metric string `json:"metric"` // as package metric names it, for example "throughput", "p99"
	Label  string `json:"-"`      // for people: "CPU per request"
	Unit   string `json:"unit"`   // "1/s", "ns", "B", "J" or "1" (a share)
	Better string `json:"better"` // "higher" or "lower"
	A      Value  `json:"a"`
	B      Value  `json:"b"`

	// Ratio is B to A: paired within blocks, or between runs, or divided by the control's. It is
	// nil if one side has no number, or if the values are exact and need no test.
	Ratio *stats.Ratio `json:"ratio"`
	// Control is the control's ratio between the two runs, which divides Ratio; else nil.
	Control *stats.Ratio `json:"control,omitempty"`
	// Source names the data of Ratio: slices, or else the windows of A and B.
	Source table.Source `json:"source,omitempty"`
	// Grade is the grade of a ratio from slices: VALID, SUSPECT, INVALID or not known; else empty.
	Grade string `json:"grade,omitempty"`
	// Doubt describes what can have moved Ratio by more than its interval.
	Doubt *table.Doubt `json:"possibleBias,omitempty"`
	// Blocks are the ratios of single blocks, if trials are paired; else empty.
	Blocks []BlockRatio `json:"blocks,omitempty"`
	PHolm  float64      `json:"pHolm"` // Ratio.P corrected for the number of rows; NaN without test

	Outcome string `json:"outcome"` // better, worse, indistinguishable, equal or none
	Text    string `json:"text"`    // the outcome in words that fit the metric: B is "slower"
	// Detectable is the smallest relative difference that this many blocks would have detected in 8
	// of 10 cases (0.03 is 3 %), at the error rate that Holm's correction leaves in the worst case;
	// NaN if unknown.
	Detectable float64 `json:"detectable"`

	valueAt   func(confidence float64) stats.Ratio // Ratio at another confidence level
	share     float64                              // of the total error rate
	requested bool                                 // whether the row has the primary metric
	live      bool                                 // whether the run was ended early
	planSD    float64                              // see table.Scenario.PlanSD; only for slices
	unsliced  table.Note                           // why slices give no ratio; empty otherwise
}

// Value is a metric of one side: the median of the trials with an interval.
type Value struct {
	stats.Summary
	// Mean is the geometric mean that Ratio refers to; NaN without one. The order of both means may
	// differ from the order of both medians.
	Mean     float64       `json:"mean"`
	Withheld *table.Note   `json:"withheld,omitempty"` // why there is no value; empty if there is
	Points   []table.Point `json:"points"`             // one per trial, with block and verdict
	// Slices are the values in slices, one per start.
	Slices []table.Point `json:"slices,omitempty"`
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

// Outcomes of a row. Better and Worse need a PHolm of at most 1 - Confidence.
const (
	Better            = "better"
	Worse             = "worse"
	Indistinguishable = "indistinguishable" // no significant difference; see Detectable
	Equal             = "equal"             // exact and equal values
	// one side has no number, or there are too few starts or blocks for an interval
	Silent = "none"
)

// Change returns B to A as a relative difference: 0.05 is 5 % more. It is NaN without values.
func (r Row) Change() float64 {
	if r.Ratio != nil {
		return r.Ratio.Center - 1
	}
	return r.B.Summary.Center/r.A.Summary.Center - 1
}

// HasRatio reports whether the row has a ratio with an interval.
func (r Row) HasRatio() bool { return r.Ratio != nil && r.Ratio.HasInterval() }

// Options select the metrics and the method of a comparison.
type Options struct {
	Confidence float64  // of intervals and outcomes; 0 means 0.95
	Metrics    []string // "p99" or "half/p99"; empty: the usual ones; "all": all
	First      []string // "peak/p99": the first one with a ratio is the primary metric
	Control    string   // a row of both runs whose ratio divides the others; empty: none
	Unlike     bool     // compare results of different methods, and report the differences
	Stalls     string   // selects response times, as in table.Options
	Refused    string   // how to request Unlike; the end of an UnlikeError's text
}

// UnlikeError reports that the sides were not measured in the same way.
type UnlikeError struct {
	Differences []table.Difference
	Hint        string
}

func (e *UnlikeError) Error() string {
	var b strings.Builder
	b.WriteString("compare: A and B were measured with different configurations:")
	for _, d := range e.Differences {
		fmt.Fprintf(&b, "\n  %s", d)
	}
	return strings.TrimSpace(b.String() + "\n" + e.Hint)
}

// Compare compares B with A. Rows of one run are paired within its blocks; rows of two runs are
// not, even if they have the same block numbers, because their blocks ran at different times.
//
// It fails with *UnlikeError, with *NoTargetError, or if both sides have no metric in common.
func Compare(a, b Side, o Options) (Comparison, error) {
	o.Confidence = cmp.Or(o.Confidence, table.DefaultConfidence)
	c := Comparison{Confidence: o.Confidence, Paired: a.Dir == b.Dir, Control: o.Control,
		first: o.First}
	sa := analyse(a, o)
	sb := &side{b, sa.study}
	if !c.Paired {
		sb = analyse(b, o)
	}
	pairs, missing, err := pair(sa, sb, c.Paired)
	if err != nil {
		return c, err
	}
	c.Missing = missing
	c.methods(sa, sb, pairs)
	if len(c.Mismatches) > 0 && !o.Unlike {
		return c, &UnlikeError{c.Mismatches, o.Refused}
	}
	if row, err := sa.row(o.Control); err == nil { // otherwise checkControl reports it
		o.Control, c.Control = row, row
	}
	if err := checkControl(sa, sb, c.Paired, o.Control); err != nil {
		return c, err
	}
	for _, p := range pairs {
		if p.b.Name != o.Control {
			c.Pairs = append(c.Pairs, c.pair(sa, sb, p, o))
		}
	}
	if len(c.Pairs) == 0 {
		return c, fmt.Errorf("divide by %s: nothing is left to compare, because the control is "+
			"the only row that both runs have; leave out --control", o.Control)
	}
	c.judge()
	c.Title = title(c)
	c.warn(sa, sb, pairs)
	c.Reproduce = []string{a.Reproduce}
	if !c.Paired {
		c.Reproduce = append(c.Reproduce, b.Reproduce)
	}
	return c, nil
}

// methods collects the differences in method of all pairs, each once.
func (c *Comparison) methods(a, b *side, pairs []pairing) {
	var prints []string
	for _, p := range pairs {
		ma, mb := a.method(p.scenario, p.a), b.method(p.scenario, p.b)
		binding, reported := ma.Differences(mb)
		c.Mismatches = table.AddNew(c.Mismatches, binding...)
		if p.a.Info.Service != p.b.Info.Service { // two services need different build tools
			reported = slices.DeleteFunc(reported, func(d table.Difference) bool {
				return d.Aspect == table.ToolsAspect
			})
		}
		c.Differences = table.AddNew(c.Differences, reported...)
		prints = append(prints, ma.Fingerprint(), mb.Fingerprint())
	}
	if slices.Sort(prints); len(slices.Compact(prints)) == 1 {
		c.ConfigHash = prints[0]
	}
}

func (c *Comparison) pair(a, b *side, p pairing, o Options) Pair {
	out := Pair{Scenario: p.scenario, A: a.subject(p.scenario, p.a), B: b.subject(p.scenario, p.b)}
	if c.Paired {
		out.Starts = b.study.Scenario(p.scenario).Starts
	}
	loads := slices.Concat(b.study.Scenario(p.scenario).Loads, []table.LoadInfo{{}})
	for _, l := range loads {
		for _, m := range metricsOf(p, l.Name) {
			if !table.Selected(m, loads, o.Metrics) {
				continue
			}
			r := c.row(of(p.a, m), of(p.b, m), noise{a, b, p})
			r.Title = l.Title
			if o.Control != "" && r.Ratio != nil {
				c.divide(&r, a.study.Scenario(p.scenario).Target(o.Control),
					b.study.Scenario(p.scenario).Target(o.Control))
			}
			out.Rows = append(out.Rows, r)
		}
	}
	return out
}

// metricsOf returns the metrics of a load that either side has.
func metricsOf(p pairing, load string) (out []table.Metric) {
	for _, m := range slices.Concat(p.b.Metrics, p.a.Metrics) {
		if m.Load == load && !slices.ContainsFunc(out, func(x table.Metric) bool {
			return x.Name == m.Name
		}) {
			out = append(out, m)
		}
	}
	return out
}

// of returns a target's metric, or a withheld one if it has none.
func of(t *table.Target, m table.Metric) table.Metric {
	if ownMetric, ok := t.Metric(m.Load, m.Name); ok {
		return ownMetric
	}
	nan := math.NaN()
	none := table.Metric{Load: m.Load, Model: m.Model, Name: m.Name, Unit: m.Unit,
		Withheld: table.NoteOf(table.NoteNoTrial),
		Summary:  stats.Summary{Center: nan, Lo: nan, Hi: nan}}
	if len(t.Used) > 0 {
		none.Withheld = table.NoteOf(table.NoteNeverOffered)
	}
	return none
}

// row compares one metric.
func (c *Comparison) row(a, b table.Metric, n noise) Row {
	r := newRow(a, b)
	for _, why := range []table.Note{a.Unsliced, b.Unsliced} {
		if c.Paired && why.Is() && !r.unsliced.Is() {
			r.Source, r.Grade, r.unsliced = table.FromSlices, table.UnknownGrade, why
		}
	}
	if c.Paired && table.ShareStarts(a.Sliced, b.Sliced) {
		r.Source = table.FromSlices
	}
	if why := table.KeptApart(n.pairing.a, n.pairing.b, &b, r.Source); why.Is() &&
		!r.unsliced.Is() {
		r.Grade, r.unsliced = table.UnknownGrade, why
	}
	scenario := n.a.study.Scenario(n.scenario)
	switch {
	case r.unsliced.Is():
	case r.Source == table.FromSlices &&
		scenario.Starts.Withheld(n.pairing.a.Name, n.pairing.b.Name):
		r.Grade = record.Invalid
	case r.Source == table.FromSlices:
		r.Ratio = c.ratio(&r, n)
		r.live = scenario.Starts.Interrupted
		r.planSD = scenario.PlanSD(n.pairing.a, n.pairing.b, b.Load, b.Name)
		r.Doubt = scenario.RatioDoubt(n.pairing.a, n.pairing.b, &b, r.Ratio)
		r.Grade = table.RatioGrade(*r.Ratio, r.Doubt)
	case a.Known() && b.Known() && !r.constant():
		r.Ratio = c.ratio(&r, n)
	}
	return r
}

func valueOf(m table.Metric) Value {
	v := Value{Summary: m.Summary, Mean: math.NaN(), Points: m.Points, Slices: m.Sliced}
	if !m.Known() {
		v.Withheld = &m.Withheld
	}
	return v
}

// newRow returns a row for a metric, without a ratio yet.
func newRow(a, b table.Metric) Row {
	meaning := metric.Named(b.Name, b.Unit)
	r := Row{
		Load: b.Load, Model: b.Model, Metric: b.Name, Label: meaning.Label, Unit: b.Unit,
		Better: Lower, A: valueOf(a), B: valueOf(b),
		PHolm: math.NaN(), Detectable: math.NaN(), Outcome: Silent,
	}
	if meaning.Higher {
		r.Better = Higher
	}
	return r
}

// constant reports whether all values of both sides are exact, or all are zero: most runs have no
// errors, and a share of zero has no ratio.
func (r *Row) constant() bool {
	if r.A.Summary.Assumption == table.Exact && r.B.Summary.Assumption == table.Exact {
		return true
	}
	first := r.A.Points[0].Value
	return first == 0 && !slices.ContainsFunc(slices.Concat(r.A.Points, r.B.Points),
		func(p table.Point) bool { return p.Value != first })
}

func (c *Comparison) ratio(r *Row, n noise) *stats.Ratio {
	points, second := r.pointsOf(r.A), r.pointsOf(r.B)
	avs, bs := table.Values(points), table.Values(second)
	if c.Paired {
		var blocks []int
		avs, bs, blocks = align(points, second)
		for i, block := range blocks {
			ratio := bs[i] / avs[i]
			if r.Source == table.FromSlices {
				ratio = n.a.study.Scenario(n.scenario).StartRatio(n.pairing.a, n.pairing.b, r.Load,
					r.Metric, block)
			}
			r.Blocks = append(r.Blocks, BlockRatio{block, ratio})
		}
	}
	r.A.Mean, r.B.Mean = geometric(avs), geometric(bs)
	if r.Source == table.FromSlices { // levels come from the windows
		r.A.Mean, r.B.Mean = r.A.level(), r.B.level()
	}
	x, y := n.item(n.pairing.a, r), n.item(n.pairing.b, r)
	alone := len(x.Values) < len(points) || len(y.Values) < len(second)
	r.valueAt = func(confidence float64) stats.Ratio {
		switch {
		case r.Source == table.FromSlices:
			return n.a.study.Scenario(n.scenario).SlicedRatio(n.pairing.a, n.pairing.b, r.Load,
				r.Metric, confidence)
		case c.Paired && alone:
			return stats.PairedRatio(avs, bs, confidence)
		case c.Paired:
			return n.of(n.a, r, confidence).Ratio(x, y)
		case alone:
			return stats.UnpairedRatio(avs, bs, confidence)
		}
		return n.of(n.a, r, confidence).Unpaired(x, n.of(n.b, r, confidence), y)
	}
	ratio := r.valueAt(c.Confidence)
	return &ratio
}

// pointsOf returns the points of a side that a row's ratio uses.
func (r *Row) pointsOf(v Value) []table.Point {
	if r.Source == table.FromSlices {
		return v.Slices
	}
	return v.Points
}

// level returns the geometric mean of a side's windows; NaN if it is withheld.
func (v Value) level() float64 {
	if v.Withheld != nil {
		return math.NaN()
	}
	return geometric(table.Values(v.Points))
}

// noise has the data for a row's noise: all targets of the scenario, on both sides.
type noise struct {
	a, b *side
	pairing
}

func (n noise) of(s *side, r *Row, confidence float64) *stats.Blocks {
	var items []stats.Item
	for _, t := range s.study.Scenario(n.scenario).Targets {
		if item := n.item(t, r); len(item.Values) > 0 {
			items = append(items, item)
		}
	}
	return stats.NewBlocks(items, confidence)
}

// item returns a target's values of a row's metric by block; none if they are withheld.
func (n noise) item(t *table.Target, r *Row) stats.Item {
	item := stats.Item{Name: t.Name}
	m, ok := t.Metric(r.Load, r.Metric)
	switch {
	case ok && r.Source == table.FromSlices:
		item.Values = table.ByBlock(m.Sliced)
	case ok && m.Known():
		item.Values = table.ByBlock(m.Points)
	}
	return item
}

// geometric returns the geometric mean; NaN if a value has no logarithm.
func geometric(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += math.Log(x)
	}
	if mean := math.Exp(sum / float64(len(xs))); mean > 0 && !math.IsInf(mean, 0) {
		return mean
	}
	return math.NaN()
}

// align returns the values of common blocks, in block order.
func align(a, b []table.Point) (avs, bs []float64, blocks []int) {
	return stats.Align(stats.Item{Values: table.ByBlock(a)}, stats.Item{Values: table.ByBlock(b)})
}

func title(c Comparison) string {
	names := table.Distinct(c.Pairs, Pair.Targets)
	subject := strings.Join(names, ", ")
	if len(names) > 3 {
		subject = fmt.Sprintf("%d pairs of targets", len(names))
	}
	if c.Paired || c.Published {
		return subject
	}
	return fmt.Sprintf("%s: run %s against run %s", subject, c.Pairs[0].B.Run, c.Pairs[0].A.Run)
}

// between returns the time between the starts of both runs, in words.
func between(a, b *side) string {
	if len(a.Records) == 0 || len(b.Records) == 0 {
		return "an unknown time"
	}
	d := b.Records[0].Time.Sub(a.Records[0].Time).Abs()
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.0f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.0f hours", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return units.Plural(int(d.Seconds()), "second")
}
