package compare

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// inSlices adds slices to a run's trials, in which they serve the rates of perS by block, and use 1
// s of processor time per second.
func inSlices(s Side, perS rows) Side {
	for _, r := range s.Records {
		requests := int64(10 * perS[r.Target.Name][r.Block-1])
		r.DurationNs = int64(5 * time.Second)
		r.SideBySide = &record.SideBySide{Rounds: 40, LeadInNs: 20e6, WindowNs: 40e6,
			Freeze: record.FreezeSignals, Clock: record.ClockProcess}
		r.Loads[0].Slices = &record.Sliced{Slices: 40, Requests: requests, TimeNs: 10e9,
			CPUNs: 10e9, IdleTimeNs: 10e9}
	}
	return s
}

// slicedRows has two targets whose windows drift apart and whose slices do not: b is 5 % slower.
func slicedRows() Side {
	slower := scaled(drifting, 0.95, 0.951, 0.949)
	windows := scaled(drifting, 1.3, 0.7)
	return inSlices(runOf("r", noon, rows{"a": drifting, "b": windows}),
		rows{"a": drifting, "b": slower})
}

// TestRatiosFromSlices checks that within a run ratios come from slices, and levels from windows.
func TestRatiosFromSlices(t *testing.T) {
	s := slicedRows()
	c := compare(t, at(s, "a"), at(s, "b"), Options{})
	r := rowOf(t, c.Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromSlices || r.Outcome != Worse || math.Abs(r.Ratio.Center-0.95) > 0.001 {
		t.Errorf("%s from %q: %+v", r.Outcome, r.Source, r.Ratio)
	}
	near(t, "level of a", r.A.Mean, geometric(drifting))
	near(t, "ratio of block 2", r.Blocks[1].Ratio, 0.951)
	if cpu := rowOf(t, c.Pairs[0], "peak", metric.CPU); cpu.Outcome != Worse ||
		math.Abs(cpu.Ratio.Center-1/0.95) > 0.001 {
		t.Errorf("CPU %s: %+v", cpu.Outcome, cpu.Ratio)
	}
	if p99 := rowOf(t, c.Pairs[0], "half", "p99"); p99.Source != table.FromWindows {
		t.Errorf("p99 comes from %q", p99.Source)
	}
}

// TestGateBySlices checks that a gate decides by slices, also without a usable window.
func TestGateBySlices(t *testing.T) {
	s := slicedRows()
	for _, r := range s.Records {
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{{Rule: "steal",
			Load: "peak", Phase: record.PhaseWindow, Grade: record.Invalid}}}
	}
	c := compare(t, at(s, "a"), at(s, "b"), Options{})
	for most, want := range map[float64]string{0.02: stats.Fail, 0.1: stats.Pass} {
		g, err := Judge(c, []Limit{{Metric: metric.Throughput, Most: most}}, 0)
		if err != nil || g.Outcome != want {
			t.Errorf("a loss of %v allowed: %s, %v: %s", most, g.Outcome, err, g.Checks[0].Why)
		}
	}
}

