package stats

import (
	"math"
	"testing"
)

func TestDecide(t *testing.T) {
	check := func(r Ratio, most float64, outcome string, more int) {
		t.Helper()
		r.Confidence = 0.95
		if got := Decide(r, most); got != (Decision{outcome, more}) {
			t.Errorf("Decide(%+v, %v) = %+v, want %s, %d more", r, most, got, outcome, more)
		}
	}
	between := func(lo, hi float64) Ratio {
		return Ratio{N: 5, Center: math.Sqrt(lo * hi), Lo: lo, Hi: hi, SDLog: 0.02}
	}
	check(between(0.96, 1.02), 0.05, Pass, 0)
	check(between(0.95, 1.02), 0.05, Pass, 0)
	check(between(1.01, 1.03), 0.05, Pass, 0)
	check(between(0.96, 0.98), 0.05, Pass, 0) // certainly a loss, but an allowed one
	check(between(0.90, 0.94), 0.05, Fail, 0)
	check(between(0.96, 0.98), 0.01, Fail, 0)
	check(between(0.98, 0.999), 0, Fail, 0)
	check(between(1, 1.1), 0, Pass, 0)
	// Hi on the margin: 1 - 0.5 is exact in binary. log(sqrt(0.48 x 0.5) / 0.5) = -0.02041;
	// d = 1.0206; two-sided t at 0.05 needs 10 (Cohen's tables: 10 for d = 1).
	check(between(0.48, 0.5), 0.5, Inconclusive, 5)

	// (z 0.975 + z 0.8)^2 = 7.849 over d^2, and about z^2/2 = 1.92 for the t: d = log(0.97/0.95) /
	// 0.03 = 0.6944: 16.28 + 1.92 = 18.2, so 19 in all.
	r := Ratio{N: 5, Center: 0.97, Lo: 0.93, Hi: 1.01, SDLog: 0.03}
	check(r, 0.05, Inconclusive, 14)
	r.N = 12
	check(r, 0.05, Inconclusive, 7)
	// As far below as above: log(0.95/0.97) + log 0.95.
	r.Center = 0.95 * 0.95 / 0.97
	check(r, 0.05, Inconclusive, 7)
	r.Center = 0.95
	check(r, 0.05, Inconclusive, Unresolvable)
	r.Center = 0.9501 // 750,000 blocks
	check(r, 0.05, Inconclusive, Unresolvable)

	// Without a spread five are too few, 2/2^5 = 0.0625, and six do.
	equal := Ratio{N: 5, Center: 1, Lo: 1, Hi: 1}
	check(equal, 0.05, Inconclusive, 1)
	equal.N = 6
	check(equal, 0.05, Pass, 0)

	nan := math.NaN()
	check(PairedRatio(nil, nil, 0.95), 0.05, Inconclusive, 3)
	check(PairedRatio([]float64{1}, []float64{1}, 0.95), 0.05, Inconclusive, 2)
	check(Ratio{N: 9, Center: nan, Lo: nan, Hi: nan, SDLog: nan}, 0.05, Inconclusive,
		Unresolvable)

	checkPanics(t, "a loss to allow must lie between 0 and 1, not 5", func() { Decide(r, 5) })
	checkPanics(t, "not NaN", func() { Decide(r, nan) })
}

