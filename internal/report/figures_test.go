package report

import (
	"math"
	"strings"
	"testing"

	"prony/internal/stats"
	"prony/internal/table"
)

// TestFiguresSayFindings: what is no finding has no numbers in the page's words.
func TestFiguresSayFindings(t *testing.T) {
	check := func(lo, hi float64, want string) {
		t.Helper()
		m := table.Metric{Unit: "1/s", Summary: stats.Summary{N: 3, Center: 200, Lo: lo, Hi: hi}}
		if got := withInterval(m); got != want {
			t.Errorf("from %v to %v it says %q, want %q", lo, hi, got, want)
		}
	}
	check(150, 300, "200 [150 – 300]")
	check(1, 3e15, "200 [unknown]")
	check(math.NaN(), math.NaN(), "200")

	floor := table.Floor{Target: "a", Load: "peak", Metric: "throughput", Unit: "1/s",
		Detects: 1e15, Ratio: stats.Ratio{N: 2, Center: 1, Lo: 0.001, Hi: 1000, SDLog: 1}}
	s := floorStrip(table.Scenario{Floors: []table.Floor{floor}}, 2)
	if row := s.Groups[0].Rows[0]; !strings.HasSuffix(row.Range, "resolves unknown") {
		t.Errorf("the row says %q", row.Range)
	}
	if !strings.HasSuffix(s.Says, "What these blocks resolve is not known: they are too few.") {
		t.Errorf("the figure says %q", s.Says)
	}
}
