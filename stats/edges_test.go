package stats

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// still is a machine of one speed.
func still(_ *rand.Rand, bins int) speeds {
	s := speeds{make([]float64, bins), make([]float64, bins)}
	for i := range s.work {
		s.work[i], s.share[i] = 1, 1
	}
	return s
}

// paused measures what pauses of this length, which cost 4 % of all time, take from throughput and
// add to the processor time of a request, in so many pauses.
func paused(r *rand.Rand, pauseMs float64, pauses int, cut bool) (rate, cpu float64) {
	d := design{machine: still, rounds: 500, lead: 20, window: 40, cut: cut}
	s := []service{{request: 0.02, event: pauseMs, every: pauseMs * 0.96 / 0.04}}
	var sum SliceRow
	starts := int(float64(pauses) * pauseMs / 0.04 / (d.window * float64(d.rounds)))
	for range starts {
		for _, round := range d.start(r, s).rounds {
			sum = sum.plus(round[0])
		}
	}
	work := float64(sum.Requests) * s[0].request * ms
	return work/float64(sum.TimeNs) - 1, float64(sum.CPUNs)/work - 1
}

// TestPausesCountWhole: whatever their length is, pauses that cost 4 % show as 4 % of throughput
// and as 1/0.96, 4.17 % more processor time. With 1500 pauses the standard error is 0.1 points.
func TestPausesCountWhole(t *testing.T) {
	for _, pauseMs := range []float64{5, 20, 50, 100, 200, 500} {
		r := rand.New(rand.NewPCG(uint64(pauseMs), 1))
		rate, cpu := paused(r, pauseMs, 1500, false)
		t.Logf("pauses of %3.0f ms: %+.2f %% requests/s, %+.2f %% CPU", pauseMs, 100*rate,
			100*cpu)
		if math.Abs(rate+0.04) > 0.003 || math.Abs(cpu-0.0417) > 0.003 {
			t.Errorf("pauses of %v ms: %+.4f and %+.4f", pauseMs, rate, cpu)
		}
	}
	// The oracle sees windows that end at their moments: they lose what a pause takes beyond them.
	for pauseMs, want := range map[float64]float64{100: -0.027, 200: -0.024} {
		r := rand.New(rand.NewPCG(uint64(pauseMs), 1))
		rate, _ := paused(r, pauseMs, 1500, true)
		t.Logf("cut windows, pauses of %3.0f ms: %+.2f %%", pauseMs, 100*rate)
		if math.Abs(rate-want) > 0.003 {
			t.Errorf("cut windows, pauses of %v ms: %+.4f", pauseMs, rate)
		}
	}
}

// turning is a service that answers all connections once in a turn, most of them together: answers
// come in the last part of a turn, and each connection's turns vary by this share. All
// connections are sent a request when a slice begins, so bursts are locked to that moment.
type turning struct {
	turn, burst, vary float64
	connections       int
}

// slice counts between the first completion after lead and the first one after lead and window.
func (s turning) slice(r *rand.Rand, lead, window float64) (requests int, timeMs float64) {
	var done []float64
	for i := range s.connections {
		now := -s.burst * s.turn * float64(i) / float64(s.connections)
		for now < lead+window+2*s.turn {
			now += s.turn * (1 + s.vary*r.NormFloat64())
			done = append(done, now)
		}
	}
	sort.Float64s(done)
	first := sort.SearchFloat64s(done, lead)
	last := sort.SearchFloat64s(done, lead+window)
	return last - first, done[last] - done[first]
}

// turns compares a service that is 5 % slower than another one, by totals over rounds, and returns
// the SD of a round's log ratio as well. Lead and window are in ms; the window's begin is shifted
// by up to shift turns of the slower one, at random.
func turns(r *rand.Rand, fast turning, rounds int, lead, window, shift float64) (ratio,
	sd float64) {
	slow := fast
	slow.turn *= 1.05
	var rows []SliceRow
	squares := 0.0
	for round := range rounds {
		var d [2]float64
		for target, s := range []turning{fast, slow} {
			n, timeMs := s.slice(r, lead+shift*slow.turn*r.Float64(), window)
			rows = append(rows, SliceRow{Round: round, Target: target, Requests: int64(n),
				TimeNs: int64(timeMs * ms)})
			d[target] = math.Log(float64(n) / timeMs)
		}
		x := d[1] - d[0] + math.Log(1.05)
		squares += x * x
	}
	s := NewRounds(rows).Compare(0, 1, Throughput)
	return math.Expm1(s.LogRatio), math.Sqrt(squares / float64(rounds))
}

// TestTurns: a service that is 5 % slower, 1/1.05 of the other one, shows -4.5 to -5.5 % whatever
// its bursts look like, with a lead-in of 5 turns, a window of 10 and the window's begin shifted at
// random over one turn.
func TestTurns(t *testing.T) {
	const rounds = 2000
	check := func(s turning, lead, window, shift, atLeast, atMost float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(5, 1))
		got, sd := turns(r, s, rounds, lead*s.turn, window*s.turn, shift)
		t.Logf("%+v, lead %v, window %v, shift %v turns: %+.2f %%, a round scatters by %.1f %%", s,
			lead, window, shift, 100*got, 100*sd)
		if got < atLeast || got > atMost {
			t.Errorf("%+v, %v, %v, %v: %+.4f, want %v to %v", s, lead, window, shift, got, atLeast,
				atMost)
		}
	}
	for _, s := range []turning{
		{20, 0.3, 0, 64}, {20, 0.3, 0.02, 64}, {20, 0.1, 0.02, 64}, {20, 0.3, 0.1, 64},
		{20, 0.9, 0.02, 64}, {100, 0.3, 0.02, 64},
	} {
		check(s, 5, 10, 1, -0.0505, -0.045)
	}
	// The oracle sees windows of one phase, and a shift over half a turn.
	check(turning{20, 0.3, 0, 64}, 1, 4, 0, -0.17, -0.15)
	check(turning{20, 0.1, 0.02, 64}, 5, 4, 0, -0.03, -0.025)
	check(turning{20, 0.3, 0, 64}, 1, 4, 0.5, -0.03, -0.005)
	// A lead-in of one turn begins where the turns of connections have not come apart yet.
	check(turning{20, 0.3, 0.1, 64}, 1, 2, 1, -0.0455, -0.04)
	// Short windows are right and know little: a round scatters by 27, 13, 7 and 3 %.
	for _, window := range []float64{1, 2, 5, 10} {
		check(turning{20, 0.3, 0, 64}, 5, window, 1, -0.0625, -0.035)
	}
}