// TestDetectable: it is the inverse of BlocksToResolve, and has three oracles of its own.
func TestDetectable(t *testing.T) {
	for _, sd := range []float64{0.002, 0.3} {
		for _, n := range []int{2, 5, 50} {
			for _, alpha := range []float64{0.05, 0.003} {
				e := detectable(sd, n, alpha, 0.8)
				if got := blocksToResolve(sd, e*1.0001, alpha, 0.8); got != n {
					t.Errorf("SD %v: %d blocks detect %v, but that needs %d", sd, n, e, got)
				}
				if got := blocksToResolve(sd, e*0.9999, alpha, 0.8); got != n+1 {
					t.Errorf("SD %v: less than %v needs %d, want %d", sd, e, got, n+1)
				}
			}
		}
	}
	check := func(sd float64, n int, power, want, within float64) {
		t.Helper()
		got := detectable(sd, n, 0.05, power)
		if !(math.Abs(got-want) <= within) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("Detectable(%v, %d, %v) = %v, want %v", sd, n, power, got, want)
		}
	}
	// Many blocks: (1.95996 + 0.84162) sd / sqrt n = 2.80158 x 0.1 / 100.
	check(0.1, 10_000, 0.8, math.Expm1(0.00280158), 1e-6)
	// Cohen, table 2.4.1: n = 10, one sample, d = 1: power 0.80.
	check(0.01, 10, 0.803, math.Expm1(0.01), 2e-5)
	check(0, 10, 0.8, 0, 0)
	check(0.01, 10, 0.05, 0, 0) // chance alone detects this, so no difference is needed
	nan := math.NaN()
	check(0.01, 1, 0.8, nan, 0)
	check(nan, 10, 0.8, nan, 0)
	check(-1, 10, 0.8, nan, 0)
	check(math.Inf(1), 10, 0.8, nan, 0)
	checkPanics(t, "power must lie", func() { detectable(0.01, 10, 0.05, 80) })
}

func TestUnpairedRatio(t *testing.T) {
	check := func(want Ratio, a, b []float64) {
		t.Helper()
		want.N, want.Confidence = min(len(a), len(b)), 0.95
		got := UnpairedRatio(a, b, 0.95)
		same := got.N == want.N && near(got.Center, want.Center) && near(got.Lo, want.Lo) &&
			near(got.Hi, want.Hi) && near(got.P, want.P) && near(got.SDLog, want.SDLog) &&
			got.Confidence == want.Confidence && got.Assumption == want.Assumption &&
			got.Warning == want.Warning
		if !same {
			t.Errorf("UnpairedRatio(%v, %v)\n got %+v\nwant %+v", a, b, got, want)
		}
	}
	e, nan := math.Exp, math.NaN()
	none := func(center float64, warning string) Ratio {
		return Ratio{Center: center, Lo: nan, Hi: nan, P: 1, SDLog: nan, Warning: warning}
	}
	// Logs 0, 2 and 3, 5: means 1 and 4, variances 2 and 2, SE sqrt(2/2 + 2/2) = sqrt 2, freedom
	// (1+1)^2 / (1/1 + 1/1) = 2. t = 3/sqrt 2; P = 1 - t / sqrt(t^2 + 2).
	half := 0.95 * math.Sqrt(2/0.0975) * math.Sqrt2
	check(Ratio{Center: e(3), Lo: e(3 - half), Hi: e(3 + half), P: 1 - math.Sqrt(4.5/6.5),
		SDLog: 2, Assumption: LogNormal}, []float64{1, e(2)}, []float64{e(3), e(5)})
	// Only b scatters: freedom 1, Cauchy. Logs 0 x 3 and 0, 2: shift 1, SE 1, t = 1.
	check(Ratio{Center: e(1), Lo: e(1 - math.Tan(0.475*math.Pi)),
		Hi: e(1 + math.Tan(0.475*math.Pi)), P: 0.5, SDLog: math.Sqrt2, Assumption: LogNormal},
		[]float64{1, 1, 1}, []float64{1, e(2)})
	// Neither scatters: three above three in 2 of 6!/(3! 3!) = 20 orders.
	equal := "all values of a side are equal: a spread below the resolution is unknown"
	check(Ratio{Center: 2, Lo: 2, Hi: 2, P: 0.1, Assumption: LogNormal, Warning: equal},
		[]float64{1, 1, 1}, []float64{2, 2, 2})
	check(Ratio{Center: 1, Lo: 1, Hi: 1, P: 1, Assumption: LogNormal, Warning: equal},
		[]float64{3, 3}, []float64{3, 3})

	check(none(nan, "one side has no trial: needs n >= 2 of each"), nil, []float64{1})
	check(none(3, "needs n >= 2 of each"), []float64{1}, []float64{3, 3})
	check(none(nan, "trial 2: b is 0 and has no logarithm: needs positive values"),
		[]float64{1, 2}, []float64{1, 0})
	checkPanics(t, "confidence must lie", func() { UnpairedRatio(nil, nil, 95) })
}