// TestSlicesOfTwoRuns checks that between runs levels are compared, and with a control the slices
// of each run relative to the control's.
func TestSlicesOfTwoRuns(t *testing.T) {
	a := slicedRows()
	later := scaled(drifting, 1.5)
	b := inSlices(runOf("s", noon.Add(time.Hour), rows{"a": later, "b": later}),
		rows{"a": later, "b": scaled(later, 0.90, 0.901, 0.899)})
	r := rowOf(t, compare(t, at(a, "b"), at(b, "b"), Options{}).Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromWindows {
		t.Errorf("runs are compared by %q", r.Source)
	}
	c := compare(t, at(a, "b"), at(b, "b"), Options{Control: "a"})
	r = rowOf(t, c.Pairs[0], "peak", metric.Throughput)
	if r.Source != table.FromSlices || math.Abs(r.Ratio.Center-0.90/0.95) > 0.001 {
		t.Errorf("with a control, by %q: %+v", r.Source, r.Ratio)
	}
}

// TestTextOfSlices checks the text of a comparison side by side: the sources of numbers, the extent
// of the measurement, detectable differences, and findings on all starts.
func TestTextOfSlices(t *testing.T) {
	noise := []float64{1.004, 0.997, 1.001, 0.998, 1.003, 0.999, 1.002, 0.996}
	s := inSlices(runOf("r", noon, rows{"a": drifting, "b": drifting, "a-again": drifting}),
		rows{"a": drifting, "b": scaled(drifting, noise...),
			"a-again": scaled(drifting, 1.02, 1.021, 1.019)})
	for _, r := range s.Records { // the mean of a and a-again is that of b, in slices and windows
		switch peak := &r.Loads[0]; r.Target.Name {
		case "a":
			peak.ThroughputPerS /= 1.02
			peak.Service.CPUPerRequestNs *= 1.02
			peak.Slices.Requests = peak.Slices.Requests * 100 / 102
		case "a-again":
			r.Target.ControlOf = "a"
		}
	}
	s.Head.Baseline = "a"
	c := compare(t, at(s, "a"), at(s, "b"), Options{Metrics: []string{"peak/cpu_per_request",
		"half/p99"}, First: []string{"peak/cpu_per_request"}})
	var b strings.Builder
	if err := Text(&b, c); err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(b.String()), " ")
	has(t, "text", flat, "8 starts · VALID 8", "no significant difference (would detect ≥ 0.",
		"SUSPECT (control)", "B to A comes from slices, in which the targets take turns, with its "+
			"95 % confidence interval (t-test on logarithms, paired within starts); for half "+
			"p99 the ratio comes "+
			"from the windows.",
		"Measured in 8 starts, 320 rounds, 120 s.", "the control a-again differs by −3.9 % from "+
			"itself in peak CPU per request in this run")
	if strings.Contains(flat, "block") {
		t.Errorf("a start is called a block:\n%s", b.String())
	}
	below := strings.Join(c.Below(), "\n")
	has(t, "what stands below an answer", below, "8 starts, 320 rounds, 120 s. Ratios come from "+
		"slices, and absolute values come from windows.", "SUSPECT: the control a-again differs")
	// 0.3 % of noise in eight starts: 5 % is detected, 0.1 % is not.
	if text := c.Enough(0.05); text != "" {
		t.Errorf("5 %%: %q", text)
	}
	has(t, "advice", c.Enough(0.05, 0.001), "Detecting a difference of 0.1 % in peak CPU per "+
		"request would take about", "more starts")
}

// TestLostStartsHaveNoRatio checks that with too many lost starts there is no ratio, and no gate
// passes by it.
func TestLostStartsHaveNoRatio(t *testing.T) {
	s := slicedRows()
	for _, r := range s.Records {
		if r.Target.Name == "b" && r.Block <= 2 {
			r.Outcome, r.Failure = record.Failed, &record.Failure{Step: "measure", Error: "died"}
		}
	}
	c := compare(t, at(s, "a"), at(s, "b"), Options{})
	r := rowOf(t, c.Pairs[0], "peak", metric.Throughput)
	if r.Ratio != nil || r.Outcome != Silent || r.Grade != record.Invalid {
		t.Errorf("%s, %s: %+v", r.Grade, r.Outcome, r.Ratio)
	}
	g, err := Judge(c, []Limit{{Metric: metric.Throughput, Most: 0.5}}, 2)
	if err != nil || g.Outcome != InsufficientData {
		t.Errorf("%s, %v", g.Outcome, err)
	}
	has(t, "the gate's reason", g.Checks[0].Why, "too many starts were excluded")
}

