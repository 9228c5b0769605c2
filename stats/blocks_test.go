package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"prony.example/internal/dev/testsets"
)

// TestBlocksByHand has four targets in two blocks. Their log values are 1, 1, -1 and -1 above their
// levels in the first block and as far below in the second.
func TestBlocksByHand(t *testing.T) {
	items := []Item{logItem("a", 7, 1, -1), logItem("b", 5, 1, -1), logItem("c", 3, -1, 1),
		logItem("d", 1, -1, 1)}
	b := NewBlocks(items, 0.95)
	// Each is 1 from its level, and the other three are 1/3 on the other side on average: 4/3, in
	// both blocks, is a variance of 2 (4/3)^2 = 32/9 with one degree of freedom. All four are
	// equal, so all are pooled, and the degrees of freedom double. Moods are 0. The distance from
	// a mood that the target is a quarter of is 3/4 of 4/3: V = 32/9 (3/4)^2 = 2.
	// t(0.975, 2) = 0.95 sqrt(2/0.0975), and V/n = 1.
	t2 := 0.95 * math.Sqrt(2/0.0975)
	s := b.Level(items[0])
	if !near(math.Log(s.Lo), 7-t2) || !near(math.Log(s.Hi), 7+t2) || s.Assumption != Moderated {
		t.Errorf("level %+v, want exp(7 -+ %v)", s, t2)
	}
	// A pair's variance is 64/9, that of its mean 32/9. Satterthwaite has 4 degrees; three times
	// the pairs' single one is the limit. With three degrees the distribution is known:
	// 1/2 + (x/(1+x^2) + atan x)/pi, x = t/sqrt 3.
	r := b.Ratio(items[0], items[2])
	x := 4 / math.Sqrt(32.0/9) / math.Sqrt(3)
	p := 1 - 2/math.Pi*(x/(1+x*x)+math.Atan(x))
	if !near(math.Log(r.Center), -4) || !near(r.P, p) || !near(r.SDLog, 8.0/3) || r.N != 2 {
		t.Errorf("ratio %+v, want exp(-4), P %v", r, p)
	}
	// a and b are in step to the last digit, which is no information about their noise.
	if r := b.Ratio(items[0], items[1]); r.SDLog != 0 || r.Warning == "" {
		t.Errorf("in step: %+v", r)
	}
}

// TestBlocksAlone tests that a target outside a fit gets its own result unchanged.
func TestBlocksAlone(t *testing.T) {
	noise := [][]float64{{0.1, -0.2, 0.1}, {0.3, 0.1, -0.2}, {-0.1, 0.2, 0}, {0.2, 0.3, 0.1}}
	whole := []Item{logItem("a", 1, noise[0]...), logItem("b", 2, noise[1]...),
		logItem("c", 3, noise[2]...)}
	check := func(item Item, part bool, others ...Item) {
		t.Helper()
		items := append(slices.Clone(others), item)
		b := NewBlocks(items, 0.95)
		got, alone := b.Level(item), Summarize(values(item), 0.95)
		if shares := fmt.Sprint(got) != fmt.Sprint(alone); shares != part {
			t.Errorf("%s among %d: %+v, alone %+v", item.Name, len(items), got, alone)
		}
		if len(others) == 0 {
			return
		}
		as, bs, _ := Align(others[0], item)
		ratio := b.Ratio(others[0], item)
		shares := fmt.Sprint(ratio) != fmt.Sprint(PairedRatio(as, bs, 0.95))
		if shares != part {
			t.Errorf("%s among %d: %+v", item.Name, len(items), ratio)
		}
	}
	nan := math.NaN()
	d := logItem("d", 4, noise[3]...)
	check(d, true, whole...)
	check(d, true, whole[:2]...)
	check(d, false, whole[:1]...)
	check(d, false)
	check(logItem("d", 4, 0.1), false, whole...)
	check(logItem("d", 4, nan, nan, nan), false, whole...)
	check(logItem("d", 4, 0.1, 0.1, 0.1), false, whole...)
	check(Item{"zero", map[int]float64{1: 1, 2: 0, 3: 2}}, false, whole...)
	// In separate blocks, or together with only one other target.
	check(logItem("d", 4, nan, nan, nan, 0.1, 0.2), false, whole...)
	check(logItem("d", 4, nan, nan, nan, 0.1, 0.2, 0.4), false, append(slices.Clone(whole[1:]),
		logItem("e", 1, 0.1, 0.2, 0.3, 0.1, 0.2, 0.3))...)
	// All in step to the last digit: no noise to share.
	check(logItem("d", 4, 0.5, 0.25, 0), false, logItem("a", 1, 0.5, 0.25, 0),
		logItem("b", 2, 0.5, 0.25, 0))
	// Six trials have an interval without assumptions; ratios still share.
	six := []float64{0.1, -0.1, 0.2, -0.3, 0.1, 0.05}
	items := []Item{logItem("a", 1, six...), logItem("b", 1, slices.Sorted(slices.Values(six))...),
		logItem("c", 1, six[2], six[5], six[1], six[0], six[3], six[4])}
	b := NewBlocks(items, 0.95)
	if s, r := b.Level(items[0]), b.Ratio(items[0], items[1]); s.Assumption != Nothing ||
		r.Assumption != Moderated {
		t.Errorf("six trials: level assumes %q, ratio %q", s.Assumption, r.Assumption)
	}
	checkPanics(t, `two items are named "d"`, func() { NewBlocks([]Item{d, d}, 0.95) })
}

