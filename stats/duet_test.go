package stats_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"prony.example/stats"
)

func TestDuetWindows(t *testing.T) {
	nan := math.NaN()
	check := func(name string, a, b []float64, want stats.Windows, left float64) {
		t.Helper()
		got := stats.DuetWindows(a, b)
		for i, pair := range [][2]float64{{got.LogRatio, want.LogRatio}, {got.SD, want.SD},
			{got.SDA, want.SDA}, {got.SDB, want.SDB}, {got.Correlation, want.Correlation},
			{got.Left(), left}} {
			if !alike(pair[0], pair[1]) {
				t.Errorf("%s: value %d is %v, want %v", name, i, pair[0], pair[1])
			}
		}
		if got.N != want.N || got.Skipped != want.Skipped {
			t.Errorf("%s: %d windows and %d skipped", name, got.N, got.Skipped)
		}
	}
	e := math.E
	// Both move together and b is e times a: log ratio 1 in each window, no noise left.
	check("together", []float64{1, e, 1, e}, []float64{e, e * e, e, e * e}, stats.Windows{
		N: 4, LogRatio: 1, SD: 0, SDA: 1 / math.Sqrt(3), SDB: 1 / math.Sqrt(3), Correlation: 1,
	}, 0)
	// One rises when the other falls: logs 0 1 0 1 and 1 0 1 0, differences 1 -1 1 -1.
	check("against", []float64{1, e, 1, e}, []float64{e, 1, e, 1}, stats.Windows{
		N: 4, LogRatio: 0, SD: 2 / math.Sqrt(3), SDA: 1 / math.Sqrt(3), SDB: 1 / math.Sqrt(3),
		Correlation: -1,
	}, math.Sqrt2) // 2/√3 over √(1/3 + 1/3)
	// Logs 0 0 1 1 and 0 1 0 1 have nothing in common: pairing leaves all.
	check("apart", []float64{1, 1, e, e}, []float64{1, e, 1, e}, stats.Windows{
		N: 4, LogRatio: 0, SD: math.Sqrt(2. / 3), SDA: 1 / math.Sqrt(3), SDB: 1 / math.Sqrt(3),
		Correlation: 0,
	}, 1)
	// A pause of b is no missing window: 3 answers of 6, log 1/2, though the ratio was 1 twice.
	check("pause", []float64{2, 2, 2}, []float64{2, 0, 1}, stats.Windows{
		N: 2, Skipped: 1, LogRatio: math.Log(0.5), SD: math.Ln2 / math.Sqrt2, SDA: 0,
		SDB: math.Ln2 / math.Sqrt2, Correlation: nan,
	}, 1)
	check("none", nil, nil, stats.Windows{LogRatio: nan, SD: nan, SDA: nan, SDB: nan,
		Correlation: nan}, nan)
	check("nothing", []float64{0}, []float64{0}, stats.Windows{Skipped: 1, LogRatio: nan, SD: nan,
		SDA: nan, SDB: nan, Correlation: nan}, nan)
}

func alike(x, want float64) bool {
	return math.IsNaN(x) && math.IsNaN(want) || math.Abs(x-want) <= 1e-12
}

func TestSwappedRatio(t *testing.T) {
	// b/a is 2, the left side e^0.1 above the right: ln 2 ± 0.1, and ±0.01 of noise. Squares sum to
	// 4 · 0.01², two degrees of freedom: SD √2 · 0.01; se of both effects that · √(1/2 + 1/2) / 2.
	d := math.Ln2
	logs := []float64{d + 0.11, d - 0.11, d + 0.09, d - 0.09}
	got := stats.SwappedRatio(logs, []bool{true, false, true, false}, 0.95)
	r := got.Ratio
	half := 4.302652729911275 * 0.01 * math.Sqrt2 / 2 // t(0.975, 2)
	for i, pair := range [][2]float64{{r.Center, 2}, {r.SDLog, 0.01 * math.Sqrt2},
		{got.Side, math.Exp(0.1)}, {r.Lo, 2 * math.Exp(-half)}, {r.Hi, 2 * math.Exp(half)},
		{got.SideLo, math.Exp(0.1 - half)}, {got.SideHi, math.Exp(0.1 + half)}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("value %d is %v, want %v", i, pair[0], pair[1])
		}
	}
	// The plain pairing has the same centre and takes the side for noise.
	plain := stats.PairedRatio([]float64{1, 1, 1, 1}, []float64{math.Exp(logs[0]),
		math.Exp(logs[1]), math.Exp(logs[2]), math.Exp(logs[3])}, 0.95)
	if math.Abs(plain.Center-2) > 1e-9 || plain.SDLog < 5*r.SDLog {
		t.Errorf("paired without the sides: %+v", plain)
	}
	// Three on the left, one on the right: the side does not leak into the ratio.
	logs = []float64{d + 0.11, d + 0.1, d + 0.09, d - 0.1}
	got = stats.SwappedRatio(logs, []bool{true, true, true, false}, 0.95)
	if math.Abs(got.Ratio.Center-2) > 1e-9 || math.Abs(got.Side-math.Exp(0.1)) > 1e-9 {
		t.Errorf("unequal groups: %+v", got)
	}
}

func TestSwappedRatioRefuses(t *testing.T) {
	check := func(words string, logs []float64, left ...bool) {
		t.Helper()
		got := stats.SwappedRatio(logs, left, 0.95)
		if got.Ratio.HasInterval() || !math.IsNaN(got.Side) ||
			!strings.Contains(got.Ratio.Warning, words) || got.Ratio.P != 1 {
			t.Errorf("%v %v: %+v", logs, left, got)
		}
	}
	check("needs three duets", []float64{1, 2}, true, false)
	check("needs three duets", []float64{1, 2, 3}, true, true, true)
	check("needs three duets", nil)
	check("duet 2 has no log ratio", []float64{1, math.NaN(), 3}, true, false, true)
	same := stats.SwappedRatio([]float64{0.1, -0.1, 0.1}, []bool{true, false, true}, 0.95)
	if same.Ratio.P != 1 || same.Ratio.Center != 1 || same.Ratio.Warning == "" {
		t.Errorf("without noise: %+v", same)
	}
}

// Of targets that are alike, on sides that are not, 5 % of intervals leave out 1, and not more.
func TestSwappedRatioCovers(t *testing.T) {
	const runs, duets = 4000, 6
	rng := rand.New(rand.NewPCG(7, 7))
	missed := 0
	for range runs {
		logs, left := make([]float64, duets), make([]bool, duets)
		for i := range logs {
			left[i] = i%2 == 0
			logs[i] = 0.02 * rng.NormFloat64()
			if left[i] {
				logs[i] += 0.05
			} else {
				logs[i] -= 0.05
			}
		}
		if r := stats.SwappedRatio(logs, left, 0.95).Ratio; r.Lo > 1 || r.Hi < 1 {
			missed++
		}
	}
	// A share of 5 % of 4,000 has a deviation of 0.34 %; four of them are allowed.
	if share := float64(missed) / runs; share < 0.036 || share > 0.064 {
		t.Errorf("%.1f %% of the intervals miss, want 5", 100*share)
	}
}
