package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// pairs simulates n blocks: b is ratio times a, with this SD of the log ratio.
func pairs(r *rand.Rand, n int, ratio, sd float64) (a, b []float64) {
	for range n {
		block := math.Exp(0.1 * r.NormFloat64())
		a = append(a, block)
		b = append(b, block*ratio*math.Exp(sd*r.NormFloat64()))
	}
	return a, b
}

// TestDecideErrs: at the margin each error has half of 1 - confidence; if the truth is on the right
// side, the wrong answer is even rarer.
func TestDecideErrs(t *testing.T) {
	const experiments = 5000
	check := func(n int, ratio float64, want string, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, uint64(n), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			a, b := pairs(r, n, ratio, 0.02)
			return outcome(PairedRatio(a, b, 0.95), 0.95) == want
		})
	}
	for _, n := range []int{2, 5, 20} {
		check(n, 0.95, Fail, 0.025, 0.025)
		check(n, 0.95, Pass, 0.025, 0.025)
		check(n, 0.97, Fail, 0, 0.025)
		check(n, 0.93, Pass, 0, 0.025)
	}
	check(10, 0.9, Fail, 0.99, 1)
	check(10, 1, Pass, 0.99, 1)
}

// TestMoreIsTrue: with More further blocks the gate decides in 80 % of cases, if the observed ratio
// is the truth; with one fewer it decides less often.
func TestMoreIsTrue(t *testing.T) {
	const experiments = 5000
	check := func(ratio, sd float64) {
		t.Helper()
		r := Ratio{N: 2, Center: ratio, Lo: 0, Hi: 2, SDLog: sd, Confidence: 0.95}
		n := r.N + Decide(r, 0.05).More
		decided := func(n int) func(*rand.Rand) bool {
			return func(rng *rand.Rand) bool {
				a, b := pairs(rng, n, ratio, sd)
				return outcome(PairedRatio(a, b, 0.95), 0.95) != Inconclusive
			}
		}
		checkShare(t, uint64(n), experiments, 0.8, 1, decided(n))
		checkShare(t, uint64(n), experiments, 0, 0.8, decided(n-1))
	}
	check(0.97, 0.02)
	check(0.93, 0.02)
	check(1, 0.05)
}

func TestUnpairedRatioCovers(t *testing.T) {
	const experiments = 10_000
	check := func(na, nb int, a, b noise, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, uint64(100*na+nb), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			as, bs := make([]float64, na), make([]float64, nb)
			for i := range as {
				as[i] = math.Exp(10 + a(r))
			}
			for i := range bs {
				bs[i] = 1.1 * math.Exp(10+b(r))
			}
			p := UnpairedRatio(as, bs, 0.95)
			if (p.P < 0.05) != (p.Lo > 1 || p.Hi < 1) {
				t.Fatalf("P and interval disagree: %+v", p)
			}
			return p.Lo <= 1.1 && 1.1 <= p.Hi
		})
	}
	check(5, 5, gauss(0.02), gauss(0.02), 0.95, 0.955)
	check(10, 10, gauss(0.01), gauss(0.05), 0.945, 0.955)
	check(5, 20, gauss(0.05), gauss(0.02), 0.94, 0.955)
	// Two on each side: Welch is conservative.
	check(2, 2, gauss(0.02), gauss(0.02), 0.95, 0.98)
}

