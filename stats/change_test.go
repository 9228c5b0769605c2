package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEnergy compares the cumulative distances with the definition, pair by pair.
func TestEnergy(t *testing.T) {
	const seed = 9
	r := rand.New(rand.NewPCG(seed, 0))
	xs := make([]float64, 12)
	for i := range xs {
		xs[i] = r.NormFloat64()
	}
	d := distancesOf(xs)
	mean := func(as, bs []float64, pairs int) float64 {
		total := 0.0
		for _, a := range as {
			for _, b := range bs {
				total += math.Abs(a - b)
			}
		}
		return total / float64(pairs)
	}
	for from := range xs {
		for at := from + 2; at < len(xs); at++ {
			for to := at + 2; to <= len(xs); to++ {
				a, b := xs[from:at], xs[at:to]
				n, m := len(a), len(b)
				want := 2*mean(a, b, n*m) - mean(a, a, n*(n-1)) - mean(b, b, m*(m-1))
				want *= float64(n*m) / float64(n+m)
				if got := d.energy(from, at, to); !near(got, want) {
					t.Fatalf("seed %d: %d %d %d: %v, want %v", seed, from, at, to, got, want)
				}
			}
		}
	}
}

// hum is a small deterministic noise: +1, -1, 0 about a level, SD about 0.8.
func hum(levels ...float64) []float64 {
	xs := slices.Clone(levels)
	for i := range xs {
		xs[i] += float64((i*2+1)%3) - 1
	}
	return xs
}

func TestChanges(t *testing.T) {
	check := func(name string, xs []float64, want ...int) {
		t.Helper()
		before := slices.Clone(xs)
		var got []int
		for _, c := range Changes(xs, 0.05) {
			got = append(got, c.At)
			if !(c.P >= 0 && c.P <= 0.05) {
				t.Errorf("%s: P %v", name, c.P)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: changes at %v, want %v", name, got, want)
		}
		if !slices.EqualFunc(xs, before, near) {
			t.Errorf("%s: the history was changed", name)
		}
	}
	check("none", nil)
	check("five", []float64{1, 1, 9, 9, 9})
	check("level", hum(stairs(100, 30)...))
	check("step", hum(stairs(100, 15, 95, 15)...), 15)
	check("up and down", hum(stairs(100, 12, 90, 8, 100, 12)...), 12, 20)
	check("stairs", hum(stairs(100, 10, 95, 10, 105, 10)...), 10, 20)
	check("short", hum(stairs(100, 10, 90, 3, 100, 10)...), 10, 13)
	check("three at the end", hum(stairs(100, 20, 93, 3)...), 20)
	// A level needs three values: at nine SDs the cut includes one earlier run, at two SDs none.
	check("two at the end", hum(stairs(100, 20, 93, 2)...), 19)
	check("two, a little", hum(stairs(100, 20, 98, 2)...))
	check("outlier", hum(stairs(100, 15, 60, 1, 100, 15)...))
	check("outlier at the end", hum(stairs(100, 25, 60, 1)...))
	// Without noise: 2 of 12!/(6! 6!) = 924 orders, x 7 places = 0.015; 2/20 x 1 is too much.
	check("exact", stairs(7, 6, 8, 6), 6)
	check("exact, too few", stairs(7, 3, 8, 3))
	check("constant", stairs(7, 30))
	check("NaN", append(hum(stairs(100, 15, 95, 15)...), math.NaN()))
	check("Inf", append(hum(stairs(100, 15, 95, 15)...), math.Inf(-1)))
	// Of very long histories only the latest values count; the index is that of the whole.
	long := hum(stairs(50, 100, 100, mostValues-20, 95, 20)...)
	check("long", long, len(long)-20)

	checkPanics(t, "alpha must lie", func() { Changes(nil, 5) })
}

func TestChangeSays(t *testing.T) {
	// Levels 1, 2, 3 and 11, 12, 13: means 2 and 12, pooled variance 1, t = 10 / sqrt(2/3) with 4
	// degrees of freedom, one place. P by the closed form of t with 4:
	// 1 - x(1 + (1 - x^2)/2) with x = t / sqrt(t^2 + 4).
	got := Changes([]float64{1, 2, 3, 11, 12, 13}, 0.05)
	x := math.Sqrt(150.0 / 154)
	p := 1 - x*(1+(1-x*x)/2)
	if len(got) != 1 || got[0].At != 3 || got[0].Before != 2 || got[0].After != 12 ||
		math.Abs(got[0].P/p-1) > 1e-6 {
		t.Errorf("got %+v, want a change at 3 from 2 to 12, P %v", got, p)
	}
	// With one more value of the lower level there are two places, and P is doubled.
	got = Changes([]float64{2, 1, 2, 3, 11, 12, 13}, 0.05)
	// Means 2, 12; squares 2 + 2 over 5; t = 10 / sqrt(0.8 x 7/12) = 14.64.
	want := 2 * differ([]float64{2, 1, 2, 3}, []float64{11, 12, 13})
	if len(got) != 1 || got[0].At != 4 || !near(got[0].P, want) || want > 1e-3 {
		t.Errorf("got %+v, want P %v", got, want)
	}
}

// A history of one value has no change, although means summed over stretches of different lengths
// differ in the last digit.
func TestChangesOfAConstant(t *testing.T) {
	for _, x := range []float64{0.1, 0.3, 53499.7, 53500.1} {
		for n := 6; n <= 24; n++ {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = x
			}
			if got := Changes(xs, 0.05); len(got) > 0 {
				t.Errorf("%d times %v changes: %+v", n, x, got)
			}
		}
	}
}
