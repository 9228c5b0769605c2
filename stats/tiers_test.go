package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// logItem has exp(level + noise[i]) in block i+1; a NaN in noise omits the block.
func logItem(name string, level float64, noise ...float64) Item {
	item := Item{Name: name, Values: map[int]float64{}}
	for i, x := range noise {
		if !math.IsNaN(x) {
			item.Values[i+1] = math.Exp(level + x)
		}
	}
	return item
}

func TestTiers(t *testing.T) {
	// check writes tiers as "a b | c".
	check := func(want string, items ...Item) {
		t.Helper()
		for range len(items) + 1 { // the order of items must not matter
			var parts []string
			for _, tier := range Tiers(items, 0.05) {
				parts = append(parts, strings.Join(tier, " "))
			}
			if got := strings.Join(parts, " | "); got != want {
				t.Errorf("Tiers(%v) = %q, want %q", items, got, want)
			}
			if len(items) > 0 {
				items = append(slices.Clone(items[1:]), items[0])
			}
		}
	}
	nan := math.NaN()
	u := []float64{0.001, -0.001, 0.001, -0.001, 0.001, -0.001} // quiet: SD 0.0011
	v := []float64{0.001, 0.001, -0.002, 0.001, 0.001, -0.002}  // quiet, other shape
	w := []float64{0.2, -0.2, 0.2, -0.2, 0.2, -0.2}             // noisy: SD 0.22

	check("")
	check("a", logItem("a", 0, u...))
	check("a", logItem("a", 0, 0)) // one block
	check("b a", logItem("a", 0, 0), logItem("b", 9, 0))
	// 5 % apart at 0.1 % noise: t is about 0.05 / (0.0017 / sqrt 6) = 72.
	check("a | b", logItem("a", 0.05, u...), logItem("b", 0, v...))
	// 5 % apart, one of them noisy: t is about 0.05 / (0.22 / sqrt 6) = 0.56.
	check("a b", logItem("a", 0.05, w...), logItem("b", 0, v...))
	// Not transitive: a and b equal, b and c equal, a above c.
	check("a b | c", logItem("a", 0.10, u...), logItem("b", 0.05, w...), logItem("c", 0, v...))
	// Differs only from the second member: c must not be in a tier with b.
	check("a b | c", logItem("a", 0.10, w...), logItem("b", 0.05, u...), logItem("c", 0, v...))
	check("a | b | c", logItem("a", 0.10, u...), logItem("b", 0.05, v...), logItem("c", 0, u...))
	// c leads a by 1 and b by 105, a leads b by 104: leads are symmetric.
	check("c | a | b", logItem("a", 4, u...), logItem("b", -100, v...), logItem("c", 5, u...))
	// Equal to the last digit: by name.
	check("a b", logItem("a", 0, u...), logItem("b", 0, u...))

	// Blocks 5 and 6 run at 1/e of the speed. b missed them, and its plain mean is far higher than
	// a's (0 against -0.28), but in the four common blocks a leads by 5 %.
	slow := func(xs []float64) []float64 {
		ys := slices.Clone(xs)
		ys[4], ys[5] = ys[4]-1, ys[5]-1
		return ys
	}
	check("a | b", logItem("a", 0.05, slow(u)...), logItem("b", 0, append(v[:4:4], nan, nan)...))
	// No common block: ordered, never apart.
	check("b a", logItem("a", 0, 0.1, -0.1, 0, nan, nan, nan),
		logItem("b", 5, nan, nan, nan, 0.1, -0.1, 0))

	// Without values, or with one without logarithm: in no tier.
	check("a | b", logItem("a", 0.05, u...), logItem("b", 0, v...), Item{Name: "none"},
		Item{Name: "zero", Values: map[int]float64{1: 5, 2: 0, 3: 5}},
		Item{Name: "nan", Values: map[int]float64{1: 5, 2: nan, 3: 5}})

	checkPanics(t, `two items are named "a"`,
		func() { Tiers([]Item{logItem("a", 0, 0), logItem("a", 0, 0)}, 0.05) })
	checkPanics(t, "alpha must lie between 0 and 1, not 5", func() { Tiers(nil, 5) })
}

