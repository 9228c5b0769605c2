package table

import (
	"testing"

	"prony/internal/stats"
)

// A ratio whose interval spans two orders of magnitude is printed without it, and says why.
func TestRatioTooWideToPrint(t *testing.T) {
	check := func(lo, hi float64, want string, notes int) {
		t.Helper()
		target := &Target{Name: "a", Reference: "b", Metrics: []Metric{{Load: "half", Name: "p99",
			Ratio: &stats.Ratio{N: 3, Center: 2, Lo: lo, Hi: hi, Confidence: 0.95}}}}
		n := &noteBook{}
		c := ratioCell(target, n, "half", "p99", Options{Baseline: "b"})
		if c.Text != want || len(c.Refs) != notes || c.Lo != lo || c.Hi != hi {
			t.Errorf("cell is %+v, want %q with %d notes", c, want, notes)
		}
	}
	check(0.4, 10, "2.00 [0.40, 10.00]", 0)
	check(0.1, 10, "2.00 [0.10, 10.00]", 0) // just a factor of 100
	check(0.09, 10, "2.00", 1)
}
