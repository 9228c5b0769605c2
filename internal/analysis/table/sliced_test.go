package table

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// slicedTrial is a trial of a start: alone it serves windowPerS, and in slices slicePerS at cpuNs
// of processor time a request.
func slicedTrial(target string, start int, windowPerS, slicePerS, cpuNs float64) record.Record {
	r := trial(target, start, windowPerS)
	r.Time, r.DurationNs = time.Unix(int64(start)*100, 0).UTC(), 10e9
	r.SideBySide = &record.SideBySide{Rounds: 40, LeadInNs: 20e6, WindowNs: 40e6,
		Freeze: record.FreezeSignals}
	requests := slicePerS * 1.6 // 40 windows of 40 ms
	r.Loads[0].Service.CPUPerRequestNs = cpuNs
	r.Loads[0].Slices = &record.Sliced{Slices: 40, Requests: int64(requests), TimeNs: 1.6e9,
		CPUNs: int64(cpuNs * requests), IdleTimeNs: 2.4e9}
	return r
}

// moods are what the machine does to starts and windows: windows lie minutes apart.
var moods = []struct{ start, window float64 }{
	{1, 0.8}, {0.7, 1.3}, {1.4, 1}, {0.9, 0.6}, {1.1, 1.2}}

// slicedRun is a run of five starts of two targets, of which b is 5 % slower in slices; in the
// windows nobody could tell.
func slicedRun() (records []record.Record) {
	for i, m := range moods {
		noise := 1 + 0.001*float64(i%3)
		records = append(records,
			slicedTrial("a", i+1, 50e3*m.window, 50e3*m.start, 20e3),
			slicedTrial("b", i+1, 50e3*moods[4-i].window, 47.5e3*m.start*noise, 21e3*noise))
	}
	return records
}

// Ratios and tiers come from slices, levels from the windows.
func TestRatiosComeFromSlices(t *testing.T) {
	study := analyze(slicedRun(), Options{Baseline: "a"})
	sc := study.Scenarios[0]
	m, _ := sc.Target("b").Metric("peak", metric.Throughput)
	// 0.95 times 1.000, 1.001, 1.002, 1.000, 1.001, in whole requests: 0.95 · 1.0008.
	if m.Source != FromSlices || m.Ratio == nil || math.Abs(m.Ratio.Center-0.95*1.0008) > 1e-4 ||
		m.Ratio.N != 5 || m.Ratio.Hi-m.Ratio.Lo > 0.005 {
		t.Errorf("ratio from %q: %+v", m.Source, m.Ratio)
	}
	if m.Summary.Center != 50e3 { // the median of 60k, 30k, 50k, 65k, 40k
		t.Errorf("level %v", m.Summary.Center)
	}
	cpu, _ := sc.Target("b").Metric("peak", metric.CPU)
	if cpu.Source != FromSlices || math.Abs(cpu.Ratio.Center-1.05*1.0008) > 1e-4 {
		t.Errorf("CPU ratio from %q: %+v", cpu.Source, cpu.Ratio)
	}
	if got := [2]int{sc.Target("a").Tier, sc.Target("b").Tier}; got != [2]int{1, 2} {
		t.Errorf("tiers %v", got)
	}
	tab := only(t, study.Sheet())
	text := strings.Join(Texts(tab.Notes), "\n")
	for _, want := range []string{"Ratios and tiers of peak req/s, peak CPU/request come from " +
		"slices", "(5 starts, 200 rounds, 100 s)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Noise of peak") {
		t.Errorf("advice about windows, which decide nothing:\n%s", text)
	}
}