// TestComponentsFind tests that the estimates are right on average, for any autocorrelation.
func TestComponentsFind(t *testing.T) {
	const seed, trials, experiments = 8, 10, 300
	check := func(ar, between float64, intervals int) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 0))
		gotBetween, gotWithin := 0.0, 0.0
		for range experiments {
			var series [][]float64
			for range trials {
				xs := autoregressive(r, intervals, 0.05, ar)
				level := math.Exp(7 + between*r.NormFloat64())
				for i := range xs {
					xs[i] *= level
				}
				series = append(series, xs)
			}
			v := Components(series)
			gotBetween += v.Between * v.Between / experiments
			gotWithin += v.Within * v.Within / experiments
		}
		// The variance of a mean of AR(1): s^2/n (1+c)/(1-c), nearly.
		within := 0.05 * 0.05 / float64(intervals) * (1 + ar) / (1 - ar)
		// Batches that are not quite independent underestimate it slightly.
		within *= 1 - 2*ar/(1-ar*ar)/float64(intervals/batches)
		if math.Abs(gotWithin/within-1) > 0.12 {
			t.Errorf("seed %d: AR(%v): within² %v, want %v", seed, ar, gotWithin, within)
		}
		if math.Abs(gotBetween/(between*between)-1) > 0.12 {
			t.Errorf("seed %d: AR(%v): between² %v, want %v", seed, ar, gotBetween,
				between*between)
		}
	}
	check(0, 0.02, 200)
	check(0.5, 0.02, 200)
	check(0.3, 0.05, 100)
}

// TestQuantileRanksOfCover: groups of four requests share a time, so n are worth n/4.
func TestQuantileRanksOfCover(t *testing.T) {
	const experiments, n = 2000, 2000
	check := func(share, atLeast, atMost float64) {
		t.Helper()
		lo, hi, ok := QuantileRanks(n, share, 0.99, 0.95)
		if !ok {
			t.Fatalf("no ranks for %v", share)
		}
		checkShare(t, 7, experiments, atLeast, atMost, func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				if i%4 == 0 {
					xs[i] = r.ExpFloat64()
				} else {
					xs[i] = xs[i-1]
				}
			}
			slices.Sort(xs)
			truth := -math.Log(0.01)
			return xs[lo-1] <= truth && truth <= xs[hi-1]
		})
	}
	check(0.25, 0.945, 0.975)
	// As independent requests they promise 95 % and cover 2 Phi(1.96/2) - 1 = 67 %.
	check(1, 0.64, 0.74)
}

// TestChangesFalseAlarms: a history without a change has reported changes in at most alpha of
// cases.
func TestChangesFalseAlarms(t *testing.T) {
	const experiments = 400
	check := func(n int, x noise, atMost float64) {
		t.Helper()
		checkShare(t, uint64(n), experiments, 0, atMost, func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 1000 * math.Exp(x(r))
			}
			return len(Changes(xs, 0.05)) > 0
		})
	}
	check(6, gauss(0.02), 0.05)
	check(10, gauss(0.02), 0.05)
	check(30, gauss(0.02), 0.05)
	check(60, gauss(0.02), 0.05)
	check(30, laplace, 0.05)
	check(30, skewed, 0.05)
}

// TestChangesFind: a step of 5 % at 1.2 % noise, in the middle and five runs before the end.
func TestChangesFind(t *testing.T) {
	const experiments = 400
	check := func(n, at int, by, least float64, slack int) {
		t.Helper()
		checkShare(t, uint64(at), experiments, least, 1, func(r *rand.Rand) bool {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = 1000 * math.Exp(0.012*r.NormFloat64())
				if i >= at {
					xs[i] *= 1 - by
				}
			}
			got := Changes(xs, 0.05)
			return len(got) == 1 && got[0].At >= at-slack && got[0].At <= at+slack
		})
	}
	check(40, 20, 0.05, 0.9, 1)
	check(40, 35, 0.05, 0.85, 1)
	check(40, 37, 0.05, 0.5, 1)
	check(40, 20, 0.02, 0.6, 5)
}

// TestChangesFindABump: three runs of eighty are 5 % lower; both ends are found within a run.
// Without ends before the end of the history, as in plain bisection, it would find two of three.
func TestChangesFindABump(t *testing.T) {
	const experiments, n, from, to = 400, 80, 39, 42
	checkShare(t, 21, experiments, 0.8, 1, func(r *rand.Rand) bool {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = 1000 * math.Exp(0.012*r.NormFloat64())
			if i >= from && i < to {
				xs[i] *= 0.95
			}
		}
		got := Changes(xs, 0.05)
		return len(got) == 2 && got[0].At >= from-1 && got[0].At <= from+1 &&
			got[1].At >= to-1 && got[1].At <= to+1
	})
}
