package table

import (
	"math"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/stats"
)

// TestRatioTooWideToPrint checks that a ratio whose interval spans more than a factor of three is
// unknown, with a note.
func TestRatioTooWideToPrint(t *testing.T) {
	check := func(lo, hi float64, want string, notes int) {
		t.Helper()
		target := &Target{Name: "a", Reference: "b", Metrics: []Metric{{Load: "half", Name: "p99",
			Ratio: &stats.Ratio{N: 3, Center: 2, Lo: lo, Hi: hi, Confidence: 0.95}}}}
		c := ratioCell(target, "half", "p99")
		if c.Text() != want || len(c.Notes) != notes || c.Interval.Lo != lo ||
			c.Interval.Hi != hi || c.State != c.Interval.State {
			t.Errorf("cell is %+v, want %q with %d notes", c, want, notes)
		}
	}
	check(1.5, 2.5, "2.00 [1.50, 2.50]", 0)
	check(1, 3, "2.00 [1.00, 3.00]", 0) // just a factor of 3
	check(0.99, 3, "unknown", 1)
	check(0.01, 300, "unknown", 1)
	check(0.3, 1, "unknown", 1)
	check(1.01, 30, "2.00 [1.01, 30.00]", 0) // wide, but it shows a difference
	check(0.01, 0.99, "2.00 [0.01, 0.99]", 0)
}

// TestRatioGrade checks that the grade of a ratio is unknown only if its interval is.
func TestRatioGrade(t *testing.T) {
	check := func(want string, lo, hi float64) {
		t.Helper()
		if got := RatioGrade(stats.Ratio{N: 5, Center: 2, Lo: lo, Hi: hi}, nil); got != want {
			t.Errorf("the grade of [%v, %v] is %q, want %q", lo, hi, got, want)
		}
	}
	check(record.Valid, 0.8, 2)
	check(record.Valid, 1.01, 30)
	check(UnknownGrade, 0.3, 30)
	check(UnknownGrade, math.NaN(), math.NaN())
}

// TestLevelTooWideToPrint checks the same for levels; a level of zero has no relative width.
func TestLevelTooWideToPrint(t *testing.T) {
	check := func(center, lo, hi float64, want string, notes int) {
		t.Helper()
		target := &Target{Name: "a", Metrics: []Metric{{Load: "peak", Name: "throughput",
			Summary: stats.Summary{N: 3, Center: center, Lo: lo, Hi: hi}}}}
		c := widthCell(target, "peak", "throughput")
		if c.Text() != want || len(c.Notes) != notes {
			t.Errorf("cell is %+v, want %q with %d notes", c, want, notes)
		}
	}
	check(100, 90, 112, "±12 %", 0)
	check(2, 1, 3, "±50 %", 0)
	check(2, 0.9, 3, "unknown", 1)
	check(2, 0, 3, "unknown", 1)
	check(5, 0.002, 8453, "unknown", 1)
	check(0, 0, 0, "±0 %", 0)
}

func TestResolution(t *testing.T) {
	check := func(x float64, want string) {
		t.Helper()
		if got := Resolution(x); got != want {
			t.Errorf("Resolution(%v) = %q, want %q", x, got, want)
		}
	}
	check(0.03, "3.0 %")
	check(2, "200 %")
	check(2.01, "unknown")
	check(1.8e15, "unknown")
	check(math.NaN(), units.Absent)
	check(math.Inf(1), units.Absent)
}
