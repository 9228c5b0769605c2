package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// startsOf returns starts with these log ratios, each with this SE.
func startsOf(se float64, ratios ...float64) []StartRatio {
	out := make([]StartRatio, len(ratios))
	for i, d := range ratios {
		out[i] = StartRatio{Rounds: 100, LogRatio: d, SE: se, Typical: d}
	}
	return out
}

func TestCompareStartsIsPairedRatio(t *testing.T) {
	ds := []float64{0.01, 0.03, -0.01, 0.02, 0.01}
	var as, bs []float64
	for i, d := range ds {
		as, bs = append(as, float64(i+1)), append(bs, float64(i+1)*math.Exp(d))
	}
	want := PairedRatio(as, bs, 0.95)
	got := CompareStarts(startsOf(0.01, ds...), nil, 0.95)
	if !near(got.Lo, want.Lo) || !near(got.Hi, want.Hi) || !near(got.P, want.P) ||
		got.Source != ErrorStarts || got.Warning != "" {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCompareStartsComponents(t *testing.T) {
	// Variance of 0, 2, 4, 6 % is 20/3 = 6.67 %²; rounds explain 2 %², so 4.67 is left: 2.16 %.
	// Chi-squared quantiles of 3 at 0.025 and 0.975: 0.2158 and 9.348: 20/9.348 - 2 = 0.139 and
	// 20/0.2158 - 2 = 90.68, whose roots are 0.37 and 9.52.
	r := CompareStarts(startsOf(math.Sqrt2/100, 0, 0.02, 0.04, 0.06), nil, 0.95)
	for _, row := range [][2]float64{{r.Within, 0.01414}, {r.Between, 0.0216},
		{r.BetweenLo, 0.0037}, {r.BetweenHi, 0.0952}} {
		if math.Abs(row[0]-row[1]) > 0.0001 {
			t.Errorf("%.5f, want %.4f: %+v", row[0], row[1], r)
		}
	}
	if r := CompareStarts(startsOf(math.NaN(), 0, 0.02, 0.04), nil, 0.95); !math.IsNaN(r.Within) ||
		!math.IsNaN(r.Between) || !r.HasInterval() || r.Warning != "" {
		t.Errorf("%+v", r)
	}
}

func TestErrorTerm(t *testing.T) {
	pair := startsOf(0.01, 0.010, 0.012, 0.008, 0.010) // variance 2.67e-6
	check := func(pair, control []StartRatio, source string, sd float64) {
		t.Helper()
		r := CompareStarts(pair, control, 0.95)
		if r.Source != source || math.Abs(r.SDLog/sd-1) > 0.01 {
			t.Errorf("%s %.5f, want %s %.5f", r.Source, r.SDLog, source, sd)
		}
		// t(0.975, 3) = 3.182, and four starts: half of it.
		if half := (math.Log(r.Hi) - math.Log(r.Lo)) / 2; math.Abs(half/(1.591*sd)-1) > 0.01 {
			t.Errorf("half an interval is %.5f, want %.5f", half, 1.591*sd)
		}
	}
	check(pair, nil, ErrorStarts, 0.00163)
	// F(3, 3) at 0.995 is 47.5: 6.89 times the SD.
	check(pair, startsOf(0.01, 0, 0.013, -0.013, 0), ErrorStarts, 0.00163) // SD 0.0106
	check(pair, startsOf(0.01, 0, 0.015, -0.015, 0), ErrorControl, 0.01225)
}

func TestStartWithoutRatio(t *testing.T) {
	starts := startsOf(0.01, 0.01, math.NaN(), 0.01, 0.03)
	starts[1].Warning = "no request"
	r := CompareStarts(starts, nil, 0.95)
	if r.HasInterval() || r.Warning != "start 2 has no ratio: no request" || r.Source != "" {
		t.Errorf("%+v", r)
	}
}

// TestErrorTermCovers tests that the rule for the error term covers 95 %, and that three refused
// rules cover the shares that CompareStarts quotes. Targets a, a again and b have these SDs in a
// start; with 50 rounds the start's SE is known to 10 %.
func TestErrorTermCovers(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 4000
	type rule func(pair, control []StartRatio) Ratio
	ruled := func(pair, control []StartRatio) Ratio {
		return CompareStarts(pair, control, 0.95).Ratio
	}
	larger := func(pair, control []StartRatio) Ratio {
		r, c := ratioOfStarts(pair, 0.95), ratioOfStarts(control, 0.95)
		v := max(r.SDLog, c.SDLog)
		return r.about(math.Log(r.Center), spread{v * v / float64(r.N), float64(r.N - 1)})
	}
	pooled := func(pair, control []StartRatio) Ratio {
		r, c := ratioOfStarts(pair, 0.95), ratioOfStarts(control, 0.95)
		free := float64(r.N - 1)
		x, y := spread{r.SDLog * r.SDLog / 2, free}, spread{c.SDLog * c.SDLog / 2, free}
		return r.about(math.Log(r.Center), spread{(x.variance + y.variance) / float64(r.N),
			freedom(x, y)})
	}
	shared := func(pair, control []StartRatio) Ratio {
		items := []Item{{"a", map[int]float64{}}, {"again", map[int]float64{}},
			{"b", map[int]float64{}}}
		for i := range pair {
			speed := float64(i) / 100 // of the start, which cancels
			items[0].Values[i] = math.Exp(speed)
			items[1].Values[i] = math.Exp(speed + control[i].LogRatio)
			items[2].Values[i] = math.Exp(speed + pair[i].LogRatio)
		}
		return NewBlocks(items, 0.95).Ratio(items[0], items[2])
	}
	check := func(n int, a, b float64, by rule, atLeast, atMost float64) {
		t.Helper()
		checkShare(t, uint64(n), experiments, atLeast, atMost, func(r *rand.Rand) bool {
			pair, control := make([]StartRatio, n), make([]StartRatio, n)
			for i := range pair {
				first := a * r.NormFloat64()
				se := math.Hypot(a, b) * (1 + 0.1*r.NormFloat64())
				pair[i] = StartRatio{LogRatio: b*r.NormFloat64() - first, SE: se}
				control[i] = StartRatio{LogRatio: a*r.NormFloat64() - first, SE: se}
			}
			got := by(pair, control)
			return got.Lo <= 1 && 1 <= got.Hi
		})
	}
	for _, n := range []int{4, 5, 8, 20} {
		check(n, 0.01, 0.01, ruled, 0.95, 0.952)
		check(n, 0.01, 0.04, ruled, 0.95, 0.95)  // b is noisier
		check(n, 0.01, 0.003, ruled, 0.95, 0.96) // b is quieter than the control
	}
	// The oracle distinguishes the refused rules from 95 %.
	check(4, 0.01, 0.01, larger, 0.98, 0.99)
	check(20, 0.01, 0.003, larger, 0.985, 0.995)
	check(4, 0.01, 0.04, pooled, 0.87, 0.91)
	check(20, 0.01, 0.04, pooled, 0.84, 0.88)
	check(4, 0.01, 0.04, shared, 0.90, 0.93)
	check(8, 0.01, 0.003, shared, 0.97, 0.99)
}

func TestFindRareEvents(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	start := func(events int, cost float64) StartRatio {
		pairs := make([][2]int64, 100)
		for i := range pairs {
			for side := range pairs[i] {
				pairs[i][side] = int64(1e5 * (1 + 0.02*r.NormFloat64()))
			}
			if i < events {
				pairs[i][1] = int64(float64(pairs[i][1]) * (1 - cost))
			}
		}
		return NewRounds(rowsOf(pairs...)).Compare([]int{0}, []int{1}, Throughput)
	}
	check := func(events int, cost, difference float64, found, few bool) {
		t.Helper()
		var starts []StartRatio
		for range 6 {
			starts = append(starts, start(events, cost))
		}
		got := FindRareEvents(starts, 0.95)
		if math.Abs(got.Difference-difference) > 0.004 || got.Significant != found ||
			got.Few != few || got.EventsA != 0 || got.EventsB != float64(events) {
			t.Errorf("%d events: %+v", events, got)
		}
	}
	check(0, 0, 0, false, false)
	check(10, 0.4, math.Log(0.96), true, false) // 4 % of all work
	check(3, 0.9, math.Log(0.973), true, true)
	var even []StartRatio // totals differ from typical rounds, but no round stands out
	for i := range 6 {
		even = append(even, StartRatio{LogRatio: -0.05 + 0.001*float64(i)})
	}
	if got := FindRareEvents(even, 0.95); got.Significant || got.Few || got.P > 0.001 {
		t.Errorf("without events: %+v", got)
	}
	if got := FindRareEvents(nil, 0.95); got.Significant || got.P != 1 || !math.IsNaN(got.Lo) {
		t.Errorf("of no starts: %+v", got)
	}
}

// TestControlOfMean checks intervals of the ratio of b to the mean of both instances of a: they
// cover the truth, and are narrower by the root of 3/4 if all scatter alike.
func TestControlOfMean(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 4000
	for _, n := range []int{4, 5, 8, 20} {
		for _, b := range []float64{0.003, 0.01, 0.04} { // where a scatters by 0.01
			var one, both float64
			atMost := 0.955
			if b < 0.01 { // the control's scatter is larger, and replaces the pair's
				atMost = 0.975
			}
			checkShare(t, uint64(n), experiments, 0.95, atMost, func(r *rand.Rand) bool {
				alone, pair, control := make([]StartRatio, n), make([]StartRatio, n),
					make([]StartRatio, n)
				for i := range pair {
					first, again := 0.01*r.NormFloat64(), 0.01*r.NormFloat64()
					x := b * r.NormFloat64()
					alone[i].LogRatio = x - first
					pair[i].LogRatio = x - (first+again)/2
					control[i].LogRatio = again - first
				}
				got := CompareStarts(pair, ControlOfMean(control), 0.95)
				one += ratioOfStarts(alone, 0.95).SDLog
				both += ratioOfStarts(pair, 0.95).SDLog
				return got.Lo <= 1 && 1 <= got.Hi
			})
			want := math.Sqrt((b*b + 0.5e-4) / (b*b + 1e-4))
			if got := both / one; math.Abs(got/want-1) > 0.01 {
				t.Errorf("%d starts, b scatters by %v: intervals are %.3f times as wide, want %.3f",
					n, b, got, want)
			}
		}
	}
}
