package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/record/metric"
)

// startSpecs are the trials of a start of targets a, b and c.
func startSpecs(block int) (out []trial.Spec) {
	for i, target := range []string{"a", "b", "c"} {
		out = append(out, trial.Spec{Trial: suite.Trial{Block: block, Target: target,
			ID: fmt.Sprintf("b%d-%d-%s", block, i, target), Scenario: "read",
			Start: fmt.Sprintf("s%d", block)}})
	}
	return out
}

// startRecords are the records of a start: of the targets in lost failed ones, with the step.
func startRecords(block int, step string, lost string) (out []*record.Record) {
	for _, t := range startSpecs(block) {
		r := &record.Record{Trial: t.ID, Block: block, Scenario: t.Scenario,
			Target: record.Target{Name: t.Target}, Outcome: record.Measured,
			SideBySide: &record.SideBySide{}}
		if strings.Contains(lost, t.Target) {
			r.Outcome = record.Failed
			r.Failure = &record.Failure{Step: step, Interrupted: step == "interrupted"}
		}
		out = append(out, r)
	}
	return out
}

// TestRepeatedStarts plays runs whose starts lose targets. Each run is a list of starts, of which
// each names the targets that it lost; want has the blocks that are run beyond the planned ones.
func TestRepeatedStarts(t *testing.T) {
	check := func(planned int, step, starts, want, said string) {
		t.Helper()
		lost := strings.Split(starts, " ")
		var done []*record.Record
		for i := range planned {
			done = append(done, startRecords(i+1, step, lost[i])...)
		}
		f := further{first: planned, most: planned}
		for i := range suite.Repetitions(planned) {
			f.reserve = append(f.reserve, startSpecs(planned+i+1)...)
		}
		text, got := "", ""
		f.report = func(line string) { text += line + "\n" }
		for todo := f.next(done); len(todo) > 0; todo = f.next(done) {
			block := todo[0].Block
			if len(todo) != 3 || !todo[0].Origin.Repeats || todo[2].Start != todo[0].Start {
				t.Errorf("%s: start %d is %+v", starts, block, todo)
			}
			got += fmt.Sprint(block, " ")
			now := startRecords(block, step, lost[block-1])
			for _, r := range now {
				r.SideBySide.Repeats = true
			}
			done = append(done, now...)
		}
		if got = strings.TrimSpace(got); got != want || !strings.Contains(text, said) {
			t.Errorf("%d planned, %s: blocks %q, want %q; %s", planned, starts, got, want, text)
		}
	}
	check(6, "measure", "- - - - - -", "", "")
	check(6, "measure", "- - b - - - -", "7", "start 3 lost b: it is repeated (repetition 1 of at "+
		"most 2)")
	check(4, "ready", "- bc - - -", "5", "start 2 lost b, c: ")
	// A target that fails once more is above one start in five: it is not measured until it works.
	check(6, "measure", "- - b - - - b -", "7", "")
	check(6, "measure", "- b b - - - - -", "", "")
	check(6, "measure", "b b b b b b", "", "")
	// Two targets that fail once each are repeated, and one that fails always adds nothing.
	check(6, "measure", "b - - - c - - -", "7 8", "start 5 lost c: it is repeated (repetition 2")
	check(6, "measure", "c bc c c c c c", "7", "start 2 lost b, c")
	check(10, "measure", "- - b - - - - - - - b -", "11 12", "start 11 lost b: ")
	// At most one start in five.
	check(20, "measure", "b b b b c - - - - - - - - - - - - - - - - - - -", "21 22 23 24", "")
	check(6, "interrupted", "- - b - - - -", "", "")
	check(6, "build", "b b b b b b", "", "")
	check(6, record.StepPeer, "- - a - - - -", "", "") // another target of the start failed
}

// TestRepeatedStartCut gives the trials of a further start that have no record.
func TestRepeatedStartCut(t *testing.T) {
	done := startRecords(1, "measure", "b")
	for block := 2; block <= 5; block++ {
		done = append(done, startRecords(block, "", "")...)
	}
	f := further{first: 5, most: 5, reserve: startSpecs(6), report: func(string) {}}
	cut := startRecords(6, "", "")[:1]
	cut[0].SideBySide.Repeats = true
	todo := f.next(append(done, cut...))
	if len(todo) != 2 || todo[0].Target != "b" || todo[1].Target != "c" ||
		!todo[0].Origin.Repeats {
		t.Errorf("after a record of a: %+v", todo)
	}
	if f.reserve[0].Origin.Repeats {
		t.Error("the reserve is changed")
	}
}