// Without slices on one side a ratio is one of windows, and so are tiers.
func TestSlicesOfOneSideAreNoPair(t *testing.T) {
	records := slicedRun()
	for i := range records {
		if records[i].Target.Name == "b" {
			records[i].Loads[0].Slices = nil
		}
	}
	study := analyze(records, Options{Baseline: "a"})
	sc := study.Scenarios[0]
	m, _ := sc.Target("b").Metric("peak", metric.Throughput)
	if m.Source != FromWindows || m.Ratio == nil || sc.Ranking.Source != FromWindows {
		t.Errorf("ratio from %q: %+v, ranked by %q", m.Source, m.Ratio, sc.Ranking.Source)
	}
	// Where processor time is unknown in one start, no other start speaks for it.
	records = slicedRun()
	records[3].Loads[0].Slices.CPUNs = -1
	study = analyze(records, Options{Baseline: "a"})
	cpu, _ := study.Scenarios[0].Target("b").Metric("peak", metric.CPU)
	if cpu.Source != FromWindows || len(cpu.Sliced) != 0 {
		t.Errorf("CPU ratio from %q of %v", cpu.Source, cpu.Sliced)
	}
}

// What disturbs the windows alone does not touch ratios from slices, and the other way round.
func TestFindingsOfPhases(t *testing.T) {
	check := func(phase string, level, ratio int) {
		t.Helper()
		records := slicedRun()
		for i := range 2 {
			records[i].Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
				{Rule: "steal", Load: "peak", Phase: phase, Grade: record.Invalid}}}
		}
		study := analyze(records, Options{Baseline: "a"})
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.Throughput)
		if m.Summary.N != level || m.Ratio.N != ratio {
			t.Errorf("phase %q: level of %d trials, ratio of %d starts, want %d and %d", phase,
				m.Summary.N, m.Ratio.N, level, ratio)
		}
	}
	check(record.PhaseWindow, 4, 5)
	check(record.PhaseSlices, 5, 4)
	check("", 4, 4)
}

// The answer of a trial is that of its slices; without slices it is that of the trial.
func TestAnswerGrade(t *testing.T) {
	check := func(phase string, sliced bool, want string) {
		t.Helper()
		r := slicedRun()[0]
		if !sliced {
			r.Loads[0].Slices = nil
		}
		r.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
			{Rule: "steal", Load: "peak", Phase: phase, Grade: record.Invalid}}}
		if got := AnswerGrade(&r); got != want {
			t.Errorf("phase %q, slices %v: %s, want %s", phase, sliced, got, want)
		}
	}
	check(record.PhaseWindow, true, record.Valid)
	check(record.PhaseSlices, true, record.Invalid)
	check("", true, record.Invalid)
	check("", false, record.Invalid)
	mixed := slicedRun()[0]
	users := mixed.Loads[0]
	users.Name, users.Slices = "users", nil
	mixed.Loads = append(mixed.Loads, users)
	mixed.Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
		{Rule: "steal", Load: "users", Phase: record.PhaseWindow, Grade: record.Invalid}}}
	if got := AnswerGrade(&mixed); got != record.Invalid {
		t.Errorf("a load without slices is INVALID, and the trial is %s", got)
	}
	failed := slicedRun()[0]
	failed.Outcome = record.Failed
	if got := AnswerGrade(&failed); got != FailedGrade {
		t.Errorf("a failed trial is %s", got)
	}
}

// A target whose windows are all INVALID has no level, and its ratio all the same.
func TestRatioWithoutLevel(t *testing.T) {
	records := slicedRun()
	for i := range records {
		if records[i].Target.Name == "b" {
			records[i].Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
				{Rule: "steal", Load: "peak", Phase: record.PhaseWindow, Grade: record.Invalid}}}
		}
	}
	tab := only(t, sheetOf(records, Options{Baseline: "a"}))
	level := find(t, tab, "b", "peak/throughput")
	ratio := find(t, tab, "b", "peak/ratio")
	if level.Text() != units.Absent || ratio.Number() != "0.951" {
		t.Errorf("level %s, ratio %s", level.Text(), ratio.Number())
	}
}

// A ratio from slices of too few starts has a note that says what to do, with an interval or
// without one.
func TestRatioOfFewStarts(t *testing.T) {
	for starts, want := range map[int]string{
		1: "an interval needs at least 2 starts, but the run has 1 (raise --blocks)",
		2: "the interval from 2 starts is valid, but wide (raise --blocks to 4 or more)",
		3: "the interval from 3 starts is valid, but wide (raise --blocks to 4 or more)", 4: ""} {
		table := only(t, sheetOf(slicedRun()[:2*starts], Options{Baseline: "a"}))
		var text string
		for _, f := range table.Footnotes {
			text += f.String() + "\n"
		}
		if n := strings.Count(text, want); n != 1 && want != "" ||
			want == "" && strings.Contains(text, "starts") {
			t.Errorf("%d starts: %d times in\n%s", starts, n, text)
		}
	}
}

