//go:build linux && !portable

package main

import (
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/internal/report/compare"
	"prony.example/internal/trial/lab"
	"prony.example/record"
	"prony.example/stats"
)

// An answer side by side prints once, for all services, how much was measured and the result of all
// starts; and how many starts would detect more.
func TestAnswerSideBySide(t *testing.T) {
	against := func(name string) lab.Against {
		ratio := &stats.Ratio{N: 8, Center: 1.002, Lo: 0.998, Hi: 1.006, P: 0.3, SDLog: 0.005}
		return lab.Against{Name: name, Comparison: compare.Comparison{
			Findings: []record.Finding{{Rule: "control", Load: "peak", Grade: record.Suspect,
				Facts: record.Facts{Name: "old-again", Subject: "throughput", Observed: 1.04}}},
			Pairs: []compare.Pair{{Starts: &table.Starts{Count: 8, Rounds: 320, ElapsedNs: 118e9},
				Rows: []compare.Row{{Load: "peak", Metric: "throughput", Label: "throughput",
					Ratio: ratio, Source: table.FromSlices, Outcome: compare.Indistinguishable,
					Text: "no significant difference", Detectable: 0.008, Grade: record.Suspect,
					Doubt: &table.Doubt{Rules: []string{"control"}}}}}}}}
	}
	var b strings.Builder
	a := &app{stdout: &b}
	err := a.answer(lab.Answer{First: "old", Against: []lab.Against{against("new"),
		against("old-again")}, Enough: "Detecting more would take 3 starts."})
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"new peak throughput +0.2 % (−0.2 % to +0.6 %) no significant difference (would detect " +
			"≥ 0.8 %); SUSPECT (control)",
		"8 starts, 320 rounds, 118 s. Ratios come from slices, and absolute values come from " +
			"windows.",
		"SUSPECT: the control old-again differs by +4.0 % from itself in peak throughput",
		"Detecting more would take 3 starts.",
	} {
		if strings.Count(flat, want) != 1 {
			t.Errorf("not once %q:\n%s", want, b.String())
		}
	}
}
