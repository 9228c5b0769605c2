package capacity

import (
	"math"
	"testing"
)

func TestLookUp(t *testing.T) {
	table := chances()
	for z := -7.0; z < 7; z += 0.0373 {
		q := lapseHigh + (1-lapseLow-lapseHigh)*0.5*math.Erfc(z/math.Sqrt2)
		for _, row := range []struct{ got, want float64 }{
			{lookUp(table.heldChance, z), q}, {lookUp(table.logHold, z), math.Log(q)},
			{lookUp(table.logBreak, z), math.Log(1 - q)},
		} {
			if math.Abs(row.got-row.want) > 1e-4 {
				t.Errorf("at %.3f: %v, want %v", z, row.got, row.want)
			}
		}
	}
}

// ladder returns a step at each of n rates 1 % apart around exp(0); steps below hold, steps above
// fail.
func ladder(n int) (seen []observation) {
	for i := range n {
		x := 0.01 * (float64(i) - float64(n-1)/2)
		seen = append(seen, observation{x: x, passed: x < 0})
	}
	return seen
}

func TestFit(t *testing.T) {
	check := func(seen []observation, center, within, widest float64) {
		t.Helper()
		p := fit(seen, -0.1, 0.1)
		if math.Abs(p.center(0.5)-center) > within || p.width() > widest {
			t.Errorf("center %.4f, width %.4f, want %v ± %v, %v", p.center(0.5), p.width(), center,
				within, widest)
		}
		sum := 0.0
		for _, row := range p.weight {
			sum += total(row)
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(total(p.margin)-1) > 1e-9 {
			t.Errorf("weights add up to %v", sum)
		}
		// Half of the steps hold at the posterior's center, nearly: the lapses differ by 1 %.
		if q := p.holds(p.at(0.5)); math.Abs(q-0.5) > 1e-3 {
			t.Errorf("at(0.5) holds with %v", q)
		}
		if p.at(0.85) >= p.at(0.5) || p.at(0.5) >= p.at(0.15) {
			t.Errorf("levels %v, %v, %v", p.at(0.85), p.at(0.5), p.at(0.15))
		}
	}
	check(ladder(20), 0, 0.002, 0.02)
	// A lapse 30 % below the boundary neither moves nor widens it; without lapses in the model the
	// width would be of that order.
	accident := append(ladder(20), observation{x: -0.3})
	check(accident, 0, 0.005, 0.03)
	check(append(ladder(20), observation{x: 0.3, passed: true}), 0, 0.005, 0.03)
	// The bracket is wrong by a factor of e, so the prior's end must move.
	moved := ladder(20)
	for i := range moved {
		moved[i].x++
	}
	check(moved, 1, 0.01, 0.02)
}

// shifted returns ladders from below and from above, with this distance between steps and between
// ladders.
func shifted(step, apart float64) (seen []observation) {
	for _, way := range []float64{-1, 1} {
		for range 3 {
			for _, o := range ladder(20) {
				o.x, o.way = o.x*step/0.01+way*apart/2, way
				seen = append(seen, o)
			}
		}
	}
	return seen
}

func TestShift(t *testing.T) {
	seen := shifted(0.01, 0.08)
	p := fit(seen, -0.1, 0.1)
	lo, mid, hi := p.shift(seen, 0.025)
	if math.Abs(mid-0.08) > 0.02 || lo <= 0 || lo >= mid || hi <= mid {
		t.Errorf("shift %.4f [%.4f, %.4f], want 0.08", mid, lo, hi)
	}
	for i := range seen {
		seen[i].way = 0
	}
	if lo, _, hi := p.shift(seen, 0.025); lo > -0.4 || hi < 0.4 {
		t.Errorf("shift within %.4f and %.4f where nothing is known of it", lo, hi)
	}
}

func TestHysteresisTold(t *testing.T) {
	for _, row := range []struct {
		step, apart float64
		differs     bool
	}{
		{0.01, 0.08, true}, {0.01, -0.08, true}, {0.01, 0, false},
		{0.001, 0.006, false}, // exists, but is below 1 %
		{0.001, 0.02, true},
	} {
		s := &search{observations: shifted(row.step, row.apart)}
		h := s.hysteresis(fit(s.observations, -0.1, 0.1), 0.025)
		if !h.Checked || h.Differs != row.differs || h.Differs &&
			(h.BelowPerS > h.AbovePerS) != (row.apart > 0) {
			t.Errorf("%+v: %+v", row, h)
		}
	}
	s := &search{observations: ladder(20)}
	if h := s.hysteresis(fit(s.observations, -0.1, 0.1), 0.025); h.Checked {
		t.Errorf("checked without rising and falling steps: %+v", h)
	}
}

// TestHolds is the chance of a step at some widths from the center of a boundary that is known.
func TestHolds(t *testing.T) {
	p := &posterior{centers: []float64{7}, widths: []float64{0.05}, weight: [][]float64{{1}}}
	for k := -3.0; k <= 3; k++ {
		want := lapseHigh + (1-lapseLow-lapseHigh)*0.5*math.Erfc(k/math.Sqrt2)
		if got := p.holds(7 + k*0.05); math.Abs(got-want) > 1e-4 {
			t.Errorf("%g widths from the center: %.5f, want %.5f", k, got, want)
		}
	}
}
