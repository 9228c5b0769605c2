package table

import (
	"strings"
	"testing"
)

// Under a table of starts stand where their scatter comes from, and how rare an event may be.
func TestNotesOfStarts(t *testing.T) {
	records, read := rawRun(0, 0)
	check := func(o Options, want, lacks string) {
		t.Helper()
		o.Baseline = "a"
		text := strings.Join(Texts(only(t, sheetOf(records, o)).Notes), "\n")
		if !strings.Contains(text, want) || lacks != "" && strings.Contains(text, lacks) {
			t.Errorf("want %q, and nothing of %q, in\n%s", want, lacks, text)
		}
	}
	// 40 windows of 40 ms, by 5 events.
	check(Options{Slices: read}, "rarer than one in 0.32 s of load", "Intervals of")
	// All rounds of a start are alike but for two requests, so its 0.1 % are between starts.
	check(Options{Slices: read}, "Of the scatter of peak req/s ratios between starts, ", "control")
	check(Options{}, "Ratios and tiers", "rarer than") // without the raw slices, both are unknown
	check(Options{}, "Ratios and tiers", "Of the scatter")
	for i, m := range moods { // a control that differs from itself by 10 % from start to start
		again := slicedTrial("a-again", i+1, 50e3*m.window, 50e3*m.start*(1+0.1*float64(i%2)), 20e3)
		again.Target.ControlOf = "a"
		records = append(records, again)
	}
	check(Options{}, "Intervals of b use the scatter of the control", "Intervals of b, ")
}
