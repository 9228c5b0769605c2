package stats

import (
	"math"
	"slices"
	"testing"
)

func TestPairedRatio(t *testing.T) {
	check := func(want Ratio, a, b []float64) {
		t.Helper()
		want.N, want.Confidence = len(a), 0.95
		got := PairedRatio(a, b, 0.95)
		same := got.N == want.N && near(got.Center, want.Center) && near(got.Lo, want.Lo) &&
			near(got.Hi, want.Hi) && near(got.P, want.P) && near(got.SDLog, want.SDLog) &&
			got.Confidence == want.Confidence && got.Assumption == want.Assumption &&
			got.Warning == want.Warning
		if !same {
			t.Errorf("PairedRatio(%v, %v)\n got %+v\nwant %+v", a, b, got, want)
		}
	}
	e, nan := math.Exp, math.NaN()
	none := func(center float64, warning string) Ratio {
		return Ratio{Center: center, Lo: nan, Hi: nan, P: 1, SDLog: nan, Warning: warning}
	}

	check(none(nan, "no block has both: needs n >= 2"), nil, nil)
	check(none(1.5, "needs n >= 2"), []float64{2}, []float64{3})
	// Log ratios 0 and 2: mean 1, SD sqrt 2, t = 1. With one degree of freedom t is Cauchy's:
	// P = 1 - (2/pi) atan 1 = 1/2, and t(0.975) = tan(0.475 pi).
	check(Ratio{Center: e(1), Lo: e(1 - math.Tan(0.475*math.Pi)),
		Hi: e(1 + math.Tan(0.475*math.Pi)), P: 0.5, SDLog: math.Sqrt2, Assumption: LogNormal},
		[]float64{5, 7}, []float64{5, 7 * e(2)})
	// Log ratios 0, 1, 2 on blocks that differ hundredfold: mean 1, SD 1, t = sqrt 3. With two
	// degrees P = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(3/5) = 0.2254033; t(0.975) as in TestSummarize.
	half := 0.95 * math.Sqrt(2/0.0975) / math.Sqrt(3)
	check(Ratio{Center: e(1), Lo: e(1 - half), Hi: e(1 + half), P: 1 - math.Sqrt(0.6), SDLog: 1,
		Assumption: LogNormal}, []float64{1, 10, 100}, []float64{1, 10 * e(1), 100 * e(2)})
	// The same inverted: b/a becomes a/b, P stays.
	check(Ratio{Center: e(-1), Lo: e(-1 - half), Hi: e(-1 + half), P: 1 - math.Sqrt(0.6),
		SDLog: 1, Assumption: LogNormal},
		[]float64{1, 10 * e(1), 100 * e(2)}, []float64{1, 10, 100})

	equal := "all ratios are equal: a spread below the resolution is unknown"
	check(Ratio{Center: 1, Lo: 1, Hi: 1, P: 1, Assumption: LogNormal, Warning: equal},
		[]float64{3, 4}, []float64{3, 4})
	// All three log ratios are positive and equal: P = 2/2^3.
	check(Ratio{Center: 2, Lo: 2, Hi: 2, P: 0.25, Assumption: LogNormal, Warning: equal},
		[]float64{1, 1, 1}, []float64{2, 2, 2})

	check(none(nan, "pair 2: a is 0 and has no logarithm: needs positive values"),
		[]float64{1, 0}, []float64{1, -1})
	check(none(nan, "pair 1: b is -1 and has no logarithm: needs positive values"),
		[]float64{1, 2}, []float64{-1, 1})
	check(none(nan, "pair 2: b is NaN and has no logarithm: needs positive values"),
		[]float64{1, 2}, []float64{1, nan})

	checkPanics(t, "pairs need equal lengths, not 2 and 1",
		func() { PairedRatio([]float64{1, 2}, []float64{1}, 0.95) })
	checkPanics(t, "confidence must lie between 0 and 1, not 1",
		func() { PairedRatio(nil, nil, 1) })
}

func TestAlign(t *testing.T) {
	check := func(a, b map[int]float64, wantA, wantB []float64) {
		t.Helper()
		gotA, gotB, blocks := Align(Item{Values: a}, Item{Values: b})
		for i, block := range blocks {
			if a[block] != gotA[i] || b[block] != gotB[i] {
				t.Errorf("block %d of %v and %v has %v, %v", block, a, b, gotA[i], gotB[i])
			}
		}
		if !slices.Equal(gotA, wantA) || !slices.Equal(gotB, wantB) || len(blocks) != len(gotA) {
			t.Errorf("Align(%v, %v) = %v, %v, want %v, %v", a, b, gotA, gotB, wantA, wantB)
		}
	}
	check(nil, nil, nil, nil)
	check(map[int]float64{1: 10}, map[int]float64{2: 20}, nil, nil)
	check(map[int]float64{3: 30, 1: 10, 2: 20}, map[int]float64{4: 4, 3: 3, 1: 1},
		[]float64{10, 30}, []float64{1, 3})
}

