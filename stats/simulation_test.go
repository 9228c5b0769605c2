package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"prony.example/internal/dev/testsets"
)

// Every claim about a probability is tested by simulated experiments with a known truth. A share of
// n experiments scatters about its probability p with a standard error of sqrt(p(1-p)/n). The bound
// is four standard errors, which a correct program exceeds with one seed in 16,000. Seeds are
// fixed, so a test that passes keeps passing.

// checkShare requires yes to be true in a share between atLeast and atMost of n experiments, with a
// tolerance of four standard errors at each end.
func checkShare(t *testing.T, seed uint64, n int, atLeast, atMost float64,
	yes func(*rand.Rand) bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	count := 0
	for range n {
		if yes(r) {
			count++
		}
	}
	four := func(p float64) float64 { return 4 * math.Sqrt(p*(1-p)/float64(n)) }
	got := float64(count) / float64(n)
	if got < atLeast-four(atLeast) || got > atMost+four(atMost) {
		t.Errorf("seed %d: share %.4f, want %.4f-%.4f..%.4f+%.4f",
			seed, got, atLeast, four(atLeast), atMost, four(atMost))
	}
}

// noise is one trial's deviation on the log scale. Its median over trials is 0.
type noise func(*rand.Rand) float64

func gauss(sd float64) noise {
	return func(r *rand.Rand) float64 { return sd * r.NormFloat64() }
}

// skewed is exponential: trials are sometimes much slower, never much faster.
func skewed(r *rand.Rand) float64 { return 0.05 * (math.Ln2 - r.ExpFloat64()) }

// laplace has heavy tails on both sides.
func laplace(r *rand.Rand) float64 {
	return 0.02 * r.ExpFloat64() * float64(2*r.IntN(2)-1)
}

// bimodal trials settle in one of two states, as with a JIT compiler.
func bimodal(r *rand.Rand) float64 {
	return 0.05*float64(r.IntN(2)) + 0.01*r.NormFloat64()
}

func TestSummarizeCovers(t *testing.T) {
	const experiments = 10_000 // four standard errors at 0.95: 4 sqrt(0.95*0.05/10000) = 0.0087
	check := func(n int, x noise, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, uint64(n), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = math.Exp(10 + x(r))
			}
			s := Summarize(xs, 0.95)
			return s.Lo <= math.Exp(10) && math.Exp(10) <= s.Hi
		})
	}
	// Log-normal trials, t interval: exact.
	check(2, gauss(0.05), 0.95, 0.95)
	check(3, gauss(0.05), 0.95, 0.95)
	check(5, gauss(0.5), 0.95, 0.95)
	// The cost of a wrong assumption: skewed trials lose up to 2 points.
	check(2, skewed, 0.93, 0.95)
	check(3, skewed, 0.93, 0.95)
	// Order statistics: the binomial's confidence, for any shape.
	check(6, skewed, 0.96875, 0.96875)   // 1 - 2/64
	check(6, laplace, 0.96875, 0.96875)  // likewise
	check(7, skewed, 0.984375, 0.984375) // ranks 1 and 7: 1 - 2/128 = 0.984; 1 and 6 have 0.93
	check(10, skewed, 1-22.0/1024, 1-22.0/1024)
}

func TestPairedRatioCovers(t *testing.T) {
	const experiments = 10_000
	// Blocks scatter by 30 %, which must cancel; b is really 1.1 times a.
	check := func(n int, a, b noise, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, 100+uint64(n), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			as, bs := make([]float64, n), make([]float64, n)
			for i := range as {
				block := 10 + 0.3*r.NormFloat64()
				as[i], bs[i] = math.Exp(block+a(r)), 1.1*math.Exp(block+b(r))
			}
			p := PairedRatio(as, bs, 0.95)
			if (p.P < 0.05) != (p.Lo > 1 || p.Hi < 1) {
				t.Fatalf("P and interval disagree: %+v", p)
			}
			// Width also matters: an interval that ignored the pairing would cover as well.
			return p.Lo <= 1.1 && 1.1 <= p.Hi && p.SDLog < 0.6
		})
	}
	check(2, gauss(0.02), gauss(0.02), 0.95, 0.95)
	check(3, gauss(0.01), gauss(0.05), 0.95, 0.95) // unequal noise does not matter for pairs
	check(6, gauss(0.02), gauss(0.02), 0.95, 0.95)
	check(20, gauss(0.02), gauss(0.02), 0.95, 0.95)
	check(6, skewed, skewed, 0.95, 0.97)   // symmetric after all, with heavy tails: conservative
	check(6, laplace, laplace, 0.95, 0.97) // likewise
	check(6, bimodal, bimodal, 0.94, 0.96)
}

// simulated returns one item per level, in blocks that scatter by 20 %; the first item's noise can
// differ from the others'.
func simulated(r *rand.Rand, blocks int, levels []float64, first, rest noise) []Item {
	items := make([]Item, len(levels))
	for i := range items {
		items[i] = Item{Name: fmt.Sprint(i), Values: make(map[int]float64)}
	}
	for block := range blocks {
		speed := 10 + 0.2*r.NormFloat64()
		for i, level := range levels {
			x := rest
			if i == 0 {
				x = first
			}
			items[i].Values[block+1] = math.Exp(speed+x(r)) * level
		}
	}
	return items
}