// TestBlocksCancel tests that a slow block changes no ratio, that a unit or a reciprocal changes
// only signs, and that the order of targets does not matter.
func TestBlocksCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	items := simulated(r, 4, []float64{1, 2, 3, 4, 5}, gauss(0.05), gauss(0.02))
	delete(items[1].Values, 2) // with a gap
	change := func(by func(block int, x float64) float64) []Item {
		var out []Item
		for _, item := range slices.Backward(items) {
			changed := Item{item.Name, map[int]float64{}}
			for block, x := range item.Values {
				changed.Values[block] = by(block, x)
			}
			out = append(out, changed)
		}
		return out
	}
	want := NewBlocks(items, 0.95).Ratio(items[0], items[1])
	slowed := change(func(block int, x float64) float64 { return x / float64(block) })
	got := NewBlocks(slowed, 0.95).Ratio(slowed[4], slowed[3])
	if math.Abs(got.Lo/want.Lo-1) > 1e-9 || math.Abs(got.P/want.P-1) > 1e-6 {
		t.Errorf("slowed %+v, want %+v", got, want)
	}
	inverse := change(func(_ int, x float64) float64 { return 1e9 / x })
	got = NewBlocks(inverse, 0.95).Ratio(inverse[4], inverse[3])
	if math.Abs(got.Lo*want.Hi-1) > 1e-9 || math.Abs(got.P/want.P-1) > 1e-6 {
		t.Errorf("inverse %+v, want the reciprocal of %+v", got, want)
	}
}

// TestTrigammaInverse: trigamma(1) = pi^2/6, trigamma(1/2) = pi^2/2, and it inverts trigamma.
func TestTrigammaInverse(t *testing.T) {
	check := func(x, want float64) {
		t.Helper()
		if got := trigammaInverse(x); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("trigammaInverse(%v) = %v, want %v", x, got, want)
		}
	}
	check(math.Pi*math.Pi/6, 1)
	check(math.Pi*math.Pi/2, 0.5)
	for _, y := range []float64{0.001, 0.1, 3, 40, 1e4, 1e7} {
		check(mathext.Zeta(2, y), y)
	}
}

// TestModerateFinds: the variances of many targets are draws about 2 with 6 degrees of freedom.
// Then a target's variance s, with 4 degrees, becomes (6*2 + 4s)/10.
func TestModerateFinds(t *testing.T) {
	const seed, targets = 11, 4000
	r := rand.New(rand.NewPCG(seed, 0))
	chi := func(k int) (sum float64) {
		for range k {
			x := r.NormFloat64()
			sum += x * x
		}
		return sum
	}
	rows := make([]*row, targets)
	for i := range rows {
		true2 := 2 * 6 / chi(6)
		rows[i] = &row{ownSpread: spread{true2 * chi(4) / 4, 4}}
	}
	rows[0].ownSpread.variance, rows[1].ownSpread.variance = 0.5, 8
	moderate(rows)
	// 8 becomes 4.4, plus a quarter of the distance back to 8: 5.3.
	for i, want := range []float64{1.4, 4.4 + 0.25*3.6} {
		if got := rows[i].shared; math.Abs(got.variance/want-1) > 0.05 || got.free != 8 {
			t.Errorf("seed %d: %+v became %+v, want %v with 8", seed, rows[i].ownSpread, got, want)
		}
	}
}

