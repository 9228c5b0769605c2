package report

import (
	"slices"
	"testing"

	"prony.example/record"
)

// TestWarmupOfPage checks when the page has a warm-up, and that its times end at 0, where the
// window begins: three intervals of 0.5 s end 1 s before, 0.5 s before, and there.
func TestWarmupOfPage(t *testing.T) {
	check := func(intervalNs int64, perS []float64, want []float64) {
		t.Helper()
		got := warmOf(record.Warmup{IntervalNs: intervalNs, RatePerS: perS})
		if (got != nil) != (want != nil) || got != nil && !slices.Equal(got.Seconds, want) {
			t.Errorf("%v at intervals of %d ns: %+v, want times %v", perS, intervalNs, got, want)
		}
	}
	check(5e8, []float64{1, 2, 3}, []float64{-1, -0.5, 0})
	check(5e8, []float64{1}, []float64{0})
	check(1, []float64{1}, []float64{0})
	check(5e8, nil, nil)
	check(0, []float64{1}, nil)
	check(-1, []float64{1}, nil)
}
