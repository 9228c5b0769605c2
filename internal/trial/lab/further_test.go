package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/record"
)

// startSpecs returns the trials of a start of targets a, b and c.
func startSpecs(block int) (out []trial.Spec) {
	for i, target := range []string{"a", "b", "c"} {
		out = append(out, trial.Spec{Trial: suite.Trial{Block: block, Target: target,
			ID: fmt.Sprintf("b%d-%d-%s", block, i, target), Scenario: "read",
			Start: fmt.Sprintf("s%d", block)}})
	}
	return out
}

// startRecords returns the records of a start: failed ones for the targets in lost, with the step.
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

// TestRepeatedStarts simulates runs whose starts lose targets. Each run is a list of starts with
// the targets that each lost; want has the blocks beyond the planned ones.
func TestRepeatedStarts(t *testing.T) {
	check := func(planned int, step, starts, want, said string) {
		t.Helper()
		lost := strings.Split(starts, " ")
		var done []*record.Record
		for i := range planned {
			done = append(done, startRecords(i+1, step, lost[i])...)
		}
		f := further{first: planned, most: planned}
		// More than may be repeated, as in a run that may plan further starts.
		for i := range suite.Repetitions(planned) + 2 {
			f.reserve = append(f.reserve, startSpecs(planned+i+1)...)
			lost = append(lost, "-")
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
	check(6, "measure", "- - b - - - -", "7", "start 3 lost b, so the start is repeated "+
		"(repetition 1 of at most 2)")
	check(4, "ready", "- bc - - -", "5", "start 2 lost b, c, so")
	// A target that fails once more exceeds one start in five: its starts are not repeated.
	check(6, "measure", "- - b - - - b -", "7", "")
	check(6, "measure", "- b b - - - - -", "", "")
	check(6, "measure", "b b b b b b", "", "")
	// Two targets that fail once each are repeated, and one that fails always adds nothing.
	check(6, "measure", "b - - - c - - -", "7 8",
		"start 5 lost c, so the start is repeated (repetition 2")
	check(6, "measure", "c bc c c c c c", "7", "start 2 lost b, c")
	check(10, "measure", "- - b - - - - - - - b -", "11 12", "start 11 lost b, so")
	// At most one start in five, also if three targets fail once each.
	check(10, "measure", "a b c - - - - - - -", "11 12", "start 2 lost b, so")
	check(20, "measure", "b b b b c - - - - - - - - - - - - - - - - - - -", "21 22 23 24", "")
	check(6, "interrupted", "- - b - - - -", "", "")
	check(6, "build", "b b b b b b", "", "")
	check(6, record.StepPeer, "- - a - - - -", "", "") // another target of the start failed
}

// TestRepeatedStartCut runs a further start as a whole again if one of its records is missing,
// because its trials count only side by side.
func TestRepeatedStartCut(t *testing.T) {
	done := startRecords(1, "measure", "b")
	for block := 2; block <= 5; block++ {
		done = append(done, startRecords(block, "", "")...)
	}
	f := further{first: 5, most: 5, reserve: startSpecs(6), report: func(string) {}}
	cut := startRecords(6, "", "")[:1]
	cut[0].SideBySide.Repeats = true
	again := toRepeat(f.reserve, append(slices.Clone(done), cut...))
	if !slices.Equal(again, []string{cut[0].Trial}) {
		t.Errorf("with a record of %s alone, these are repeated: %v", cut[0].Trial, again)
	}
	todo := f.next(done) // without the repeated ones, as resume gives them
	if len(todo) != 3 || todo[0].Target != "a" || todo[2].Target != "c" ||
		!todo[0].Origin.Repeats {
		t.Errorf("the start runs again with %+v", todo)
	}
	if f.reserve[0].Origin.Repeats {
		t.Error("the reserve is changed")
	}
}

// TestRepeatedStartOfAGroup repeats a lost start with the targets of its own group.
func TestRepeatedStartOfAGroup(t *testing.T) {
	var done []*record.Record
	for block := 1; block <= 8; block++ { // four of each group
		lost := map[int]string{4: "b"}[block]
		records := startRecords(block, "ready", lost)
		for _, r := range records {
			r.SideBySide.Group = 2 - block%2
		}
		done = append(done, records...)
	}
	f := further{first: 4, most: 4, report: func(string) {}}
	for block := 9; block <= 10; block++ {
		for _, x := range startSpecs(block) {
			x.Group = 2 - block%2
			f.reserve = append(f.reserve, x)
		}
	}
	todo := f.next(done)
	if len(todo) != 3 || todo[0].Block != 10 || !todo[0].Origin.Repeats {
		t.Fatalf("after start 4 of group 2 is lost: %+v", todo)
	}
	again := startRecords(10, "", "")
	for _, r := range again {
		r.SideBySide.Group, r.SideBySide.Repeats = 2, true
	}
	if todo := f.next(append(done, again...)); todo != nil {
		t.Errorf("then: %+v", todo)
	}
}