func TestQuantileRanksOf(t *testing.T) {
	check := func(n int64, share float64, wantLo, wantHi int64, wantOK bool) {
		t.Helper()
		lo, hi, ok := QuantileRanks(n, share, 0.99, 0.95)
		if lo != wantLo || hi != wantHi || ok != wantOK {
			t.Errorf("QuantileRanks(%d, %v) = %d, %d, %v, want %d, %d, %v",
				n, share, lo, hi, ok, wantLo, wantHi, wantOK)
		}
	}
	check(1000, 1, 983, 997, true) // as QuantileRanks
	// 990 -+ 1.96 sqrt(9.9 x 2) = 990 -+ 8.721
	check(1000, 0.5, 981, 999, true)
	// 9900 -+ 1.96 sqrt(99 x 20) = 9900 -+ 87.21
	check(10_000, 0.05, 9812, 9988, true)
	// n share >= z^2 q/(1-q) = 380.30: 761 at a half, 760 not.
	check(761, 0.5, 745, 761, true)
	check(760, 0.5, 0, 0, false)
	check(1000, 0.38, 0, 0, false)
	check(1000, 7, 983, 997, true)
	check(1000, 0, 0, 0, false)
	check(1000, math.NaN(), 0, 0, false)
	check(1000, 1e-300, 0, 0, false)
	check(0, 1, 0, 0, false)
	for n := int64(1); n < 3000; n += 7 {
		lo, hi, ok := QuantileRanks(n, 1, 0.99, 0.95)
		check(n, 1, lo, hi, ok)
	}
}

func TestComponents(t *testing.T) {
	check := func(want Variance, trials ...[]float64) {
		t.Helper()
		got := Components(trials)
		if !near(got.Between, want.Between) || !near(got.Within, want.Within) ||
			!near(got.Share, want.Share) {
			t.Errorf("Components(%v) = %+v, want %+v", trials, got, want)
		}
	}
	nan, e := math.NaN(), math.Exp
	check(Variance{nan, nan, nan})
	check(Variance{nan, 0, nan}, stairs(5, 4))
	check(Variance{0, 0, nan}, stairs(5, 4), stairs(5, 4))
	// Log means 0 and 2: variance 2, nothing within.
	check(Variance{math.Sqrt2, 0, 1}, stairs(1, 10), stairs(e(2), 10))
	// 9, 11, 9, 11: variance 4/3, of the mean a quarter, over 10^2: 1/300. Both alike: no Between.
	check(Variance{0, math.Sqrt(1.0 / 300), 0}, []float64{9, 11, 9, 11}, []float64{11, 9, 11, 9})
	// The same with a second trial ten times as fast: the relative noise is the same. Log means
	// log 10 and log 100 have variance (log 10)^2 / 2.
	between := math.Ln10*math.Ln10/2 - 1.0/300
	check(Variance{math.Sqrt(between), math.Sqrt(1.0 / 300), between / (between + 1.0/300)},
		[]float64{9, 11, 9, 11}, []float64{90, 110, 90, 110})
	// Twenty values are ten batches of two: 9, 9, 11, 11 ... has batch means 9, 11 ...: variance
	// 10/9 (sum of squares 10 over 9), over 10 batches, over 10^2: 1/900. One by one it would be
	// 20/19 / 20 / 100 = 1/1900.
	pairs := stairs(9, 2, 11, 2, 9, 2, 11, 2, 9, 2, 11, 2, 9, 2, 11, 2, 9, 2, 11, 2)
	check(Variance{nan, math.Sqrt(1.0 / 900), nan}, pairs)
	// Left out: too short, zeros, NaN.
	check(Variance{nan, 0, nan}, stairs(5, 4), stairs(5, 3), stairs(0, 9), stairs(nan, 9), nil)
}
