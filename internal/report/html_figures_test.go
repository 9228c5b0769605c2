package report

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/units"
	"prony.example/internal/report/compare"
	"prony.example/record"
	"prony.example/stats"
)

// TestCutIntervals checks the mark on an interval that leaves the axis.
func TestCutIntervals(t *testing.T) {
	r := ruler{0.5, 2, true}
	check := func(lo, hi float64, cutLo, cutHi bool) {
		t.Helper()
		row := ratioRow("x", stats.Ratio{Center: 1, Lo: lo, Hi: hi}, r)
		if row.CutLo != cutLo || row.CutHi != cutHi {
			t.Errorf("%v to %v is cut %v, %v", lo, hi, row.CutLo, row.CutHi)
		}
		m := table.Metric{Summary: stats.Summary{N: 2, Center: 1, Lo: lo, Hi: hi}}
		if row := metricRow("x", m, r, 1, "block"); row.CutLo != cutLo || row.CutHi != cutHi {
			t.Errorf("level %v to %v is cut %v, %v", lo, hi, row.CutLo, row.CutHi)
		}
	}
	check(0.5, 2, false, false)
	check(0.49, 1.5, true, false)
	check(0.9, 3, false, true)
	check(0.1, 30, true, true)
}

// TestRuler checks positions and ticks of axes.
func TestRuler(t *testing.T) {
	check := func(r ruler, value, want float64) {
		t.Helper()
		if got := r.at(value); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v on %+v stands at %v, wanted %v", value, r, got, want)
		}
	}
	check(ruler{0, 100, false}, 50, 50)  // 2 + 96/2
	check(ruler{0, 100, false}, 0, 2)    // the margin
	check(ruler{0, 100, false}, 200, 98) // held at the edge
	check(ruler{1, 100, true}, 10, 50)   // one of two decades
	check(span([]float64{0.9, 1.3}, true), 1, 2+96*(-math.Log(0.9)+math.Log(1.3/0.9)*0.04)/
		(math.Log(1.3/0.9)*1.08))
	if a, z := blockPlace(1, 5), blockPlace(5, 5); a != "16.00%" || z != "84.00%" {
		t.Errorf("blocks 1 and 5 of 5 stand at %s and %s", a, z)
	}
	if r := span([]float64{1, 40}, true); r.beyond(40) != "end" || r.beyond(1.9) != "" {
		t.Errorf("a ratio of 40 is not beyond %+v", r)
	}
	for _, row := range []struct {
		r    ruler
		want string
	}{
		{ruler{0, 48_000, false}, "[0 10000 20000 30000 40000]"},
		{ruler{0, 3, false}, "[0 1 2 3]"},
		{ruler{1, 900, true}, "[1 3 10 30 100 300]"},
		{ruler{0.97, 1.031, true}, "[0.98 1 1.02]"},
	} {
		var got []string
		for _, v := range row.r.ticks() {
			got = append(got, strconv.FormatFloat(math.Round(v*1e4)/1e4, 'f', -1, 64))
		}
		words := "[" + strings.Join(got, " ") + "]"
		if n := len(got); n > mostTicks+1 || words != row.want {
			t.Errorf("ticks of %+v are %s, wanted %s", row.r, words, row.want)
		}
	}
}

// TestRankingFigure checks for a band per tier, a row per ranked target and a dot per trial.
func TestRankingFigure(t *testing.T) {
	s := analyze(rich(), fixtureOptions())
	sc := s.Scenarios[0]
	f := figuresOf(sc, dataOf(s, HTMLOptions{}).Scenarios[0])
	var ranked int
	for _, g := range f.Ranking.Groups {
		ranked += len(g.Rows)
		for _, row := range g.Rows {
			want := 5
			if row.Name == "java-netty" || row.Name == "java-jdk/virtual" {
				want = 4 // one failed, one INVALID
			}
			if g.Ramp > 0 && (len(row.Dots) != want || row.Center == "" || row.From == "") {
				t.Errorf("%s has %d dots, centre %q, interval %q", row.Name, len(row.Dots),
					row.Center, row.From)
			}
		}
	}
	// node-express was SUSPECT in block 2, and in no other.
	for _, g := range f.Ranking.Groups {
		for _, row := range g.Rows {
			for k, d := range row.Dots {
				if d.Hollow != (row.Name == "node-express" && k == 1) {
					t.Errorf("%s, %s: hollow %v", row.Name, d.Title, d.Hollow)
				}
			}
		}
	}
	if tiers := len(sc.Ranking.Tiers); len(f.Ranking.Groups) != tiers || ranked != 6 {
		t.Errorf("%d bands of %d rows, wanted %d of 6", len(f.Ranking.Groups), ranked, tiers)
	}
	if !strings.HasPrefix(f.Ranking.Says, "rust-axum has the highest throughput: 1.24 times that "+
		"of go-nethttp (95 % CI 1.22 to 1.27). Relative to go-nethttp: java-netty 1.21 (1.18 to ") {
		t.Errorf("the ranking says %q", f.Ranking.Says)
	}
	// These two alone do not differ significantly, unlike with all trials.
	two := slices.DeleteFunc(slices.Clone(rich()), func(r record.Record) bool {
		return r.Target.Name != "rust-axum" && r.Target.Name != "java-netty"
	})
	s = analyze(two, fixtureOptions())
	f = figuresOf(s.Scenarios[0], dataOf(s, HTMLOptions{}).Scenarios[0])
	const none = "No significant difference in throughput between rust-axum and java-netty."
	if f.Ranking.Says != none {
		t.Errorf("the ranking of two says %q", f.Ranking.Says)
	}
}

