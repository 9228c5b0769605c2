package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// near compares to 9 digits; two NaN are equal.
func near(got, want float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return got == want || math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))
}

// checkPanics requires f to panic with a message that contains the given words.
func checkPanics(t *testing.T, words string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got, _ := recover().(string); !strings.Contains(got, words) {
			t.Errorf("panic %q, want it to say %q", got, words)
		}
	}()
	f()
}

func TestMedian(t *testing.T) {
	check := func(want float64, xs ...float64) {
		t.Helper()
		before := slices.Clone(xs)
		if got := Median(xs); !near(got, want) {
			t.Errorf("Median(%v) = %v, want %v", xs, got, want)
		}
		if !slices.EqualFunc(xs, before, near) {
			t.Errorf("Median changed %v to %v", before, xs)
		}
	}
	check(math.NaN())
	check(7, 7)
	check(2.5, 3, 2)       // (2 + 3) / 2
	check(3, 9, 1, 3)      // sorted 1 3 9
	check(2.5, 4, 1, 3, 2) // sorted 1 2 3 4: (2 + 3) / 2
	check(-1, -5, -1, 0)
	check(math.MaxFloat64, math.MaxFloat64, math.MaxFloat64) // the sum would be +Inf
	check(math.NaN(), 1, math.NaN(), 3)
}

