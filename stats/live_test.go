package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// The interval is where the mixture reaches 1/alpha.
func TestLiveRatioIsTheMixture(t *testing.T) {
	ds := []float64{0.01, 0.03, -0.01, 0.02, 0.01, 0.015}
	r := LiveRatio(startsOf(0.01, ds...), 0.95)
	for _, end := range []float64{r.Lo, r.Hi} {
		var sum, squares float64
		for _, d := range ds {
			x := d - math.Log(end)
			sum, squares = sum+x, squares+x*x
		}
		if e := mixture(len(ds), sum, squares); math.Abs(e-20) > 1e-6 {
			t.Errorf("at %v the mixture is %v, want 20", end, e)
		}
	}
	// Before any value is known the mixture is 1, and one value says nothing of its SD.
	if e := mixture(1, 0.3, 0.09); !near(e, 1) {
		t.Errorf("after one value it is %v", e)
	}
	if r := LiveRatio(startsOf(0.01, 0.01, 0.02, 0.03), 0.95); r.HasInterval() || r.P > 1 {
		t.Errorf("of three starts: %+v", r)
	}
}

func TestLivePrice(t *testing.T) {
	for starts, want := range map[int]float64{4: 2.05, 8: 1.87, 12: 1.84, 40: 1.83} {
		if got := LivePrice(starts, 0.95); math.Abs(got-want) > 0.01 {
			t.Errorf("%d starts: %.3f, want %.2f", starts, got, want)
		}
	}
}

// watched is a run of normal log ratios with SD 1 % whose reader stops at the first live interval
// that leaves out 1, or at the planned end. It returns whether a live interval ever left out the
// truth, and whether the answer does; naive: whether PairedRatio's interval ever did.
func watched(r *rand.Rand, starts int, effect, end float64) (live, answer, naive bool) {
	var pair []StartRatio
	for range starts {
		pair = append(pair, StartRatio{LogRatio: effect + 0.01*r.NormFloat64()})
	}
	truth, stopped := math.Exp(effect), false
	misses := func(r Ratio) bool { return truth < r.Lo || r.Hi < truth }
	for n := LeastStarts; n <= starts; n++ {
		look := LiveRatio(pair[:n], 0.95)
		live = live || misses(look)
		naive = naive || misses(ratioOfStarts(pair[:n], 0.95))
		if !stopped && n < starts && (look.Lo > 1 || look.Hi < 1) {
			stopped, answer = true, misses(look)
		}
	}
	if !stopped {
		answer = misses(ratioOfStarts(pair, end))
	}
	return live, answer, naive
}

// checkWatched holds live intervals to 5 % in all, the answer of a run that may stop early to 4 to
// 6 %, and shows that the oracle sees what looks at plain intervals cost.
func checkWatched(t *testing.T, starts, experiments int, effect float64, naive float64) {
	t.Helper()
	end := PlannedConfidence(starts, 0.95)
	check := func(atLeast, atMost float64, pick func(live, answer, naive bool) bool) {
		t.Helper()
		checkShare(t, uint64(starts), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			return pick(watched(r, starts, effect, end))
		})
	}
	check(0, 0.03, func(live, _, _ bool) bool { return live })
	if effect == 0 {
		check(0.048, 0.052, func(_, answer, _ bool) bool { return answer })
	} else {
		check(0, 0.052, func(_, answer, _ bool) bool { return answer })
	}
	check(naive-0.01, naive+0.01, func(_, _, naive bool) bool { return naive })
}

func TestLiveRatioCoversRoughly(t *testing.T) {
	checkWatched(t, 8, 2000, 0, 0.10)
	checkWatched(t, 12, 1000, 0.02, 0.125)
}

// TestLiveRatioCovers is the same with more runs, and for the numbers of LiveRatio's comment.
func TestLiveRatioCovers(t *testing.T) {
	testsets.Long(t, "20,000 watched runs a case", testsets.Needs{})
	for _, effect := range []float64{0, 0.01, 0.03} {
		checkWatched(t, 8, 20_000, effect, 0.10)
		checkWatched(t, 12, 20_000, effect, 0.13)
		checkWatched(t, 40, 20_000, effect, 0.21)
	}
}

func TestPlannedConfidence(t *testing.T) {
	// One look is the planned end.
	if c := PlannedConfidence(LeastStarts, 0.95); c != 0.95 {
		t.Errorf("%v", c)
	}
	for starts, price := range map[int]float64{6: 1.04, 8: 1.05, 12: 1.07, 20: 1.09, 40: 1.11} {
		free := student(starts - 1)
		got := free.Quantile((1+PlannedConfidence(starts, 0.95))/2) / free.Quantile(0.975)
		t.Logf("%d starts: confidence %.4f, %.3f times as wide", starts,
			PlannedConfidence(starts, 0.95), got)
		if math.Abs(got-price) > 0.015 {
			t.Errorf("%d starts: %.3f times as wide, want %.2f", starts, got, price)
		}
	}
}