// TestWarmupData checks that the warm-up ends at the window, and that levels continue into it.
func TestWarmupData(t *testing.T) {
	w := record.Warmup{DurationNs: 4e9, IntervalNs: 5e8, RatePerS: make(record.Rates, 8),
		Kind: stats.Warmed, Steady: true, SteadyAtNs: 15e8, PeakAtNs: 5e9,
		Levels: []record.Level{{FromNs: 0, ToNs: 15e8, MeanPerS: 10}, {FromNs: 15e8, ToNs: 9e9,
			MeanPerS: 20}}}
	got := warmOf(w)
	// Eight halves of a second: the first ends at -3.5 s, the last at 0; 1.5 s is at -2.5 s.
	if len(got.Seconds) != 8 || got.Seconds[0] != -3.5 || got.Seconds[7] != 0 ||
		*got.Steady != -2.5 || *got.Peak != 1 || got.Levels[1] != (pageLevel{-2.5, 5, 20}) {
		t.Errorf("warm-up is drawn as %+v", got)
	}
	// Steady from the start is a value: the triangle is at -4 s.
	w.SteadyAtNs = 0
	if at := warmOf(w).Steady; at == nil || *at != -4 {
		t.Errorf("steady from the start is drawn at %v", at)
	}
	w.IntervalNs = 0
	if warmOf(w) != nil {
		t.Error("a warm-up without a series is drawn")
	}
	// It precedes the first load, and no other.
	s := analyze(rich(), fixtureOptions())
	for _, target := range dataOf(s, HTMLOptions{}).Scenarios[0].Series {
		for _, trial := range target.Trials {
			if (trial.Warmup != nil) != (trial.Load == "peak") {
				t.Errorf("%s at %s: warm-up %v", trial.Trial, trial.Load, trial.Warmup)
			}
		}
	}
}

// TestLoadsData checks that open loads are ordered by the achieved rate, and where a target fell
// behind.
func TestLoadsData(t *testing.T) {
	s := analyze(rich(), fixtureOptions())
	d := dataOf(s, HTMLOptions{}).Scenarios[0]
	for _, line := range d.Loads.Targets {
		for i := 1; i < len(line.Points); i++ {
			if line.Points[i].PerS < line.Points[i-1].PerS {
				t.Errorf("%s: points are not in order of their rates", line.Target)
			}
		}
		// At 110 % of peak the two slow ones lose a tenth, so their latency is withheld.
		slow := line.Target == "node-express" || line.Target == "python-django/reactive"
		if slow != strings.Contains(line.Knee, "not the rate of load rate4") {
			t.Errorf("%s gave way: %q", line.Target, line.Knee)
		}
		if line.Peak == nil {
			t.Errorf("%s has no peak", line.Target)
		}
	}
	for rule, want := range map[string]bool{"steal": false, "capacity": true} {
		records := rich()
		for i, r := range records {
			if r.Target.Name == "rust-axum" {
				finding := record.Finding{Rule: rule, Load: "rate2", Grade: record.Invalid}
				records[i].Verdict = record.Verdict{Grade: record.Invalid,
					Findings: []record.Finding{finding}}
			}
		}
		for _, line := range dataOf(analyze(records, fixtureOptions()),
			HTMLOptions{}).Scenarios[0].Loads.Targets {
			if line.Target == "rust-axum" && strings.Contains(line.Knee, "rate2") != want {
				t.Errorf("without a number at rate2 because of %s: %q", rule, line.Knee)
			}
		}
	}
	one := analyze(made(), fixtureOptions())
	if dataOf(one, HTMLOptions{}).Scenarios[0].Loads != nil {
		t.Error("a curve is drawn through one point")
	}
	if why := noLoads(one.Scenarios[0]); !strings.Contains(why, "two open loads") {
		t.Errorf("the missing figure says %q", why)
	}
}