// blocksToResolve and detectable are for a pair of which only the SD is known.
func blocksToResolve(sd, effect, alpha, power float64) int {
	return Ratio{SDLog: sd}.Resolves(effect, alpha, power)
}

func detectable(sd float64, n int, alpha, power float64) float64 {
	return Ratio{N: n, SDLog: sd}.Detects(alpha, power)
}

func TestBlocksToResolve(t *testing.T) {
	check := func(sd, effect, alpha, power float64, want int) {
		t.Helper()
		if got := blocksToResolve(sd, effect, alpha, power); got != want {
			t.Errorf("BlocksToResolve(%v, %v, %v, %v) = %d, want %d",
				sd, effect, alpha, power, got, want)
		}
	}
	// With d = log(1 + effect) / SD and z at 1 - alpha/2, n is about (z + z(power))^2 / d^2 + z^2/2
	// (Guenther 1981), which is near enough to decide the whole number in these rows.
	// At 0.05 and 0.8: (1.960 + 0.842)^2 = 7.849, and 1.960^2/2 = 1.921.
	check(1, math.Expm1(1), 0.05, 0.8, 10)      // 7.849 + 1.921 = 9.8
	check(1, math.Expm1(0.8), 0.05, 0.8, 15)    // 12.264 + 1.921 = 14.2
	check(1, math.Expm1(0.5), 0.05, 0.8, 34)    // 31.396 + 1.921 = 33.3
	check(1, math.Expm1(0.2), 0.05, 0.8, 199)   // 196.2 + 1.921 = 198.1
	check(0.5, math.Expm1(0.1), 0.05, 0.8, 199) // only effect over SD matters
	check(1, math.Expm1(-0.5), 0.05, 0.8, 34)   // and not its sign
	check(1, math.Expm1(0.5), 0.05, 0.9, 44)    // (1.960 + 1.282)^2 = 10.507: 42.0 + 1.9 = 43.9
	check(1, math.Expm1(0.5), 0.05/15, 0.8, 62) // (2.935 + 0.842)^2 = 14.27: 57.1 + 4.3 = 61.4
	check(0.01, 0.5, 0.05, 0.8, 2)              // d = 40: 40 sqrt 2 = 57 >> t(0.975, 1) = 12.7

	check(0, 0.01, 0.05, 0.8, 2) // no noise: the minimum for an interval
	check(0.02, 0, 0.05, 0.8, Unresolvable)
	check(0.02, -1, 0.05, 0.8, Unresolvable)
	check(0.02, -2, 0.05, 0.8, Unresolvable)
	check(-1, 0.1, 0.05, 0.8, Unresolvable)
	check(math.NaN(), 0.1, 0.05, 0.8, Unresolvable)
	check(1, math.NaN(), 0.05, 0.8, Unresolvable)
	check(1, math.Expm1(0.03), 0.05, 0.8, 8723)         // 7.849 / 0.0009 + 1.9 = 8722.8
	check(1, math.Expm1(0.02), 0.05, 0.8, Unresolvable) // 19,624 > 10,000

	checkPanics(t, "power must lie between 0 and 1, not 80",
		func() { blocksToResolve(1, 0.1, 0.05, 80) })
}

// TestPowerOfT: without an effect the power is alpha, with an infinite one it is 1, and three
// blocks have a closed form to compare with.
func TestPowerOfT(t *testing.T) {
	check := func(n int, d, alpha, want float64) {
		t.Helper()
		if got := powerOfT(n, float64(n-1), alpha)(d); math.Abs(got-want) > 1e-5 {
			t.Errorf("powerOfT(%d, %v, %v) = %v, want %v", n, d, alpha, got, want)
		}
	}
	for _, n := range []int{2, 3, 6, 100, 10_000} {
		check(n, 0, 0.05, 0.05)
		check(n, 0, 0.05/15, 0.05/15)
		check(n, 1e9, 0.05, 1)
	}
	// n = 3: the sample variance over the true one is exponential with mean 1, so a normal x beats
	// c times its root with probability 1 - exp(-x^2/c^2). Averaged over x ~ N(delta, 1), x > 0:
	// Phi(delta) - exp(-delta^2/2 + delta^2/(4a)) / sqrt(2a) * Phi(delta / sqrt(2a)) with
	// a = 1/2 + 1/c^2; the other side is the same with -delta.
	c := 0.95 * math.Sqrt(2/0.0975) // t(0.975, 2)
	root := math.Sqrt(1 + 2/(c*c))  // sqrt(2a)
	side := func(delta float64) float64 {
		return normal(delta) - math.Exp(delta*delta/2*(1/(root*root)-1))/root*normal(delta/root)
	}
	for _, d := range []float64{0.5, 1, 2, 5} {
		delta := d * math.Sqrt(3)
		check(3, d, 0.05, side(delta)+side(-delta)) // 0.179 at d = 1, 0.975 at d = 5
	}
}