// A run that its user ended has no lost start by that, and intervals that allow for the choice of
// its end.
func TestInterruptedRun(t *testing.T) {
	ratioOf := func(records []record.Record) (stats.Ratio, *Starts) {
		study := analyze(records, Options{Baseline: "a"})
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.Throughput)
		return *m.Ratio, study.Scenarios[0].Starts
	}
	records := slicedRun()
	planned, _ := ratioOf(records[:8])
	for i := range 2 {
		r := &records[8+i]
		r.Outcome = record.Failed
		r.Failure = &record.Failure{Step: "warmup", Interrupted: true}
	}
	live, starts := ratioOf(records)
	if len(starts.Lost) > 0 || starts.Count != 4 || !starts.Interrupted || live.N != 4 {
		t.Errorf("%d starts in the ratio of %+v", live.N, starts)
	}
	// stats.LiveRatio: at 4 starts 2.1 times as wide.
	if wider := (live.Hi - live.Lo) / (planned.Hi - planned.Lo); wider < 1.9 || wider > 2.4 {
		t.Errorf("%v times as wide as planned: %+v, %+v", wider, live, planned)
	}
}

// A start in which a target failed counts for nobody, and is counted by the target.
func TestLostStarts(t *testing.T) {
	records := slices.Concat(slicedRun())
	for i, name := range []string{"a", "b"} {
		r := &records[2*2+i]
		r.Outcome, r.Failure = record.Failed, &record.Failure{Step: record.StepPeer}
		if name == "b" {
			r.Failure.Step = "measure"
		}
	}
	study := analyze(records, Options{Baseline: "a"})
	sc := study.Scenarios[0]
	m, _ := sc.Target("b").Metric("peak", metric.Throughput)
	if m.Ratio.N != 4 || sc.Starts.Count != 5 || !slices.Equal(sc.Starts.Lost, []int{3}) ||
		sc.Starts.Rounds != 160 ||
		len(sc.Starts.LostBy) != 1 || sc.Starts.LostBy["b"] != 1 {
		t.Errorf("ratio of %d starts, %+v", m.Ratio.N, sc.Starts)
	}
	for ns, want := range map[int64]string{sc.Starts.ElapsedNs: "100 s", 7230e9: "2 h"} {
		sc.Starts.ElapsedNs = ns
		if got := sc.Starts.String(); got != "4 of 5 starts, 160 rounds, "+want {
			t.Error(got)
		}
	}
}

// Response times in open slices are those of one rate for all; closed slices have none.
func TestResponseTimesOfSlices(t *testing.T) {
	var records []record.Record
	for i, m := range moods {
		for name, ns := range map[string]float64{"a": 1e6, "b": 1.1e6} {
			r := with(slicedTrial(name, i+1, 1000, 1000, 1e3), 5000, int64(1e6*m.window))
			r.Loads[1].Slices = &record.Sliced{RatePerS: 500, Slices: 40, Requests: 500,
				TimeNs: 1e9, CPUNs: -1, ResponseTime: record.Dist{Count: 500,
					P50Ns: int64(ns * m.start), P90Ns: int64(ns * m.start),
					P99Ns: int64(2 * ns * m.start), P999Ns: int64(3 * ns * m.start)}}
			records = append(records, r)
		}
	}
	study := analyze(records, Options{Baseline: "a"})
	check := func(load, name string, want Source) {
		t.Helper()
		m, _ := study.Scenarios[0].Target("b").Metric(load, name)
		if m.Source != want {
			t.Errorf("%s %s comes from %q", load, name, m.Source)
		}
		if want == FromSlices && math.Abs(m.Ratio.Center-1.1) > 1e-6 {
			t.Errorf("%s %s: %+v", load, name, m.Ratio)
		}
	}
	if n := stats.QuantileNeeds(0.99, 0.95); n > 500 {
		t.Fatalf("p99 needs %d answers", n)
	}
	check("half", "p99", FromSlices)
	check("half", "p99.9", FromWindows) // 500 answers are too few
	check("half", metric.Throughput, FromWindows)
	check("peak", "p99", FromWindows)
}

