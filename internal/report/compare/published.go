package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/audit"
	"prony.example/record/metric"
	"prony.example/stats"
)

// results has the results of a published document on one subject under one scenario: one, or its
// repetitions.
type results struct {
	scenario, name, tool string
	rows                 []*audit.Row
}

// resultsOf groups the repetitions of each result.
func resultsOf(d *audit.Document) (out []*results) {
	for _, t := range d.Tables {
		for _, r := range t.Rows {
			scenario := strings.TrimSpace(r.Key)
			if scenario == "" && len(d.Tables) > 1 {
				scenario = t.Title
			}
			x := results{scenario, cmp.Or(r.Of, r.Name), r.Tool, nil}
			if x.scenario == x.name { // a tool's output below the heading that names it
				x.scenario = ""
			}
			i := slices.IndexFunc(out, func(o *results) bool { return o.is(x) && o.tool == x.tool })
			if i < 0 {
				i, out = len(out), append(out, &x)
			}
			out[i].rows = append(out[i].rows, r)
		}
	}
	return out
}

func (x *results) is(o results) bool { return x.scenario == o.scenario && x.name == o.name }

// Published compares results that somebody has published, or a tool has saved: row nameB of b with
// row nameA of a, or without names those that both have. It uses figures as printed. Repeated rows
// have an interval; a single one has none, and so no outcome, even for a large difference.
//
// Its errors are those of Compare.
func Published(a, b *audit.Document, nameA, nameB string, o Options) (Comparison, error) {
	c := Comparison{Confidence: cmp.Or(o.Confidence, table.DefaultConfidence), Published: true}
	if o.Control != "" {
		return c, fmt.Errorf("divide by %s: published results do not name the artifacts of the "+
			"control, so leave out --control", o.Control)
	}
	aResults, bs := resultsOf(a), resultsOf(b)
	pairs, err := c.pairUp(a, b, aResults, bs, nameA, nameB)
	if err != nil {
		return c, err
	}
	for _, p := range pairs {
		ma, mb := p[0].method(), p[1].method()
		unlike, reported := beside(ma, mb).Differences(beside(mb, ma))
		c.Mismatches, c.Differences = table.AddNew(c.Mismatches, unlike...),
			table.AddNew(c.Differences, reported...)
	}
	if len(c.Mismatches) > 0 && !o.Unlike {
		return c, &UnlikeError{c.Mismatches, o.Refused}
	}
	for _, p := range pairs {
		c.Pairs = append(c.Pairs, c.published(a, b, p, o.Metrics))
	}
	c.judge()
	c.Title = title(c)
	c.warnPublished(a, pairs, 0)
	if a != b {
		c.warnPublished(b, pairs, 1)
	}
	return c, nil
}

// beside returns a method with the aspects that only the other one has, whose values are unknown.
func beside(m, second table.Method) table.Method {
	for _, a := range second.Aspects {
		if !slices.ContainsFunc(m.Aspects, func(x table.Aspect) bool { return x.Name == a.Name }) {
			m.Aspects = append(m.Aspects, table.Aspect{Name: a.Name, Value: table.UnknownValue})
		}
	}
	return m
}

// pairUp finds the pairs of results. Two files with one result each may have different names.
func (c *Comparison) pairUp(a, b *audit.Document, aResults, bs []*results, nameA, nameB string) (
	pairs [][2]*results, err error) {
	for _, want := range []struct {
		name    string
		results []*results
		file    string
	}{{nameA, aResults, a.File}, {nameB, bs, b.File}} {
		rows := namesOf(want.results)
		if want.name != "" && !slices.Contains(rows, want.name) {
			return nil, &NoTargetError{want.name, want.file, rows}
		}
	}
	if a != b && len(aResults) == 1 && len(bs) == 1 {
		return [][2]*results{{aResults[0], bs[0]}}, nil
	}
	if rows := namesOf(aResults); a == b && len(slices.Compact(slices.Sorted(
		slices.Values(rows)))) == 1 {
		return nil, fmt.Errorf("compare %s with itself: its only row is %s; name another file",
			a.File, rows[0])
	}
	if a == b && (nameA == "" || nameA == nameB) {
		return nil, fmt.Errorf("compare rows of %s: name two rows with --targets A,B; the rows "+
			"are %s", a.File, strings.Join(namesOf(aResults), ", "))
	}
	for _, y := range bs {
		if nameB != "" && y.name != nameB {
			continue
		}
		want := results{y.scenario, cmp.Or(nameA, y.name), y.tool, nil}
		is := func(x *results) bool { return x.is(want) }
		i := slices.IndexFunc(
			aResults,
			func(x *results) bool { return is(x) && x.tool == want.tool },
		)
		if i < 0 { // a result of another tool is refused, not skipped
			i = slices.IndexFunc(aResults, is)
		}
		if i < 0 {
			c.Missing = append(c.Missing, y.heading()+" is only in B")
			continue
		}
		pairs = append(pairs, [2]*results{aResults[i], y})
	}
	for _, x := range aResults {
		isUsed := func(p [2]*results) bool { return p[0] == x }
		if a != b && (nameA == "" || x.name == nameA) && !slices.ContainsFunc(pairs, isUsed) {
			c.Missing = append(c.Missing, x.heading()+" is only in A")
		}
	}
	if len(pairs) == 0 {
		return nil, fmt.Errorf("compare %s with %s: no row is in both files; A has %s; B has %s; "+
			"name one row of each, such as %s:%s",
			a.File, b.File, units.Few(namesOf(aResults), few),
			units.Few(namesOf(bs), few), a.File, aResults[0].name)
	}
	return pairs, nil
}