// TestConditions checks the order of warnings by severity, and that varying provenance is separate.
func TestConditions(t *testing.T) {
	records := rich()
	ws := warningsOf(pointers(records))
	total, rank := 0, 0
	for _, w := range ws {
		total += len(w.Trials)
		if gradeRank(w.Grade) < rank {
			t.Errorf("%s %s comes after what is less grave", w.Grade, w.Rule)
		}
		rank = gradeRank(w.Grade)
	}
	findings := 0
	for _, r := range records {
		findings += len(r.Verdict.Findings)
	}
	if total != findings {
		t.Errorf("%d findings stand in the warnings, wanted %d", total, findings)
	}
	if s := sharedOf(pointers(records)); len(s.Varying) != 0 {
		t.Errorf("%+v vary in one run", s.Varying)
	}
	two := []record.Record{records[0], records[1], records[2]}
	two[1].Provenance.Kernel = "6.19"
	s := sharedOf(pointers(two))
	if len(s.Varying) != 1 || s.Varying[0].Name != "machine" ||
		s.Varying[0].Values[0].Name != "2 trials" {
		t.Errorf("another kernel is said as %+v", s.Varying)
	}
	line := timelineOf(pointers(records))
	if !strings.Contains(line.Says, "not quiet before") || !line.Heat || len(line.Bars) != 35 {
		t.Errorf("the timeline says %q, heat %v, %d bars", line.Says, line.Heat, len(line.Bars))
	}
}

// TestComparePage checks that the markup has the results of a comparison, with a gate and a banner.
func TestComparePage(t *testing.T) {
	c, gate := compared(t)
	c.Mismatches = []table.Difference{{Aspect: "peak connections", A: "64", B: "<b>128</b>"}}
	var b bytes.Buffer
	if err := Compare(&b, c, HTMLOptions{Gate: gate}); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	markup, _, _ := strings.Cut(html, `<script type="application/json"`)
	for _, want := range []string{c.Title, c.Banner(), "peak connections: 64 against &lt;b&gt;128",
		"the gate allows 5.0 %", "the gate allows 10 %", "corrected for", gate.Outcome,
		"prony run suites/canonical.yaml", ">&#43;21 %<", "beyond ▶"} {
		if !strings.Contains(markup, want) {
			t.Errorf("the markup lacks %q", want)
		}
	}
	if strings.Contains(markup, "<b>128") || strings.Count(html, "<script") != 2 {
		t.Error("text became markup")
	}
	rows := 0
	for _, r := range c.Pairs[0].Rows {
		if drawable(r) {
			rows++
		}
	}
	if n := strings.Count(markup, `class="mark"`); n != rows || rows == 0 {
		t.Errorf("%d rows mark 1, wanted %d", n, rows)
	}
	// Throughput may fall by 5 %: the shade ends at 1. p99 may rise: its shade begins there.
	for _, row := range forest(c, c.Pairs[0], gate).Groups[0].Rows {
		switch row.Name {
		case "peak throughput":
			if from, wide := percent(t, row.Shade.From), percent(t, row.Shade.Width); math.Abs(
				from+wide-percent(t, forest(c, c.Pairs[0], gate).Mark)) > 0.011 {
				t.Errorf("the margin of throughput is %+v", *row.Shade)
			}
		case "half p99":
			if row.Shade.From != forest(c, c.Pairs[0], gate).Mark {
				t.Errorf("the margin of p99 is %+v", *row.Shade)
			}
		}
	}
	if n := len(c.Pairs[0].Rows); strings.Count(markup, `<td><span class="badge `) != n {
		t.Errorf("the table has not %d rows", n)
	}
}

// TestCompareNothing checks that a comparison without a pair has a page.
func TestCompareNothing(t *testing.T) {
	var b bytes.Buffer
	c := compare.Comparison{Title: "a against b", Missing: []string{"x is only in A"}}
	if err := Compare(&b, c, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "Not compared: x is only in A.") {
		t.Error("the page does not say what is missing")
	}
}