// TestPrecisionPlansStarts plays runs that plan starts by the scatter of the first ones. The CPU
// time of b, against that of a, scatters by sd percent, in turns up and down.
func TestPrecisionPlansStarts(t *testing.T) {
	type run struct {
		first, most int
		within      float64 // in s; a start takes 30
		sd          float64 // in %
		lost        string  // blocks in which b fails
		unknownCPU  bool
	}
	check := func(name string, r run, want int, repeated string, said string) {
		t.Helper()
		f := further{first: r.first, most: r.most, baseline: "a", reported: map[string]bool{},
			precision: suite.Precision{Half: 0.01, Metric: metric.CPU,
				Within: suite.Duration(r.within * 1e9)}}
		for block := r.first + 1; block <= r.most+suite.Repetitions(r.most); block++ {
			f.reserve = append(f.reserve, startSpecs(block)[:2]...)
		}
		text := ""
		f.report = func(line string) { text += line + "\n" }
		measured := func(block int, origin trial.Origin) []*record.Record {
			lost := ""
			if slices.Contains(strings.Fields(r.lost), fmt.Sprint(block)) {
				lost = "b"
			}
			out := startRecords(block, "ready", lost)[:2]
			for i, x := range out {
				x.DurationNs = 15e9
				x.SideBySide.Repeats = origin.Repeats
				x.SideBySide.Stage, x.SideBySide.Planned = origin.Stage, origin.Planned
				each := 1e6
				if i == 1 {
					each *= math.Exp(r.sd / 100 * math.Sqrt(float64(r.first-1)/float64(r.first)) *
						float64(block%2*2-1))
				}
				s := &record.Sliced{Requests: 1000, TimeNs: int64(1e3 * each), CPUNs: int64(1e3 * each)}
				if r.unknownCPU {
					s.CPUNs = -1
				}
				x.Loads = []record.Load{{Slices: s}}
			}
			return out
		}
		var done []*record.Record
		for block := 1; block <= r.first; block++ {
			done = append(done, measured(block, trial.Origin{Stage: 1})...)
		}
		repeats := ""
		starts := r.first
		for todo := f.next(done); len(todo) > 0; todo = f.next(done) {
			origin := todo[0].Origin
			if starts++; origin.Repeats {
				starts--
				repeats += fmt.Sprint(todo[0].Block, " ")
			}
			// A run that is resumed here plans the same.
			resumed := f
			resumed.report = func(string) {}
			if again := resumed.next(done); again[0].ID != todo[0].ID || again[0].Origin != origin {
				t.Errorf("%s: %+v, resumed %+v", name, todo[0], again[0])
			}
			done = append(done, measured(todo[0].Block, origin)...)
		}
		if starts != want || strings.TrimSpace(repeats) != repeated ||
			!strings.Contains(text, said) {
			t.Errorf("%s: %d starts, want %d; repeated %q, want %q: %s", name, starts, want,
				repeats, repeated, text)
		}
	}
	// t(0.975, 5) = 2.571: (2.571 * 2 / 0.995)² = 26.7.
	check("2 %", run{first: 6, most: 60, sd: 2}, 27, "",
		"planned 27 starts, 21 more: the scatter of the first 6 starts needs them for ± 1.0 % of "+
			"CPU per request")
	check("steady", run{first: 6, most: 60, sd: 0.3}, 6, "",
		"the first 6 starts are enough for ± 1.0 % of CPU per request")
	check("bounded", run{first: 6, most: 60, sd: 4}, 60, "",
		"planned 60 starts, 54 more, as many as this run may have: ± 1.0 % of CPU per request "+
			"would take 107")
	check("far away", run{first: 6, most: 20, sd: 50}, 20, "", "is out of reach")
	check("in time", run{first: 6, most: 60, sd: 2, within: 600}, 20, "", "planned 20 starts, 14 "+
		"more, as many as this run may have: ")
	check("late", run{first: 6, most: 60, sd: 2, within: 60}, 6, "", "")
	check("without CPU time", run{first: 6, most: 60, sd: 2, unknownCPU: true}, 27, "",
		"of throughput")
	// Start 2 is repeated before the others are planned, start 20 after all.
	check("lost", run{first: 6, most: 60, sd: 2, lost: "2 20"}, 24, "7 26", "start 20 lost b: it is "+
		"repeated (repetition 2 of at most 5)")
}