// TestRunsThatEndedEarly checks that a run that ended early has the live interval, with a note:
// either trials of its plan have no record, or it had a time budget.
func TestRunsThatEndedEarly(t *testing.T) {
	ratioOf := func(s Side) (stats.Ratio, string) {
		c := compare(t, at(s, "a"), at(s, "b"), Options{})
		return *rowOf(t, c.Pairs[0], "peak", metric.Throughput).Ratio, strings.Join(c.Below(), "\n")
	}
	whole := slicedRows()
	planned, text := ratioOf(whole)
	if strings.Contains(text, "ended early") {
		t.Errorf("a whole run: %s", text)
	}
	killed, timed, beside := whole, whole, whole
	killed.Missing = []record.Planned{{Trial: "b9-a", Row: "a", Scenario: "read", Block: 9}}
	timed.Unfinished = true
	beside.Missing = []record.Planned{ // neither is one of the trials that are compared
		{Trial: "b9-a", Row: "a", Scenario: "write", Block: 9},
		{Trial: "pilot-a", Row: "a", Scenario: "read", Role: record.Pilot}}
	for name, s := range map[string]Side{"killed": killed, "timed": timed} {
		live, text := ratioOf(s)
		// stats.LiveRatio: at 8 starts 1.9 times as wide.
		if wider := (live.Hi - live.Lo) / (planned.Hi - planned.Lo); wider < 1.7 || wider > 2.1 {
			t.Errorf("%s: %v times as wide as planned: %+v", name, wider, live)
		}
		has(t, name, text, "ended early, so that intervals are 1.9 times as wide")
	}
	if same, _ := ratioOf(beside); same.Lo != planned.Lo || same.Hi != planned.Hi {
		t.Errorf("trials beside the comparison are missing: %+v, want %+v", same, planned)
	}
}

// TestFewStarts checks that comparison and gate decide by two or three starts as by any number, and
// say that the interval is wide. One start gives none, nor do three of a run that was ended early.
func TestFewStarts(t *testing.T) {
	check := func(starts int, killed bool, outcome, say, why string) {
		t.Helper()
		some := drifting[:starts]
		s := inSlices(runOf("r", noon, rows{"a": some, "b": some}),
			rows{"a": some, "b": scaled(some, 0.95, 0.951, 0.949)})
		s.Unfinished = killed
		c := compare(t, at(s, "a"), at(s, "b"), Options{Metrics: []string{metric.Throughput}})
		var b strings.Builder
		g, judged := Judge(c, []Limit{{Metric: metric.Throughput, Most: 0.02}}, 0)
		if err := errors.Join(judged, Text(&b, c)); err != nil || g.Outcome != outcome {
			t.Errorf("%d starts, killed %v: %s, %v, want %s", starts, killed, g.Outcome, err,
				outcome)
		}
		if got := c.Sentence("a", "b"); outcome == InsufficientData && got !=
			"b and a: no comparison of throughput: "+say+"." {
			t.Errorf("%d starts: %s", starts, got)
		}
		has(t, "the comparison", strings.Join(strings.Fields(b.String()), " "), say)
		has(t, "the gate's reason", g.Checks[0].Why, why)
	}
	none := func(starts int, killed bool, why string) {
		t.Helper()
		check(starts, killed, InsufficientData, why, "there is no interval: "+why)
	}
	none(1, false, "an interval needs at least 2 starts, but the run has 1 (raise --blocks)")
	none(3, true, "an interval of a run that was ended early needs at least 4 starts, but the run "+
		"has 3")
	const wide = "he interval from 3 starts is valid, but wide (raise --blocks to 4 or more)"
	check(3, false, stats.Fail, "T"+wide+".", "; t"+wide)
	check(4, false, stats.Fail, "slower", "more than the allowed −2.0 %")
}

// TestSentence checks that the answer begins with the primary metric and continues with the others.
func TestSentence(t *testing.T) {
	s := slicedRows()
	c := compare(t, at(s, "a"), at(s, "b"), Options{
		Metrics: []string{"peak/throughput", "peak/cpu_per_request", "half/p99"},
		First:   []string{"peak/cpu_per_request"}})
	got := c.Sentence("a", "b")
	for _, want := range []string{"b uses 5.2 % more CPU per request than a (95 % CI +5.",
		". Throughput: −5.0 % (−5.", ". p99: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	c = compare(t, at(s, "a"), at(s, "b"), Options{Metrics: []string{"peak/throughput"}})
	if got := c.Sentence("a", "b"); !strings.HasPrefix(got, "b serves 5.0 % fewer requests per "+
		"second than a (95 % CI −5.") {
		t.Error(got)
	}
	if more, fewer := Comparative(1.049, "more", "less"), Comparative(0.951, "more",
		"fewer"); more != "4.9 % more" || fewer != "4.9 % fewer" {
		t.Errorf("%q, %q", more, fewer)
	}
	if more, less := Comparative(12, "more", "less"), Comparative(0.05, "more",
		"less"); more != "1,100 % more" && more != "1100 % more" || less != "95 % less" {
		t.Errorf("%q, %q", more, less)
	}
}
