package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/mathext"

	"prony.example/internal/dev/testsets"
)

// The interval ends at values for which the mixture reaches 1/alpha.
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
	// Without values the mixture is 1, and one value has no information about its SD.
	if e := mixture(1, 0.3, 0.09); !near(e, 1) {
		t.Errorf("after one value it is %v", e)
	}
	if r := LiveRatio(startsOf(0.01, 0.01, 0.02, 0.03), 0.95); r.HasInterval() || r.P > 1 ||
		r.Warning != "needs at least 4 starts, has 3" {
		t.Errorf("of three starts: %+v", r)
	}
}

// watched simulates a run of normal log ratios with SD 1 % whose reader stops at the first live
// interval without 1, or at the planned end. It returns whether any live interval excluded the
// truth, and whether the final one does; naive: whether any interval of PairedRatio did.
func watched(r *rand.Rand, starts int, effect float64) (live, answer, naive bool) {
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
		answer = misses(ratioOfStarts(pair, 0.95))
	}
	return live, answer, naive
}

// checkWatched tests that all live intervals together err in at most 5 %, and the results of runs
// that may stop early with errsWatched. naive shows that the oracle detects the cost of looking at
// plain intervals.
func checkWatched(t *testing.T, starts, experiments int, effect, naive float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(starts), 0))
	wrong := errsWatched(starts, 0.05, 0.05)
	var counts [3]float64
	for range experiments {
		live, answer, naive := watched(r, starts, effect)
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
	least := wrong
	if effect != 0 { // it stops early, with wider intervals
		least = 0
	}
	check(counts[1], least, wrong)
	check(counts[2], naive, naive)
}

func TestLiveRatioCoversRoughly(t *testing.T) {
	checkWatched(t, 8, 2000, 0, 0.125)
	checkWatched(t, 12, 1000, 0.02, 0.16)
}

// TestLiveRatioCovers is the same with more runs, and with the numbers of LiveRatio's comment.
func TestLiveRatioCovers(t *testing.T) {
	testsets.Long(t, "10,000 watched runs a case", testsets.Needs{})
	for _, effect := range []float64{0, 0.01, 0.03} {
		checkWatched(t, 8, 10_000, effect, 0.125)
		checkWatched(t, 12, 10_000, effect, 0.16)
		checkWatched(t, 40, 10_000, effect, 0.27)
	}
}

// The price of looks, as quoted in docs/slices.md.
func TestPricesOfLooks(t *testing.T) {
	lines := []string{"| starts | width of the live interval | wrong answers |", "|---|---|---|"}
	for _, row := range []struct {
		starts      int
		live, wrong float64
	}{{4, 2.05, 0.05}, {6, 1.91, 0.055}, {8, 1.87, 0.058}, {12, 1.84, 0.062}, {20, 1.82, 0.065},
		{40, 1.83, 0.069}} {
		live, wrong := LivePrice(row.starts, 0.95), errsWatched(row.starts, 0.05, 0.05)
		if math.Abs(live-row.live) > 0.01 || math.Abs(wrong-row.wrong) > 0.001 {
			t.Errorf("%d starts: %.3f and %.4f, want %v and %v", row.starts, live, wrong, row.live,
				row.wrong)
		}
		lines = append(lines, fmt.Sprintf("| %d | %.2f | %.1f %% |", row.starts, live, 100*wrong))
	}
	documented(t, "prices", lines)
}

// chainCells is the number of cells of the grid over |S|/sqrt(V), and of nodes of each integral.
const chainCells = 50

// errsWatched returns the probability, with equal targets, of exceeding the limits of a look, or
// those of a final t test with this error.
//
// Method: S/sqrt(V) is a Markov chain, because it is independent of V, and the next value by
// sqrt(V) is Student's t by sqrt(n), the tangent of an angle. The probability of staying within all
// limits is computed backwards, step by step (Armitage, McPherson & Rowe, "Repeated significance
// tests on accumulating data", Journal of the Royal Statistical Society A 132, 1969, pp. 235-244).
func errsWatched(starts int, alpha, end float64) float64 {
	last := float64(starts)
	t := student(starts - 1).Quantile(1 - end/2)
	stays := make([]float64, chainCells+1) // by |S|/sqrt(V) from 0 to limit; beyond limit it is 0
	for i := range stays {
		stays[i] = 1
	}
	limit := math.Sqrt(last * t * t / (last - 1 + t*t))
	for n := starts - 1; n >= LeastStarts; n-- {
		before := make([]float64, chainCells+1)
		beyond := math.Sqrt(liveLimit(n, alpha))
		for i := range before {
			before[i] = stepBack(stays, limit, beyond*float64(i)/chainCells, n)
		}
		stays, limit = before, beyond
	}
	// At the first look S/sqrt(nV) is the sine of an angle whose density is a power of its cosine.
	n := float64(LeastStarts)
	return 1 - 2*cosines(n-2, 0, math.Asin(limit/math.Sqrt(n)), func(angle float64) float64 {
		return interpolate(stays, math.Sqrt(n)*math.Sin(angle)/limit)
	})
}

// stepBack returns the probability of staying within the limits from the next value on, if
// S/sqrt(V) of n values is root. The next S/sqrt(V) is (root + tan)/sqrt(1 + tan²) of an angle,
// that is sqrt(1 + root²) times the sine of the sum of that angle and the angle of root.
func stepBack(stays []float64, limit, root float64, n int) float64 {
	long, turn := math.Sqrt(1+root*root), math.Atan(root)
	next := func(angle float64) float64 {
		return interpolate(stays, long*math.Abs(math.Sin(angle+turn))/limit)
	}
	power := float64(n - 1)
	if limit >= long {
		return cosines(power, -math.Pi/2, math.Pi/2, next)
	}
	edge := math.Asin(limit / long)
	return cosines(power, -math.Pi/2, edge-turn, next) +
		cosines(power, min(math.Pi/2, math.Pi-edge-turn), math.Pi/2, next)
}

// cosines returns the mean of f over an angle from a to b, with that power of its cosine as
// density.
func cosines(power, a, b float64, f func(angle float64) float64) float64 {
	if b <= a {
		return 0
	}
	all := math.Exp(mathext.Lbeta((power+1)/2, 0.5))
	return quad.Fixed(func(angle float64) float64 {
		return math.Pow(math.Cos(angle), power) * f(angle)
	}, a, b, chainCells, quad.Legendre{}, 0) / all
}

// interpolate interpolates a grid of values at 0 to 1.
func interpolate(grid []float64, x float64) float64 {
	x = min(1, x) * float64(len(grid)-1)
	i := min(int(x), len(grid)-2)
	return grid[i] + (x-float64(i))*(grid[i+1]-grid[i])
}
