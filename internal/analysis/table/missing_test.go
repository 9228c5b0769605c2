package table

import (
	"strings"
	"testing"

	"prony.example/record"
)

// TestMissing checks that planned trials without a record appear in head, tally and rows; those
// outside the comparison only in the tally.
func TestMissing(t *testing.T) {
	planned := func(id, row, scenario string, block int, role string) record.Planned {
		return record.Planned{Trial: id, Row: row, Scenario: scenario, Block: block, Role: role}
	}
	o := Options{Missing: []record.Planned{planned("b1-02-b", "b", "s", 1, ""),
		planned("b2-03-a", "a", "s", 2, ""), planned("b2-04-b", "b", "s", 2, ""),
		planned("observed-05-a", "a", "s", 1, record.Observed), {Trial: "b9-09-old"}}}
	check := func(records []record.Record, head string, rows ...string) {
		t.Helper()
		sh := sheetOf(records, o)
		if !strings.Contains(sh.Head.String(), head) {
			t.Errorf("head %q, want %q in it", sh.Head, head)
		}
		tally := sh.Verdicts[len(sh.Verdicts)-1]
		if tally.Grade != MissingGrade || tally.Trials != 5 ||
			!strings.HasSuffix(tally.Reason, "observed-05-a, b9-09-old") {
			t.Errorf("tally %+v", tally)
		}
		for i, row := range sh.Tables[0].Rows {
			if got := row.Name + ": " + row.Span.String(); got != rows[i] {
				t.Errorf("row %d is %q, want %q", i, got, rows[i])
			}
		}
	}
	a := record.Record{Run: "r", Trial: "b1-01-a", Block: 1, Scenario: "s",
		Target: record.Target{Name: "a"}, Outcome: record.Measured,
		Verdict: record.Verdict{Grade: record.Valid}}
	gone := "missing in blocks 1, 2: the trial was planned, but has no record"
	check([]record.Record{a}, "2 targets × 2 blocks", "a: ", "b: "+gone)
	check(nil, "no records of 2 targets × 2 blocks",
		"b: "+gone, "a: missing in block 2: the trial was planned, but has no record")
	sh := sheetOf([]record.Record{a}, o)
	if notes := sh.Tables[0].Footnotes; len(notes) == 0 ||
		notes[0][0].Kind != NoteTrialsMissing ||
		!strings.HasPrefix(notes[0].String(), "missing in block 2: the trial was planned") {
		t.Errorf("footnotes %q", notes)
	}
}

// A trial that ended because its user stopped the run is stopped, and not failed: nothing was wrong
// with its target.
func TestStopped(t *testing.T) {
	records := []record.Record{
		{Run: "r", Trial: "b1-01-a", Block: 1, Scenario: "s", Target: record.Target{Name: "a"},
			Outcome: record.Measured, Verdict: record.Verdict{Grade: record.Valid}},
		{Run: "r", Trial: "b2-02-a", Block: 2, Scenario: "s", Target: record.Target{Name: "a"},
			Outcome: "failed", Failure: &record.Failure{Step: "measure", Error: "interrupted",
				Interrupted: true}},
	}
	sh := sheetOf(records, Options{})
	for _, tally := range sh.Verdicts {
		if tally.Grade == FailedGrade {
			t.Errorf("a stopped trial is counted as %+v", tally)
		}
	}
	if got := sh.Verdicts[len(sh.Verdicts)-1]; got != (Tally{StoppedGrade, 1, "measure"}) {
		t.Errorf("the tally is %+v", got)
	}
	const want = "stopped in block 2, excluded from results: measure"
	if notes := sh.Tables[0].Footnotes; len(notes) != 1 ||
		!strings.HasPrefix(notes[0].String(), want) {
		t.Errorf("footnotes %q, want %q", notes, want)
	}
}