// few is the number of names in an error.
const few = 6

func namesOf(all []*results) []string {
	return table.Distinct(all, func(x *results) string { return x.name })
}

func (x *results) heading() string {
	return strings.TrimPrefix(x.scenario+" · "+x.name, " · ")
}

// method returns how results were made, as far as the document states it.
func (x *results) method() table.Method {
	var m table.Method
	for _, f := range x.rows[0].Method() {
		value := f.Value
		for _, r := range x.rows[1:] {
			for _, candidate := range r.Method() {
				if f.Binds && candidate.Name == f.Name &&
					!strings.Contains(value, candidate.Value) {
					value += " | " + candidate.Value
				}
			}
		}
		m.Aspects = append(m.Aspects, table.Aspect{Name: f.Name,
			Value: cmp.Or(value, table.UnknownValue), Binding: f.Binds})
	}
	return m
}

// publishes lists the metrics that published results may have.
var publishes = []struct {
	quantity audit.Quantity
	name     string
	unit     string
}{
	{audit.Rate, metric.Throughput, units.PerS}, {audit.ErrorShare, "error_share", units.One},
	{audit.Mean, "mean", units.Ns}, {audit.P50, "p50", units.Ns}, {audit.P75, "p75", units.Ns},
	{audit.P90, "p90", units.Ns}, {audit.P95, "p95", units.Ns}, {audit.P99, "p99", units.Ns},
	{
		audit.P999,
		"p99.9",
		units.Ns,
	}, {audit.P9999, "p99.99", units.Ns}, {audit.Max, "max", units.Ns},
	{audit.CPU, "cpu_used", units.One}, {audit.Memory, "memory", units.Octet},
}

// points returns the figures of a quantity; it computes a share of errors from their number if
// needed.
func (x *results) points(quantity audit.Quantity) (out []table.Point) {
	for i, r := range x.rows {
		v, ok := r.Values[quantity]
		if quantity == audit.ErrorShare && !ok {
			failed, okF := r.Values[audit.Errors]
			all, okA := r.Values[audit.Requests]
			v.V, ok = failed.V/all.V, okF && okA && all.V > 0
		}
		if ok {
			out = append(out, table.Point{Trial: r.Name, Block: i + 1, Value: v.V})
		}
	}
	return out
}

// published compares two results in all common metrics.
func (c *Comparison) published(a, b *audit.Document, p [2]*results, want []string) Pair {
	out := Pair{Scenario: p[1].scenario,
		A: Subject{Dir: a.File, Run: a.File, Target: p[0].name, Tool: p[0].tool,
			Blocks: len(p[0].rows)},
		B: Subject{Dir: b.File, Run: b.File, Target: p[1].name, Tool: p[1].tool,
			Blocks: len(p[1].rows)}}
	for _, m := range publishes {
		x, y := p[0].points(m.quantity), p[1].points(m.quantity)
		requested := len(want) == 0 || slices.Contains(want, "all") ||
			slices.Contains(want, m.name)
		if len(x) == 0 || len(y) == 0 || !requested {
			continue
		}
		value := func(points []table.Point) table.Metric {
			return table.Metric{Model: p[1].rows[0].Model, Name: m.name, Unit: m.unit,
				Points: points, Summary: stats.Summarize(table.Values(points), c.Confidence)}
		}
		r := newRow(value(x), value(y))
		if !r.constant() {
			xs, ys := table.Values(x), table.Values(y)
			r.A.Mean, r.B.Mean = geometric(xs), geometric(ys)
			r.valueAt = func(confidence float64) stats.Ratio {
				return stats.UnpairedRatio(xs, ys, confidence)
			}
			ratio := r.valueAt(c.Confidence)
			if ratio.N == 1 && !math.IsNaN(ratio.Center) {
				ratio.Warning = "no verdict: single runs"
			}
			r.Ratio = &ratio
		}
		out.Rows = append(out.Rows, r)
	}
	return out
}

// warnPublished adds the warnings on one side for a reader.
func (c *Comparison) warnPublished(d *audit.Document, pairs [][2]*results, side int) {
	if side == 0 {
		c.say("Prony did not measure these values: they are quoted from the files.")
		single := func(p [2]*results) bool { return min(len(p[0].rows), len(p[1].rows)) < 2 }
		if slices.ContainsFunc(pairs, single) {
			c.say("Single runs have no interval, so no difference gets a verdict. Only rows that " +
				"are repeated in a file have an interval.")
		}
	}
	match := audit.Audit(d)
	if n := match.Count(audit.Contradiction); n > 0 {
		c.say("%s contradicts itself in %s: run prony audit %s before you quote it.", d.File,
			units.Plural(n, "place"), d.File)
	}
	for _, p := range pairs {
		for _, r := range p[side].rows {
			for _, n := range r.Notes {
				c.say("%s (%s): %s.", p[side].name, d.File, n)
			}
			if n := r.Counted; n > 0 {
				c.say("%s (%s): the rate includes %s.", p[side].name, d.File,
					units.Plural(int(n), "failure"))
			}
		}
	}
}