func TestHolm(t *testing.T) {
	check := func(ps, want []float64, wantApart int) {
		t.Helper()
		pairs := make([]Comparison, len(ps))
		for i, p := range ps {
			pairs[i] = Comparison{Ratio: Ratio{P: p}, PHolm: 1}
			if p == 1 { // a pair that could not be compared
				pairs[i].Ratio.Lo = math.NaN()
			}
		}
		holm(pairs, 0.05)
		apart := 0
		for i, c := range pairs {
			if !near(c.PHolm, want[i]) {
				t.Errorf("P %v: PHolm[%d] = %v, want %v", ps, i, c.PHolm, want[i])
			}
			if c.Apart {
				apart++
			}
		}
		if apart != wantApart {
			t.Errorf("P %v: %d pairs apart, want %d", ps, apart, wantApart)
		}
	}
	check(nil, nil, 0)
	check([]float64{0.05}, []float64{0.05}, 1) // exactly alpha still rejects
	// Sorted 0.005*4, 0.01*3, 0.03*2, then 0.04*1 raised to the 0.06 before it.
	check([]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}, 2)
	check([]float64{0.6, 0.7}, []float64{1, 1}, 0) // 0.6 * 2 = 1.2, cut to 1
	// Pairs without a test do not count: 0.02 is corrected for two pairs, not four.
	check([]float64{1, 0.02, 1, 0.6}, []float64{1, 0.04, 1, 0.6}, 1)
}

// For any weights and any dependence between tests, a false difference is reported in at most one
// case of twenty.
func TestHolmKeepsItsError(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 40_000
	for _, weights := range [][]float64{{1, 1, 1}, {8, 1, 1}} {
		for _, shared := range []float64{0, 0.9} {
			wrong := 0
			for range rounds {
				common := random.NormFloat64()
				ps, least := map[int]float64{}, 1.0
				for i := range weights {
					z := math.Sqrt(shared)*common + math.Sqrt(1-shared)*random.NormFloat64()
					ps[i] = math.Erfc(math.Abs(z) / math.Sqrt2)
				}
				Holm([]int{0, 1, 2}, func(i int) float64 { return ps[i] },
					func(i int) float64 { return weights[i] },
					func(_ int, p float64) { least = min(least, p) })
				if least <= 0.05 {
					wrong++
				}
			}
			if share := float64(wrong) / rounds; share > 0.0535 || shared == 0 && share < 0.0465 {
				t.Errorf("weights %v, %v in common: wrong in %v, want 0.05", weights, shared, share)
			}
		}
	}
}

// TestCompare: the reciprocal, as used for times, changes no P, and the pair's ratio is B/A.
func TestCompare(t *testing.T) {
	a := logItem("a", 0.02, 0.01, -0.02, 0.03, 0.01)
	b := logItem("b", 0, -0.01, 0.02, 0, 0.01)
	inverse := func(item Item) Item {
		inv := Item{Name: item.Name, Values: map[int]float64{}}
		for block, x := range item.Values {
			inv.Values[block] = 1 / x
		}
		return inv
	}
	up := Compare([]Item{a, b}, 0.05)[0]
	down := Compare([]Item{inverse(a), inverse(b)}, 0.05)[0]
	if !near(up.PHolm, down.PHolm) || !near(up.Ratio.Center, 1/down.Ratio.Center) {
		t.Errorf("reciprocals: %+v and %+v", up, down)
	}
	// Log ratios b - a: -0.04, 0.02, -0.05, -0.02; mean -0.0225.
	if up.A != "a" || up.B != "b" || !near(math.Log(up.Ratio.Center), -0.0225) {
		t.Errorf("pair %s %s has ratio %v", up.A, up.B, up.Ratio.Center)
	}
}
