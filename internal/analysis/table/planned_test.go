package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// TestPlannedStarts checks that if the first starts plan the others, ratios use the scatter of the
// first ones. A run with fewer starts than planned was ended.
func TestPlannedStarts(t *testing.T) {
	ratioOf := func(planned int) (stats.Ratio, Study) {
		records := slicedRun()
		for i := range records {
			records[i].SideBySide.Stage = 1
			if records[i].Block > 4 {
				records[i].SideBySide.Stage, records[i].SideBySide.Planned = 2, planned
			}
		}
		study := analyze(records, Options{Baseline: "a"})
		m, _ := study.Scenarios[0].Target("b").Metric("peak", metric.CPU)
		return *m.Ratio, study
	}
	fixed, _ := analyze(slicedRun(), Options{Baseline: "a"}).Scenarios[0].Target("b").Metric("peak",
		metric.CPU)
	r, study := ratioOf(5)
	// Of 0, 0.1, 0.2, 0 % the SD is 0.0957 %: half the interval is 3.182 * 0.0957 % / sqrt(5).
	if r.Center != fixed.Ratio.Center || r.N != 5 || r.Free != 3 ||
		math.Abs(math.Log(r.Hi/r.Lo)/2-0.00136) > 0.00001 {
		t.Errorf("planned: %+v, fixed beforehand: %+v", r, fixed.Ratio)
	}
	note := "(5 planned, from the first 4);"
	text := strings.Join(Texts(only(t, study.Sheet()).Notes), "\n")
	if !strings.Contains(text, note) {
		t.Error(text)
	}
	// A lost start has no scatter.
	records := slicedRun()
	for i := range records {
		records[i].SideBySide.Stage, records[i].SideBySide.Planned = 1+i/8, 5*(i/8)
		if records[i].Block == 2 {
			records[i].Outcome, records[i].Failure = record.Failed, &record.Failure{Step: "measure"}
		}
	}
	study = analyze(records, Options{Baseline: "a"})
	text = strings.Join(Texts(only(t, study.Sheet()).Notes), "\n")
	if !strings.Contains(text, "(5 planned, from the first 3);") {
		t.Error(text)
	}
	// A repetition replaces a start, and is none of the planned ones.
	for i := range records {
		records[i].SideBySide.Repeats = records[i].Block == 5
	}
	if sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]; !sc.Starts.Interrupted {
		t.Error("4 of 5 starts and a repetition pass for all")
	}
	r, study = ratioOf(9)
	if !study.Scenarios[0].Starts.Interrupted || r.Hi-r.Lo < 1.5*(fixed.Ratio.Hi-fixed.Ratio.Lo) {
		t.Errorf("5 of 9 starts: %+v", r)
	}
}

// TestRepeatedStart checks that a repeated start is an additional one: the lost one still counts.
func TestRepeatedStart(t *testing.T) {
	records := slices.Concat(slicedRun())
	records[5].Outcome, records[5].Failure = record.Failed, &record.Failure{Step: "ready"}
	records[8].SideBySide.Repeats, records[9].SideBySide.Repeats = true, true
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	if sc.Starts.Count != 5 || sc.Starts.Repeated != 1 || sc.Starts.Withheld("b") {
		t.Errorf("starts %+v", sc.Starts)
	}
	text := strings.Join(Texts(sc.FindingNotes()), "\n")
	if !strings.Contains(text, "1 of 5 starts excluded, most because b failed (1 repeated)") {
		t.Error(text)
	}
}