// noisy returns seven targets whose noise is that of x, times by; blocks scatter by 3 %.
func noisy(r *rand.Rand, blocks int, x noise, by []float64) []Item {
	items := make([]Item, len(by))
	for i := range items {
		items[i] = Item{fmt.Sprint(i), make(map[int]float64, blocks)}
	}
	for block := range blocks {
		mood := 0.03 * r.NormFloat64()
		for i := range items {
			items[i].Values[block+1] = math.Exp(mood + by[i]*x(r))
		}
	}
	return items
}

// tailed is Student's t with three degrees of freedom, at 2 %.
func tailed(r *rand.Rand) float64 {
	squares := 0.0
	for range 3 {
		x := r.NormFloat64()
		squares += x * x
	}
	return 0.02 * r.NormFloat64() / math.Sqrt(squares/3)
}

// outliers are occasional slow values, slower by a tenth on average (docs/proof.md).
func outliers(r *rand.Rand) float64 {
	x := 0.012 * r.NormFloat64()
	if r.Float64() < 0.02 {
		x -= 0.1 * r.ExpFloat64()
	}
	return x
}

var (
	alike  = []float64{1, 1, 1, 1, 1, 1, 1}
	three5 = []float64{5, 5, 5, 1, 1, 1, 1}
	one5   = []float64{5, 1, 1, 1, 1, 1, 1}
)

// TestBlocksCover: intervals of levels and ratios of random targets cover the truth in 93 % of
// runs, for any mix. The tables of docs/proof.md, from bench, have all sizes and each target's
// share.
func TestBlocksCover(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 1000 // four standard errors at 0.945: 0.029
	check := func(blocks int, x noise, by []float64) {
		t.Helper()
		holds := func(lo, hi float64) bool { return lo <= 1 && 1 <= hi }
		seed := uint64(200 + blocks)
		checkShare(t, seed, experiments, 0.945, 1, func(r *rand.Rand) bool {
			items := noisy(r, blocks, x, by)
			s := NewBlocks(items, 0.95).Level(items[r.IntN(len(items))])
			return holds(s.Lo, s.Hi)
		})
		checkShare(t, seed, experiments, 0.94, 1, func(r *rand.Rand) bool {
			items := noisy(r, blocks, x, by)
			two := r.Perm(len(items))[:2]
			p := NewBlocks(items, 0.95).Ratio(items[two[0]], items[two[1]])
			if (p.P < 0.05) == holds(p.Lo, p.Hi) {
				t.Fatalf("P and interval disagree: %+v", p)
			}
			return holds(p.Lo, p.Hi)
		})
	}
	for _, blocks := range []int{2, 3, 5} {
		check(blocks, gauss(0.02), alike)
		check(blocks, gauss(0.02), three5)
		check(blocks, tailed, one5)
		check(blocks, outliers, alike)
	}
}

// TestUnpairedCover tests the same for ratios between two runs with different block effects, and
// that they are narrower than those of each target alone.
func TestUnpairedCover(t *testing.T) {
	const experiments = 1000
	check := func(blocks int, x noise, by []float64, narrower float64) {
		t.Helper()
		var width [2]float64
		checkShare(t, uint64(300+blocks), experiments, 0.94, 1, func(r *rand.Rand) bool {
			a, b := noisy(r, blocks, x, by), noisy(r, blocks, x, by)
			i := r.IntN(len(a))
			p := NewBlocks(a, 0.95).Unpaired(a[i], NewBlocks(b, 0.95), b[i])
			for k, q := range []Ratio{UnpairedRatio(values(a[i]), values(b[i]), 0.95), p} {
				width[k] += math.Log(q.Hi / q.Lo)
			}
			if holds := p.Lo <= 1 && 1 <= p.Hi; (p.P < 0.05) == holds {
				t.Fatalf("P and interval disagree: %+v", p)
			}
			return p.Lo <= 1 && 1 <= p.Hi
		})
		if share := width[1] / width[0]; share > narrower {
			t.Errorf("%d blocks: widths are %.3f of those alone, want %.3f at most", blocks, share,
				narrower)
		}
	}
	check(2, gauss(0.02), alike, 1) // like one target alone
	check(3, gauss(0.02), alike, 0.95)
	check(3, gauss(0.02), three5, 1)
	check(5, outliers, alike, 1)
}