// TestCompareLacksOnce checks that the page has each reason for missing numbers once, as text has.
func TestCompareLacksOnce(t *testing.T) {
	why := table.NoteOf(table.NoteNoTrial)
	row := func(metric string) compare.Row {
		return compare.Row{Metric: metric, Label: metric, B: compare.Value{Withheld: &why}}
	}
	c := compare.Comparison{Pairs: []compare.Pair{{Rows: []compare.Row{row("p50"), row("p99")}}}}
	want := []string{"B has no p50, p99: " + why.String()}
	if got := pairOf(c, c.Pairs[0], 1, nil).Notes; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func percent(t *testing.T, place string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(strings.TrimSuffix(place, "%"), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestDotsHavePlaces checks that a trial without a value has no dot, rather than one at NaN %.
func TestDotsHavePlaces(t *testing.T) {
	points := []table.Point{{Block: 1, Value: 0.5}, {Block: 2, Value: math.NaN()},
		{Block: 3, Value: math.Inf(1)}}
	got := dots(points, 3, "block", ruler{0, 1, false}, units.Rate)
	if len(got) != 1 || got[0].X != "50.00%" {
		t.Errorf("they are %+v", got)
	}
}

// TestTicksOfBytes checks that ticks of memory are round in their printed unit.
func TestTicksOfBytes(t *testing.T) {
	var texts []string
	for _, mark := range (ruler{0, 150 << 20, false}).marksIn("B") {
		texts = append(texts, mark.Text)
	}
	if got, want := strings.Join(texts, ", "), "0, 50 MiB, 100 MiB, 150 MiB"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A dot is hollow only if findings can have moved the number that it is part of.
func TestHollowDots(t *testing.T) {
	m := table.Metric{Summary: stats.Summary{N: 2, Center: 1, Lo: 0.9, Hi: 1.1},
		Points: []table.Point{{Block: 1, Value: 1, Verdict: record.Valid},
			{Block: 2, Value: 1, Verdict: record.Suspect}}}
	hollow := func() (out []bool) {
		for _, d := range metricRow("x", m, ruler{0, 2, false}, 2, "block").Dots {
			out = append(out, d.Hollow)
		}
		return out
	}
	if got := hollow(); !slices.Equal(got, []bool{false, false}) {
		t.Errorf("of a VALID number, dots are hollow: %v", got)
	}
	m.Doubt = &table.Doubt{Share: 0.3}
	if got := hollow(); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("of a SUSPECT number, dots are hollow: %v", got)
	}
}

// Costs have the intervals that the tables show, and none that they call unknown.
func TestCostIntervals(t *testing.T) {
	s := analyze(rich(), fixtureOptions())
	for _, p := range costOf(s.Scenarios[0]).Points {
		if p.PerSRange == nil || p.PerSRange[0] > p.PerS || p.PerSRange[1] < p.PerS {
			t.Errorf("%s serves %v, interval %v", p.Target, p.PerS, p.PerSRange)
		}
		if p.CPUUs == nil {
			t.Errorf("%s has no CPU time per request", p.Target)
		} else if p.CPURange != nil && (p.CPURange[0] > *p.CPUUs || p.CPURange[1] < *p.CPUUs) {
			t.Errorf("%s costs %v, interval %v", p.Target, *p.CPUUs, *p.CPURange)
		}
	}
	for _, hi := range []float64{math.NaN(), math.Inf(1), 1000} {
		lo := 1.0
		if math.IsNaN(hi) {
			lo = hi
		}
		m := table.Metric{Summary: stats.Summary{N: 2, Center: 2, Lo: lo, Hi: hi}}
		if got := rangeOf(m, 1, 3); got != nil {
			t.Errorf("an interval from %v to %v is drawn as %v", lo, hi, *got)
		}
	}
}

// A trial that ended with its run has no badge of a failure; ratios are said to be other means than
// levels, where there are ratios.
func TestStoppedTrialInHTML(t *testing.T) {
	records := slices.Clone(rich())
	r := &records[len(records)-1]
	r.Outcome, r.Loads = "failed", nil
	r.Failure = &record.Failure{Step: "measure", Error: "interrupted", Interrupted: true}
	html := page(t, records, HTMLOptions{})
	for _, want := range []string{`<li class="badge stopped">1 trial stopped</li>`,
		"Stopped with the run", "stopped at measure", "Ratios are geometric means"} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	alone := slices.DeleteFunc(slices.Clone(rich()), func(r record.Record) bool {
		return r.Target.Name != "rust-axum"
	})
	if strings.Contains(page(t, alone, HTMLOptions{}), "Ratios are geometric means") {
		t.Error("a page without ratios explains them")
	}
}
