package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

func TestPlanSDByHand(t *testing.T) {
	// Variance of 0, 2, 4, 6 % is 6.67 %²; rounds explain 2 %², so 4.67 is left. The control's is
	// 2 %² of 1.67 beyond 2: nothing. The mean is 2.33, and the whole 4.33: 2.08 %.
	pair := startsOf(math.Sqrt2/100, 0, 0.02, 0.04, 0.06)
	control := startsOf(math.Sqrt2/100, 0, 0.01, 0.02, 0.03)
	if sd := PlanSD(pair, control); math.Abs(sd-0.0208) > 0.0001 {
		t.Errorf("%.5f, want 0.0208", sd)
	}
	for _, sd := range []float64{PlanSD(pair, nil), PlanSD(pair[:1], control),
		PlanSD(startsOf(math.NaN(), 0, 1), control)} {
		if !math.IsNaN(sd) {
			t.Errorf("%v of too little, want NaN", sd)
		}
	}
}

// The SD for planning is closer to the truth than that of the pair, if the control is like the
// pair; if the control scatters half as much between starts, it is no further from the truth.
func TestPlanSD(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	check := func(starts int, within, pairs, controls, least float64) {
		t.Helper()
		rng := rand.New(rand.NewPCG(39, uint64(starts)))
		draw := func(between float64) (out []StartRatio) {
			for range starts {
				out = append(out, StartRatio{SE: within,
					LogRatio: rng.NormFloat64() * math.Hypot(within, between)})
			}
			return out
		}
		truth := math.Hypot(within, pairs)
		var alone, planned float64
		for range 4000 {
			pair, control := draw(pairs), draw(controls)
			off := math.Log(CompareStarts(pair, nil, 0.95).SDLog / truth)
			alone += off * off
			off = math.Log(PlanSD(pair, control) / truth)
			planned += off * off
		}
		if better := 1 - math.Sqrt(planned/alone); better < least {
			t.Errorf("%d starts, within %v, between %v and %v: closer by %.0f %%, want %.0f %%",
				starts, within, pairs, controls, 100*better, 100*least)
		}
	}
	for _, starts := range []int{4, 6, 8} {
		check(starts, 0.01, 0, 0, 0.5)
		check(starts, 0.01, 0.01, 0.01, 0.3)
		check(starts, 0.01, 0.02, 0.02, 0.25)
		check(starts, 0.01, 0.01, 0.005, 0.25)
		check(starts, 0.01, 0.02, 0.01, -0.05)
	}
}