// TestMoreBlocksKnowMore: a ratio with more degrees of freedom than its pairs needs fewer blocks,
// and these suffice: for a known variance of a pair, 2.8² (SD/effect)².
func TestMoreBlocksKnowMore(t *testing.T) {
	r := Ratio{N: 3, SDLog: 0.02, Free: 2}
	alone := r.Resolves(0.05, 0.05, 0.8)
	if want := blocksToResolve(0.02, 0.05, 0.05, 0.8); alone != want {
		t.Errorf("alone %d blocks, want %d", alone, want)
	}
	r.Free = 6
	shared := r.Resolves(0.05, 0.05, 0.8)
	r.Free = 1e6
	known := r.Resolves(0.05, 0.05, 0.8)
	if !(known < shared && shared < alone) || known != 2 { // 7.85 (0.02/0.0488)² = 1.3
		t.Errorf("%d blocks with all known, %d with shared noise, %d alone", known, shared, alone)
	}
	if r.Free = 6; !(r.Detects(0.05, 0.8) < detectable(0.02, 3, 0.05, 0.8)) {
		t.Errorf("detects %v", r.Detects(0.05, 0.8))
	}
	// With two more blocks it detects what five blocks of that noise detect.
	five := Ratio{N: 5, SDLog: r.SDLog, Free: r.Free / 2 * 4}
	if more := r.DetectsWith(2, 0.05, 0.8); more != five.Detects(0.05, 0.8) {
		t.Errorf("with two more blocks detects %v, five blocks %v", more, five.Detects(0.05, 0.8))
	}
}

// TestBlocksNarrow: with three blocks on the machine of docs/proof.md, intervals are two thirds as
// wide as those of each target alone, and the widest interval of a run is half as wide.
func TestBlocksNarrow(t *testing.T) {
	const seed, experiments = 5, 600
	r := rand.New(rand.NewPCG(seed, 0))
	var width, widest [2]float64
	for range experiments {
		items := noisy(r, 3, outliers, alike)
		b := NewBlocks(items, 0.95)
		var most [2]float64
		for _, item := range items[1:] {
			as, bs, _ := Align(items[0], item)
			for i, p := range []Ratio{PairedRatio(as, bs, 0.95), b.Ratio(items[0], item)} {
				w := math.Log(p.Hi / p.Lo)
				width[i] += w
				most[i] = max(most[i], w)
			}
		}
		widest[0], widest[1] = widest[0]+most[0], widest[1]+most[1]
	}
	mean, most := width[1]/width[0], widest[1]/widest[0]
	if mean > 0.70 || mean < 0.6 || most > 0.52 || most < 0.4 {
		t.Errorf("seed %d: widths are %.3f of those alone, the widest %.3f", seed, mean, most)
	}
}

// TestBlocksHoldTiers: equal targets are in one tier. If some are five times as noisy, the error
// with three blocks is 6 % instead of 5 %.
func TestBlocksHoldTiers(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 600
	check := func(blocks int, x noise, by []float64, atMost float64) {
		t.Helper()
		checkShare(t, uint64(blocks), experiments, 0, atMost, func(r *rand.Rand) bool {
			return len(Tiers(noisy(r, blocks, x, by), 0.05)) > 1
		})
	}
	check(2, gauss(0.02), three5, 0.05)
	check(3, gauss(0.02), alike, 0.05)
	check(3, gauss(0.02), three5, 0.06)
	check(3, tailed, one5, 0.05)
	check(5, gauss(0.02), three5, 0.05)
}