// suspects lists the grade of b's ratio by metric and the rules that doubt it.
func suspects(sc *Scenario, name string) string {
	m, _ := sc.Find("b").Metric("peak", name)
	text := m.RatioGrade()
	if m.RatioDoubt != nil {
		text += " " + strings.Join(m.RatioDoubt.Rules, ", ")
	}
	return text
}

// A bound on slices counts against the ratio's interval, on whichever side it is.
func TestIdleWorkDoubtsRatios(t *testing.T) {
	check := func(target string, by float64, want string) {
		t.Helper()
		records := slicedRun()
		for i := range records {
			if records[i].Target.Name == target {
				records[i].Verdict.Findings = []record.Finding{{Rule: "idle work", Load: "peak",
					Phase: record.PhaseSlices, Grade: record.Valid, Value: by,
					PossibleBias: []record.Bias{{Metric: metric.Throughput, Share: by}}}}
			}
		}
		study := analyze(records, Options{Baseline: "a"})
		sc := study.Scenarios[0]
		if got := suspects(sc, metric.Throughput); got != want {
			t.Errorf("%s moved by %v: %q, want %q", target, by, got, want)
		}
		if got := suspects(sc, metric.CPU); got != record.Valid {
			t.Errorf("CPU, which nothing moved: %q", got)
		}
		level := find(t, only(t, study.Sheet()), "b", "peak/throughput")
		if level.Grade == record.Suspect {
			t.Error("the level is SUSPECT by what its slices met")
		}
	}
	check("b", 0.04, "SUSPECT idle work")
	check("a", 0.04, "SUSPECT idle work")
	check("a", 0.0005, "VALID") // the interval is ±0.1 %
}

// A control that differs from itself is said of all ratios of that metric, and beside them. It is
// one also if both ran in containers, whose rows have other names than the targets.
func TestControlThatDiffers(t *testing.T) {
	for launcher, row := range map[string]string{"": "a-again", "docker": "a-again in docker"} {
		testControlThatDiffers(t, launcher, row)
	}
}

func testControlThatDiffers(t *testing.T, launcher, row string) {
	run := func(by float64) *Scenario {
		records := slicedRun()
		for i, m := range moods {
			r := slicedTrial("a-again", i+1, 50e3*m.window, by*50e3*m.start*(1+0.0001*float64(i)),
				20e3*(1+0.001*float64(i%2)*float64(1-i)))
			r.Target.ControlOf = "a"
			records = append(records, r)
		}
		for i := range records {
			records[i].Target.Launcher = launcher
		}
		study := analyze(records, Options{Baseline: "a"})
		return study.Scenarios[0]
	}
	sc := run(1.04)
	if got := suspects(sc, metric.Throughput); got != "SUSPECT control" {
		t.Error(got)
	}
	if got := suspects(sc, metric.CPU); got != record.Valid {
		t.Error(got)
	}
	text := strings.Join(Texts(sc.FindingNotes()), "\n")
	if !strings.Contains(text, "the control "+row+" differs by +4.0 % from itself in peak "+
		"throughput in this run") {
		t.Error(text)
	}
	// 1.04 of one instance is 1.0198 of the mean of both.
	m, _ := sc.Find("b").Metric("peak", metric.Throughput)
	if math.Abs(m.Ratio.Center-0.95/math.Sqrt(1.04)) > 0.001 {
		t.Errorf("%s: ratio %v", row, m.Ratio.Center)
	}
	sc = run(1)
	if got := suspects(sc, metric.Throughput); got != record.Valid {
		t.Errorf("of an equal control: %s, %v", got, Texts(sc.FindingNotes()))
	}
}

