package stats

import (
	"fmt"
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
	if r := LiveRatio(startsOf(0.01, 0.01, 0.02, 0.03), 0.95); r.HasInterval() || r.P > 1 ||
		r.Warning != "needs at least 4 starts, has 3" {
		t.Errorf("of three starts: %+v", r)
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

// checkWatched holds live intervals to 5 % in all, and the answer of a run that may stop early to
// 5 %. It shows that the oracle sees what looks at plain intervals cost: naive.
func checkWatched(t *testing.T, starts, experiments int, effect, naive float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(starts), 0))
	end := PlannedConfidence(starts, 0.95)
	var counts [3]float64
	for range experiments {
		live, answer, naive := watched(r, starts, effect, end)
		for i, missed := range []bool{live, answer, naive} {
			if missed {
				counts[i] += 1 / float64(experiments)
			}
		}
	}
	t.Logf("%d starts, effect %v: a live interval is wrong in %.4f, the answer in %.4f, a plain "+
		"interval in %.4f", starts, effect, counts[0], counts[1], counts[2])
	check := func(share, atLeast, atMost float64) {
		t.Helper()
		four := 4 * math.Sqrt(atMost*(1-atMost)/float64(experiments))
		if share < atLeast-four || share > atMost+four {
			t.Errorf("%d starts, effect %v: %.4f, want %v to %v", starts, effect, share, atLeast,
				atMost)
		}
	}
	check(counts[0], 0, 0.03)
	least := 0.05
	if effect != 0 { // it stops early, at the wider intervals
		least = 0
	}
	check(counts[1], least, 0.05)
	check(counts[2], naive, naive)
}

func TestLiveRatioCoversRoughly(t *testing.T) {
	checkWatched(t, 8, 2000, 0, 0.125)
	checkWatched(t, 12, 1000, 0.02, 0.16)
}

// TestLiveRatioCovers is the same with more runs, and for the numbers of LiveRatio's comment.
func TestLiveRatioCovers(t *testing.T) {
	testsets.Long(t, "10,000 watched runs a case", testsets.Needs{})
	for _, effect := range []float64{0, 0.01, 0.03} {
		checkWatched(t, 8, 10_000, effect, 0.125)
		checkWatched(t, 12, 10_000, effect, 0.16)
		checkWatched(t, 40, 10_000, effect, 0.27)
	}
}

// Figures of both prices, and what docs/slices.md says of them.
func TestPricesOfLooks(t *testing.T) {
	lines := []string{"| starts | live interval | interval at the planned end, after looks |",
		"|---|---|---|"}
	for _, row := range []struct {
		starts     int
		live, plan float64
	}{{4, 2.05, 1}, {6, 1.91, 1.04}, {8, 1.87, 1.06}, {12, 1.84, 1.07}, {20, 1.82, 1.09},
		{40, 1.83, 1.11}} {
		free := student(row.starts - 1)
		live := LivePrice(row.starts, 0.95)
		plan := free.Quantile((1+PlannedConfidence(row.starts, 0.95))/2) / free.Quantile(0.975)
		if math.Abs(live-row.live) > 0.01 || math.Abs(plan-row.plan) > 0.01 {
			t.Errorf("%d starts: %.3f and %.3f, want %v and %v", row.starts, live, plan, row.live,
				row.plan)
		}
		lines = append(lines, fmt.Sprintf("| %d | %.2f | %.2f |", row.starts, live, plan))
	}
	documented(t, "prices", lines)
}