func TestSummarize(t *testing.T) {
	check := func(confidence float64, want Summary, xs ...float64) {
		t.Helper()
		before := slices.Clone(xs)
		want.N = len(xs)
		got := Summarize(xs, confidence)
		same := got.N == want.N && near(got.Center, want.Center) && near(got.Lo, want.Lo) &&
			near(got.Hi, want.Hi) && near(got.Confidence, want.Confidence) &&
			got.Assumption == want.Assumption && got.Warning == want.Warning
		if !same {
			t.Errorf("Summarize(%v, %v)\n got %+v\nwant %+v", xs, confidence, got, want)
		}
		if !slices.EqualFunc(xs, before, near) {
			t.Errorf("Summarize changed %v to %v", before, xs)
		}
	}
	e, nan, inf := math.Exp, math.NaN(), math.Inf(1)
	none := func(center, confidence float64, warning string) Summary {
		return Summary{Center: center, Lo: nan, Hi: nan, Confidence: confidence, Warning: warning}
	}

	check(0.95, none(nan, 0.95, "needs n >= 2"))
	check(0.95, none(5, 0.95, "needs n >= 2"), 5)
	// Logarithms 0 and 2: mean 1, SD sqrt 2, t(0.975, 1) = tan(0.475 pi) = 12.7062047361747;
	// half = 12.706 * sqrt 2 / sqrt 2. The median is taken of the values themselves.
	check(0.95, Summary{Center: (1 + e(2)) / 2, Lo: e(1 - math.Tan(0.475*math.Pi)),
		Hi: e(1 + math.Tan(0.475*math.Pi)), Confidence: 0.95, Assumption: LogNormal}, e(2), 1)
	// Logarithms 0, 1, 2: mean 1, SD 1. With two degrees of freedom t(p) has a closed form,
	// (2p-1) sqrt(2 / (1 - (2p-1)^2)); at 0.975 it is 0.95 sqrt(2/0.0975) = 4.3026527; half is
	// that over sqrt 3 = 2.4841377.
	half := 0.95 * math.Sqrt(2/0.0975) / math.Sqrt(3)
	check(0.95, Summary{Center: e(1), Lo: e(1 - half), Hi: e(1 + half), Confidence: 0.95,
		Assumption: LogNormal}, e(2), 1, e(1))
	// The range of six contains the median with 1 - 2/2^6 = 0.96875.
	check(0.95, Summary{Center: 3.5, Lo: -10, Hi: 6, Confidence: 0.96875, Assumption: Nothing},
		6, 5, 4, 3, 2, -10)
	// Ten: ranks 2 and 9 exclude 2 (1 + 10) / 2^10 = 0.021484375.
	check(0.95, Summary{Center: 5.5, Lo: 2, Hi: 9, Confidence: 1 - 22.0/1024,
		Assumption: Nothing}, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	// At 0.99 six do not suffice: 0.96875 < 0.99; eight do, 1 - 2/2^8 = 0.9921875.
	if got := Summarize([]float64{1, 2, 3, 4, 5, 6}, 0.99); got.Assumption != LogNormal {
		t.Errorf("six values at 0.99 assume %q", got.Assumption)
	}
	check(0.99, Summary{Center: 4.5, Lo: 1, Hi: 8, Confidence: 0.9921875, Assumption: Nothing},
		1, 2, 3, 4, 5, 6, 7, 8)

	check(0.95, none(4, 0.95, "value 2 is 0 and has no logarithm: needs n >= 6, "+
		"where none is taken"), 4, 0, 5)
	check(0.99, none(-1, 0.99, "value 1 is -1 and has no logarithm: needs n >= 8, "+
		"where none is taken"), -1, -1, 5)
	check(0.95, none(nan, 0.95, "value 3 is NaN: needs finite values"), 1, 2, nan)
	check(0.95, none(nan, 0.95, "value 1 is +Inf: needs finite values"), inf, 2, 3)
	equal := "all values are equal: a spread below the resolution is unknown"
	check(0.95, Summary{Center: 0.1, Lo: 0.1, Hi: 0.1, Confidence: 0.95, Assumption: LogNormal,
		Warning: equal}, 0.1, 0.1, 0.1)
	check(0.95, Summary{Confidence: 0.96875, Assumption: Nothing, Warning: equal},
		0, 0, 0, 0, 0, 0)

	checkPanics(t, "confidence must lie between 0 and 1, not 95",
		func() { Summarize([]float64{1, 2}, 95) })
}

// TestRanksNeed compares the number in a warning with benchmath, which decides: the named n gives a
// distribution-free interval and one less does not.
func TestRanksNeed(t *testing.T) {
	check := func(confidence float64, want int) {
		t.Helper()
		if got := ranksNeed(confidence); got != want {
			t.Errorf("ranksNeed(%v) = %d, want %d", confidence, got, want)
		}
		xs := make([]float64, want)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		at, below := Summarize(xs, confidence), Summarize(xs[1:], confidence)
		if at.Assumption != Nothing || below.Assumption == Nothing {
			t.Errorf("at %v, n = %d assumes %q and one less %q", confidence, want,
				at.Assumption, below.Assumption)
		}
	}
	check(0.50, 2) // 1 - 2/4 = 0.5
	check(0.90, 5) // 1 - 2/16 = 0.875, 1 - 2/32 = 0.9375
	check(0.95, 6) // 0.9375, 0.96875
	check(0.99, 8) // 1 - 2/128 = 0.984, 0.992
}

// TestNoSurprises passes unusual values to everything that returns an interval: either there is an
// interval that contains its center, or a warning says why not.
func TestNoSurprises(t *testing.T) {
	const seed = 17
	r := rand.New(rand.NewPCG(seed, 0))
	palette := []float64{0, -1, 1, 1, 2, 3, 1e-9, 1e300, -1e300, math.SmallestNonzeroFloat64,
		math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	wholes := 0
	check := func(what any, center, lo, hi float64, warning string) {
		t.Helper()
		whole := lo <= center && center <= hi
		if whole {
			wholes++
		}
		none := math.IsNaN(lo) && math.IsNaN(hi) && warning != ""
		if !whole && !none {
			t.Errorf("seed %d: %+v", seed, what)
		}
	}
	for range 20_000 {
		n := r.IntN(9)
		r.Shuffle(len(palette), func(i, j int) {
			palette[i], palette[j] = palette[j], palette[i]
		})
		colours := 1 + r.IntN(4) // few, so that all are often enough valid
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			a[i], b[i] = palette[r.IntN(colours)], palette[r.IntN(colours)]
		}
		for _, confidence := range []float64{0.01, 0.5, 0.95, 0.999999} {
			for _, xs := range [][]float64{a, b} {
				s := Summarize(xs, confidence)
				check(s, s.Center, s.Lo, s.Hi, s.Warning)
			}
			p := PairedRatio(a, b, confidence)
			check(p, p.Center, p.Lo, p.Hi, p.Warning)
			if !(p.P >= 0 && p.P <= 1) {
				t.Errorf("seed %d: P of %+v", seed, p)
			}
		}
	}
	if wholes < 20_000 {
		t.Errorf("only %d of 240,000 results had an interval: the palette is too awkward", wholes)
	}
}