// Where the windows contradict the slices beyond their error, the ratio says so.
func TestLevelsThatDisagree(t *testing.T) {
	check := func(windows []float64, want string) {
		t.Helper()
		records := slicedRun()
		for i := range moods {
			records[2*i].Loads[0].ThroughputPerS = 50e3
			records[2*i+1].Loads[0].ThroughputPerS = 50e3 * windows[i]
		}
		study := analyze(records, Options{Baseline: "a"})
		if got := suspects(study.Scenarios[0], metric.Throughput); got != want {
			t.Errorf("windows %v: %q, want %q", windows, got, want)
		}
	}
	check([]float64{1.1, 1.11, 1.09, 1.1, 1.12}, "SUSPECT levels")
	check([]float64{0.95, 0.96, 0.94, 0.95, 0.96}, "VALID")
	check([]float64{0.5, 1.6, 1.1, 0.9, 1.3}, "VALID") // they say nothing
}

// If a target lacks more than one start in five, there is no ratio and no tier.
func TestTooManyLostStarts(t *testing.T) {
	records := slicedRun()
	for i := range 2 {
		records[2*i+1].Outcome = record.Failed
		records[2*i+1].Failure = &record.Failure{Step: "measure", Error: "it died"}
	}
	study := analyze(records, Options{Baseline: "a"})
	sc := study.Scenarios[0]
	m, _ := sc.Target("b").Metric("peak", metric.Throughput)
	if m.Ratio != nil || len(sc.Ranking.Tiers) > 0 || len(sc.Findings) == 0 ||
		sc.Findings[0].Grade != record.Invalid || sc.Findings[0].Facts.Name != "b" {
		t.Errorf("%+v, tiers %v, %+v", m.Ratio, sc.Ranking.Tiers, sc.Findings)
	}
	tab := only(t, study.Sheet())
	if c := find(t, tab, "b", "peak/ratio"); c.Text() != units.Absent {
		t.Errorf("ratio %s", c.Text())
	}
}

// A target that misses two of five starts has no ratio and no tier; the others keep theirs.
func TestTargetThatMissesStarts(t *testing.T) {
	var records []record.Record
	for _, r := range slicedRun() {
		records = append(records, r)
		if r.Target.Name == "b" {
			c := r
			c.Target.Name, c.Trial = "c", "c-"+r.Trial
			if r.Block <= 2 {
				c.Outcome = record.Failed
				c.Failure = &record.Failure{Step: "launch", Error: "it does not come up"}
			}
			records = append(records, c)
		}
	}
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	b, _ := sc.Target("b").Metric("peak", metric.Throughput)
	c, _ := sc.Target("c").Metric("peak", metric.Throughput)
	if b.Ratio == nil || b.Ratio.N != 5 || c.Ratio != nil || sc.Target("b").Tier == 0 ||
		sc.Target("c").Tier != 0 || sc.Starts.Invalid || len(sc.Starts.Lost) > 0 {
		t.Errorf("b %+v, c %+v, %+v", b.Ratio, c.Ratio, sc.Starts)
	}
	if len(sc.Findings) != 1 || sc.Findings[0].Grade != record.Invalid ||
		sc.Findings[0].Facts.Name != "c" || sc.Findings[0].Facts.Count != 2 {
		t.Errorf("%+v", sc.Findings)
	}
}

// Two targets that miss different starts have too few in common: the finding names both.
func TestTargetsThatMissDifferentStarts(t *testing.T) {
	records := slicedRun()
	for i := range records {
		r := &records[i]
		if r.Target.Name == "a" && r.Block == 1 || r.Target.Name == "b" && r.Block == 2 {
			r.Outcome, r.Failure = record.Failed, &record.Failure{Step: "launch", Error: "no"}
		}
	}
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	m, _ := sc.Target("b").Metric("peak", metric.Throughput)
	if m.Ratio != nil || len(sc.Findings) == 0 || sc.Findings[0].Grade != record.Invalid ||
		sc.Findings[0].Facts.Name != "a and b" || sc.Findings[0].Facts.Count != 2 {
		t.Errorf("%+v, %+v", m.Ratio, sc.Findings)
	}
}
