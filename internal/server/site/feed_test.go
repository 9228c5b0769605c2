package site

import (
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report/runs"
)

// TestVerdicts checks that the counts of trials after "3 numbers VALID" do not read as numbers.
func TestVerdicts(t *testing.T) {
	e := runs.Entry{Numbers: table.Numbers{Valid: 3, Suspect: 1},
		Trials: runs.Trials{Valid: 9, Suspect: 8, Invalid: 2, Failed: 1, Missing: 4}}
	const want = "3 numbers VALID, 1 SUSPECT, 2 trials INVALID, 1 failed, 4 missing"
	if got := verdicts(e); got != want {
		t.Errorf("a run is told as %q, want %q", got, want)
	}
	if got := verdicts(runs.Entry{}); got != "0 numbers" {
		t.Errorf("a run of nothing is told as %q", got)
	}
}