// TestTiersFalseAlarms: equal targets share one tier, except with probability alpha.
func TestTiersFalseAlarms(t *testing.T) {
	testsets.Long(t, "simulated false alarms of tiers", testsets.Needs{})
	const experiments = 2000 // four standard errors at 0.05: 4 sqrt(0.05*0.95/2000) = 0.0195
	check := func(targets, blocks int, first, rest noise, atLeast, atMost float64) {
		t.Helper()
		seed := uint64(1000*targets + blocks)
		checkShare(t, seed, experiments, atLeast, atMost, func(r *rand.Rand) bool {
			levels := slices.Repeat([]float64{1}, targets)
			return len(Tiers(simulated(r, blocks, levels, first, rest), 0.05)) > 1
		})
	}
	quiet, loud := gauss(0.005), gauss(0.05)
	// One pair: Holm changes nothing and t is exact, so alpha is also the lower bound.
	check(2, 3, quiet, quiet, 0.05, 0.05)
	check(2, 6, quiet, loud, 0.05, 0.05)
	// Six targets, 15 dependent pairs. Uncorrected, four in ten such runs would have false alarms.
	check(6, 3, quiet, quiet, 0.02, 0.05)
	check(6, 6, quiet, quiet, 0.02, 0.05)
	check(6, 6, loud, quiet, 0.02, 0.05)
	check(6, 6, laplace, laplace, 0.01, 0.05)
	check(6, 6, skewed, skewed, 0.01, 0.05)
	check(6, 6, bimodal, bimodal, 0.01, 0.05)
	// The known price of three blocks: two-state trials give 6 % instead of 5 %.
	check(6, 3, bimodal, bimodal, 0.03, 0.065)
}

// TestTiersStrongly: the bound also holds for equal targets among different ones. Targets 1, 2 and
// 3 are equal; 0 and 4 differ from them.
func TestTiersStrongly(t *testing.T) {
	const experiments = 2000
	quiet := gauss(0.01)
	checkShare(t, 5, experiments, 0.01, 0.05, func(r *rand.Rand) bool {
		items := simulated(r, 6, []float64{1.5, 1, 1, 1, 0.5}, quiet, quiet)
		for _, c := range Compare(items, 0.05) {
			among := c.A >= "1" && c.A <= "3" && c.B >= "1" && c.B <= "3"
			if among && c.Apart {
				return true
			}
		}
		return false
	})
}

// TestTiersFind: a 10 % difference at 2 % noise with six blocks. SD of the log ratio is
// 0.02 sqrt 2 = 0.0283, so t is about log 1.1 sqrt 6 / 0.0283 = 8.25.
func TestTiersFind(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 2000
	check := func(levels []float64, atLeast float64, want func([][]string) bool) {
		t.Helper()
		checkShare(t, uint64(len(levels)), experiments, atLeast, 1, func(r *rand.Rand) bool {
			items := simulated(r, 6, levels, gauss(0.02), gauss(0.02))
			return want(Tiers(items, 0.05))
		})
	}
	// Against t(0.975, 5) = 2.57: never missed.
	check([]float64{1.1, 1}, 0.999, func(tiers [][]string) bool {
		return len(tiers) == 2 && tiers[0][0] == "0"
	})
	// Among six, Holm requires 0.05/15 of the first pair, t(0.99833, 5) = 5.6, and each of the
	// winner's five pairs must be found: nine in ten.
	check([]float64{1.1, 1, 1, 1, 1, 1}, 0.88, func(tiers [][]string) bool {
		return len(tiers) >= 2 && slices.Equal(tiers[0], []string{"0"})
	})
}

// TestBlocksToResolveIsTrue simulates the planned experiments: with n blocks they detect the effect
// at least as often as requested, with one fewer they do not.
func TestBlocksToResolveIsTrue(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 10_000 // four standard errors at 0.8: 4 sqrt(0.8*0.2/10000) = 0.016
	found := func(n int, effect, sd, alpha float64) func(*rand.Rand) bool {
		return func(r *rand.Rand) bool {
			as, bs := make([]float64, n), make([]float64, n)
			for i := range as {
				as[i], bs[i] = 1, (1+effect)*math.Exp(sd*r.NormFloat64())
			}
			return PairedRatio(as, bs, 0.95).P < alpha
		}
	}
	check := func(effect, sd, alpha float64) {
		t.Helper()
		n := blocksToResolve(sd, effect, alpha, 0.8)
		checkShare(t, uint64(n), experiments, 0.8, 1, found(n, effect, sd, alpha))
		checkShare(t, uint64(n), experiments, 0, 0.8, found(n-1, effect, sd, alpha))
	}
	check(0.10, 0.03, 0.05)
	check(0.03, 0.03, 0.05)
	check(-0.03, 0.03, 0.05)
	check(0.03, 0.02, 0.05/15)
}

// TestQuantileRanksCover draws requests and tests coverage: the exponential's q-quantile is
// -log(1-q).
func TestQuantileRanksCover(t *testing.T) {
	const experiments = 2000 // four standard errors at 0.95: 0.0195
	check := func(n int64, q, exact float64) {
		t.Helper()
		lo, hi, _ := QuantileRanks(n, 1, q, 0.95)
		checkShare(t, uint64(n), experiments, exact, exact, func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = r.ExpFloat64()
			}
			slices.Sort(xs)
			truth := -math.Log(1 - q)
			return xs[lo-1] <= truth && truth <= xs[hi-1]
		})
	}
	// Ranks 373 and 381: the number of slower requests, about Poisson(3.81), is 1..8; 0 has
	// 0.99^381 = 0.0217 and 9 or more 0.0168.
	check(381, 0.99, 0.9615)
	// Ranks 983 and 997: 4..17 of about Poisson(10): 1 - 0.0101 - 0.0136.
	check(1000, 0.99, 0.976)
}
