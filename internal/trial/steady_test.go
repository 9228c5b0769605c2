package trial

import (
	"testing"

	"prony.example/internal/generator"
	"prony.example/internal/observe/probe"
	"prony.example/record"
	"prony.example/stats"
)

func TestRates(t *testing.T) {
	// 100 ms an interval: 100 more requests are 1,000 a second.
	got := generator.Rates([]int64{100, 300})
	if len(got) != 2 || got[0] != 1000 || got[1] != 2000 {
		t.Errorf("rates are %v, want 1000 and 2000", got)
	}
}

// repeat returns a series with this many values of each level, in turn.
func repeat(pairs ...float64) (out []float64) {
	for i := 0; i < len(pairs); i += 2 {
		for range int(pairs[i]) {
			out = append(out, pairs[i+1])
		}
	}
	return out
}

// recorded is a trial with a warm-up in intervals of 100 ms and a closed window, in intervals of
// 200 ms, with as many connections.
func recorded(warm []float64, window ...float64) *record.Record {
	r := &record.Record{
		Warmup: record.Warmup{RatePerS: warm, IntervalNs: 100e6, Connections: 8},
		Loads: []record.Load{{
			Model: "closed", Connections: 8, WindowNs: int64(len(window)) * 200e6,
			Series: record.Series{IntervalNs: 200e6},
		}},
	}
	for _, perS := range window {
		r.Loads[0].Series.Done = append(r.Loads[0].Series.Done, int64(perS/5))
	}
	return r
}

func TestSettle(t *testing.T) {
	type want struct {
		kind                 string
		steady, peak, costNs int64
		levels               int
	}
	check := func(name string, r *record.Record, kind string, steadyAtNs, peakAtNs, costNs int64,
		levels int) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			t.Helper()
			settle(r)
			w := r.Warmup
			got := want{w.Kind, w.SteadyAtNs, w.PeakAtNs, w.CostNs, len(w.Levels)}
			if wanted := (want{kind, steadyAtNs, peakAtNs, costNs, levels}); got != wanted {
				t.Errorf("%+v, want %+v; levels %v", got, wanted, w.Levels)
			}
		})
	}
	window := repeat(20, 1000) // 4 s
	check("flat", recorded(repeat(20, 1000), window...), stats.Flat, 0, 0, 0, 1)
	// Half the rate for 1 s: half a second's work is lost.
	check("warmed", recorded(repeat(10, 500, 20, 1000), window...), stats.Warmed, 1e9, 1e9, 5e8, 2)
	// The first of 31 intervals has no partner; all that follows lies 100 ms later.
	check("odd", recorded(repeat(11, 500, 20, 1000), window...), stats.Warmed, 11e8, 11e8, 5e8, 2)
	// The window is slower than the warm-up of 3 s: each second then promised one more.
	check("slowed", recorded(repeat(30, 2000), window...), stats.Slowed, 3e9, 0, -3e9, 2)
	// Twice as fast from 1 s before the window's end on is no steady state of the window; from 3 s
	// before it is one, which began 1 s into it, and 4 s at half the rate were lost.
	late := repeat(15, 1000, 5, 2000)
	check("late", recorded(repeat(30, 1000), late...), stats.Unsteady, 0, 0, 0, 2)
	// 2.6 s of a window of 8 s are longer than any tail, and not half of it.
	long := repeat(27, 1000, 13, 2000)
	check("late in a long window", recorded(repeat(30, 1000), long...), stats.Unsteady, 0, 0, 0, 2)
	mid := repeat(5, 1000, 15, 2000)
	check("mid", recorded(repeat(30, 1000), mid...), stats.Warmed, 4e9, 4e9, 2e9, 2)
	open := recorded(repeat(10, 500, 20, 1000), repeat(20, 100)...)
	open.Loads[0].Model = record.Open
	check("another model", open, stats.Warmed, 1e9, 1e9, 5e8, 2)
	more := recorded(repeat(10, 500, 20, 1000), repeat(20, 100)...)
	more.Loads[0].Connections = 9
	check("other connections", more, stats.Warmed, 1e9, 1e9, 5e8, 2)
	// A second at twice the rate, on other cores, does not count: steady from then on, no peak.
	wide := recorded(repeat(10, 2000, 20, 1000), window...)
	wide.Warmup.CoresReducedAtNs = 1e9
	check("on all cores at first", wide, stats.Flat, 1e9, 0, 0, 1)
	slower := recorded(repeat(10, 2000, 10, 500, 20, 1000), window...)
	slower.Warmup.CoresReducedAtNs = 1e9
	check("and slower then", slower, stats.Warmed, 2e9, 0, 0, 2)
	none := &record.Record{Warmup: recorded(repeat(20, 1000)).Warmup}
	check("no load", none, stats.Flat, 0, 0, 0, 1)
	check("no warm-up", recorded(nil, window...), stats.Flat, 0, 0, 0, 1)
}

// A compiler's running and waiting time in steps of 100 ms, in ms.
func TestHear(t *testing.T) {
	var c compilers
	var all probe.Roles
	ns := int64(0)
	hear := func(intervals int, runMs, waitMs int64) (at int64) {
		for range intervals {
			ns += 100e6
			all.CompilerNs += runMs * 1e6
			all.CompilerWaitNs += waitMs * 1e6
			at = c.hear(all, ns)
		}
		return at
	}
	check := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: silent from %d on, want %d", what, got, want)
		}
	}
	check("no name tells", hear(30, 0, 0), 0)
	check("busy", hear(30, 50, 50), -1) // until 6 s
	check("not for two seconds yet", hear(19, 1, 2), -1)
	check("silent", hear(1, 1, 2), 6e9)
	check("still", hear(50, 1, 2), 6e9) // until 13 s
	check("again", hear(1, 40, 0), -1)  // 59 ms of 2 s are 3 %
	check("silent again", hear(20, 1, 2), 131e8)
	check("2 % is not below it", hear(20, 2, 0), -1)
	check("starved", hear(40, 1, 10), -1) // 1 % of a core, and waits for it 11 % of the time
	check("short tasks wait, too", hear(40, 1, 8), hear(1, 1, 8))
	if at := c.atNs; at <= 0 {
		t.Errorf("short tasks: %d", at)
	}
}
