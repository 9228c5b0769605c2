package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// leastCost tries all 2^(n-1) ways to cut n values, and returns the minimum of cost plus penalties,
// which pelt must reach.
func leastCost(n int, penalty float64, cost func(from, to int) float64) float64 {
	best := math.Inf(1)
	for cuts := range 1 << (n - 1) {
		total, from := -penalty, 0
		for to := 1; to <= n; to++ {
			if to == n || cuts>>(to-1)&1 == 1 {
				total += cost(from, to) + penalty
				from = to
			}
		}
		best = min(best, total)
	}
	return best
}

func costOf(begins []int, n int, penalty float64, cost func(from, to int) float64) float64 {
	total := -penalty
	for i, from := range begins {
		to := n
		if i+1 < len(begins) {
			to = begins[i+1]
		}
		total += cost(from, to) + penalty
	}
	return total
}

// TestPELTIsExact compares pelt, including pruning, with the enumeration of all segmentations.
func TestPELTIsExact(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewPCG(seed, 0))
	cuts := 0
	for range 60 {
		ys := make([]float64, 1+r.IntN(12))
		for i := range ys {
			ys[i] = float64(r.IntN(3)) + 0.3*r.NormFloat64()
		}
		cum := sum(ys)
		penalty := 0.3 * r.ExpFloat64()
		for name, cost := range map[string]func(from, to int) float64{
			"level": cum.about, "line": cum.aboutLine} {
			begins := pelt(len(ys), penalty, cost)
			cuts += len(begins) - 1
			got := costOf(begins, len(ys), penalty, cost)
			if want := leastCost(len(ys), penalty, cost); !near(got, want) {
				t.Errorf("seed %d: %s of %v at %v: %v costs %v, best %v", seed, name, ys, penalty,
					begins, got, want)
			}
		}
	}
	if cuts < 100 {
		t.Errorf("seed %d: only %d cuts in all", seed, cuts)
	}
}

func TestSums(t *testing.T) {
	cum := sum([]float64{1e9 + 1, 1e9 + 2, 1e9 + 4, 1e9 + 4, 1e9 + 4})
	check := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	check("about", cum.about(0, 3), 14.0/3) // mean 7/3: (16 + 1 + 25)/9
	check("about none", cum.about(2, 5), 0)
	// Indices 0, 1, 2 about 1: -1 x 1 + 1 x 4 = 3, over 2.
	b, tt := cum.slope(0, 3)
	check("slope", b, 1.5)
	check("tt", tt, 2)
	// 14/3 - 1.5^2 x 2 = 1/6: residuals 1/6, -1/3, 1/6 squared.
	check("about a line", cum.aboutLine(0, 3), 1.0/6)
	check("two have a line", cum.aboutLine(1, 3), 0)
	b, _ = cum.slope(4, 5)
	check("one has none", b, 0)
}

// TestSegmentMoves: places are ten values apart, with a step at 37, between two of them.
func TestSegmentMoves(t *testing.T) {
	ys := make([]float64, 100)
	for i := 37; i < 100; i++ {
		ys[i] = 1
	}
	check := func(places int, want ...int) {
		t.Helper()
		got := segment(len(ys), places, 0.5, sum(ys).about)
		if !slices.Equal(got, want) {
			t.Errorf("%d places: cuts %v, want %v", places, got, want)
		}
	}
	check(100, 0, 37)
	check(1000, 0, 37)
	check(50, 0, 37)
	// Cuts at 30 and 40 both pay: 10 values, three of them 0, cost 2.1. Both would move to 37; the
	// first one does, and the second then gains nothing.
	if got := segment(len(ys), 10, 0.5, sum(ys).about); !slices.Contains(got, 37) {
		t.Errorf("10 places: cuts %v, want 37 among them", got)
	}
	check(1, 0)
}
