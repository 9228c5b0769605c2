package stats

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"
)

func TestQuantileRanks(t *testing.T) {
	check := func(n int64, q float64, wantLo, wantHi int64, wantOK bool) {
		t.Helper()
		lo, hi, ok := QuantileRanks(n, 1, q, 0.95)
		if lo != wantLo || hi != wantHi || ok != wantOK {
			t.Errorf("QuantileRanks(%d, %v) = %d, %d, %v, want %d, %d, %v",
				n, q, lo, hi, ok, wantLo, wantHi, wantOK)
		}
	}
	// 50 -+ 1.96 * 5 = 40.2, 59.8
	check(100, 0.5, 40, 60, true)
	// 990 -+ 1.96 * sqrt 9.9 = 990 -+ 6.167
	check(1000, 0.99, 983, 997, true)
	// 377.19 -+ 1.96 * sqrt 3.7719 = 377.19 -+ 3.8065 = 373.38, 380.9965
	check(381, 0.99, 373, 381, true)
	// 376.2 + 3.8015 = 380.0015 > 380
	check(380, 0.99, 0, 0, false)
	// 3833.163 + 1.95996 * sqrt 3.833163 = 3833.163 + 3.83731 = 3837.0003 > 3837
	check(3837, 0.999, 0, 0, false)
	check(3838, 0.999, 3830, 3838, true) // 3834.162 -+ 3.8378 = 3830.32, 3837.9998
	// The lower end of low percentiles: 4.2 - 1.96 * sqrt 4.158 = 0.203; 5.5 - 4.57 = 0.926;
	// 5.6 - 1.96 * sqrt 5.544 = 0.985; 5.63 - 4.63 = 1.0028 (n = 563).
	check(420, 0.01, 0, 0, false)
	check(560, 0.01, 0, 0, false)
	check(563, 0.01, 1, 11, true)
	// 8 is the least for a median: 4 -+ 2.772; 3.5 - 2.593 = 0.907 with 7.
	check(8, 0.5, 1, 7, true)
	check(7, 0.5, 0, 0, false)
	check(0, 0.5, 0, 0, false)
	check(-1, 0.5, 0, 0, false)

	checkPanics(t, "quantile must lie between 0 and 1, not 99",
		func() { QuantileRanks(100, 1, 99, 0.95) })
}

func TestQuantileNeeds(t *testing.T) {
	check := func(q, confidence float64, want int64) {
		t.Helper()
		n := QuantileNeeds(q, confidence)
		if n != want {
			t.Errorf("QuantileNeeds(%v, %v) = %d, want %d", q, confidence, n, want)
		}
		if _, _, ok := QuantileRanks(n, 1, q, confidence); !ok {
			t.Errorf("%d requests do not do for %v", n, q)
		}
		if _, _, ok := QuantileRanks(n-1, 1, q, confidence); ok {
			t.Errorf("%d requests do for %v", n-1, q)
		}
	}
	// z^2 q / (1 - q) with z^2 = 3.84146
	check(0.9, 0.95, 35)       // 34.57
	check(0.99, 0.95, 381)     // 380.30
	check(0.999, 0.95, 3838)   // 3837.62
	check(0.9999, 0.95, 38411) // 38410.7
	check(0.99, 0.99, 657)     // z^2 = 6.6349: 656.9
	check(0.5, 0.95, 8)        // the lower rank decides, see TestQuantileRanks
	check(0.01, 0.95, 563)
}

// TestQuantileRanksExactly computes the coverage without the normal approximation: ranks lo and hi
// contain the quantile exactly if at least lo and at most hi - 1 requests are below it, and that
// number is binomial.
func TestQuantileRanksExactly(t *testing.T) {
	// At most k of n are below q (Abramowitz and Stegun 26.5.24).
	atMost := func(k, n int64, q float64) float64 {
		return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-q)
	}
	check := func(q, least, most float64) {
		t.Helper()
		needs := QuantileNeeds(q, 0.95)
		for n := needs; n < 60*needs; n += max(1, needs/50) {
			lo, hi, _ := QuantileRanks(n, 1, q, 0.95)
			got := atMost(hi-1, n, q) - atMost(lo-1, n, q)
			if math.IsNaN(got) || got < least || got > most {
				t.Errorf("n = %d, q = %v: ranks %d..%d have %.4f, want %v..%v",
					n, q, lo, hi, got, least, most)
			}
		}
	}
	check(0.5, 0.947, 0.989)
	check(0.9, 0.950, 0.989)
	check(0.99, 0.950, 0.989)
	check(0.999, 0.950, 0.989)
}
