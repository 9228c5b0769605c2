package trial

import (
	"slices"
	"testing"

	"prony/internal/result"
	"prony/internal/stats"
)

func TestRates(t *testing.T) {
	// 125 ms an interval: 100 more requests are 800 a second.
	got := rates([]int64{100, 300})
	if len(got) != 2 || got[0] != 800 || got[1] != 1600 {
		t.Errorf("rates are %v, want 800 and 1600", got)
	}
}

// repeat is a series of so many values of each level, in turn.
func repeat(pairs ...float64) (out []float64) {
	for i := 0; i < len(pairs); i += 2 {
		for range int(pairs[i]) {
			out = append(out, pairs[i+1])
		}
	}
	return out
}

// recorded is a trial with a warm-up in intervals of 125 ms and a closed window, counted in
// intervals of 250 ms, of as many connections.
func recorded(warm []float64, window ...int64) *result.Record {
	return &result.Record{
		Warmup: result.Warmup{RatePerS: warm, IntervalNs: 125e6, Connections: 8},
		Loads: []result.Load{{
			Model: "closed", Connections: 8, WindowNs: int64(len(window)) * 250e6,
			Series: result.Series{IntervalNs: 250e6, Done: window},
		}},
	}
}

func TestSettle(t *testing.T) {
	check := func(name string, r *result.Record, kind string, peakAtNs, costNs int64, levels int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			settle(r)
			w := r.Warmup
			if w.Kind != kind || w.PeakAtNs != peakAtNs || w.CostNs != costNs ||
				len(w.Levels) != levels {
				t.Errorf("%s, peak at %d, cost %d, levels %v; want %s, %d, %d and %d levels",
					w.Kind, w.PeakAtNs, w.CostNs, w.Levels, kind, peakAtNs, costNs, levels)
			}
		})
	}
	eight := []int64{250, 250, 250, 250, 250, 250, 250, 250} // 1,000 a second
	check("flat", recorded(repeat(12, 1000), eight...), stats.Flat, 0, 0, 1)
	// Half the rate for 1 s, so that half a second's work is lost. The median of five intervals is
	// at the new level from the one whose neighbourhood is: 1 s.
	check("warmed", recorded(repeat(8, 500, 12, 1000), eight...), stats.Warmed, 1e9, 5e8, 2)
	// The first of 21 intervals has no partner; all that follows lies 125 ms later.
	check("odd", recorded(repeat(9, 500, 12, 1000), eight...), stats.Warmed, 1125e6, 5e8, 2)
	// The window is slower than the warm-up was: 12 intervals of 250 ms that promised twice as much
	// cost -1 each.
	check("slowed", recorded(repeat(24, 2000), eight...), stats.Slowed, 0, -3e9, 2)
	never := append(slices.Clone(eight), 100, 100, 100, 100) // a second of six that it takes
	check("never", recorded(repeat(12, 1000), never...), stats.Unsteady, 0, 0, 2)
	open := recorded(repeat(8, 500, 12, 1000), 100, 100, 100)
	open.Loads[0].Model = "open"
	check("another model", open, stats.Warmed, 1e9, 5e8, 2)
	more := recorded(repeat(8, 500, 12, 1000), 100, 100, 100)
	more.Loads[0].Connections = 9
	check("other connections", more, stats.Warmed, 1e9, 5e8, 2)
	check("no load", &result.Record{Warmup: recorded(repeat(12, 1000)).Warmup}, stats.Flat, 0, 0, 1)
	check("no warm-up", recorded(nil, eight...), stats.Flat, 0, 0, 1)
}
