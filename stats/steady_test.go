package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

var everyEighth = SteadyRule{Tail: 12, Same: 0.03} // of a second: the rule of trials

// stairs repeats values: level, count, level, count ...
func stairs(pairs ...float64) []float64 {
	var xs []float64
	for i := 0; i < len(pairs); i += 2 {
		xs = append(xs, slices.Repeat(pairs[i:i+1], int(pairs[i+1]))...)
	}
	return xs
}

func TestSteadyState(t *testing.T) {
	check := func(name string, xs []float64, kind string, at, peak int, lost float64) {
		t.Helper()
		before := slices.Clone(xs)
		s := SteadyState(xs, everyEighth)
		if s.Kind != kind || s.At != at || s.PeakAt != peak || !near(s.Lost, lost) {
			t.Errorf("%s: %q at %d, peak at %d, lost %v; want %q at %d, peak at %d, lost %v\n%v",
				name, s.Kind, s.At, s.PeakAt, s.Lost, kind, at, peak, lost, s.Levels)
		}
		if !slices.EqualFunc(xs, before, near) {
			t.Errorf("%s: the series was changed", name)
		}
		if again := SteadyState(xs, everyEighth); !reflect.DeepEqual(again, s) {
			t.Errorf("%s: once %v, once %v", name, s, again)
		}
	}
	never := func(name string, xs []float64) { t.Helper(); check(name, xs, Unsteady, -1, -1, 0) }

	check("constant", stairs(1000, 40), Flat, 0, 0, 0)
	check("just long enough", stairs(1000, 12), Flat, 0, 0, 0)
	never("too short", stairs(1000, 11))
	// 40 values at 60 %: 40 x 0.4 = 16 intervals of work.
	check("step", stairs(600, 40, 1000, 60), Warmed, 40, 40, 16)
	// Only the first interval counts: no median may hide it.
	check("slow start", stairs(250, 1, 1000, 60), Warmed, 1, 1, 0.75)
	check("two stages", stairs(250, 20, 500, 40, 1000, 80), Warmed, 60, 60, 20*0.75+40*0.5)
	check("slower", stairs(1100, 60, 1000, 60), Slowed, 60, 0, -6)
	check("slow, fast, middling", stairs(500, 40, 1200, 40, 1000, 60), Slowed, 80, 40, 20-8)
	// 2 % is within Same, 4 % is not: 1000/980 - 1 = 2.04 %.
	check("small step", stairs(980, 60, 1000, 60), Flat, 0, 0, 0)
	check("greater step", stairs(960, 60, 1000, 60), Warmed, 60, 60, 2.4)
	// Two steps of 2 % are 4 %: no chain connects the first level with the last.
	check("chain", stairs(960, 60, 980, 60, 1000, 60), Warmed, 60, 60, 60*(1-960/990.0))
	never("tail too short", stairs(600, 60, 1000, 11))
	check("tail long enough", stairs(600, 60, 1000, 12), Warmed, 60, 60, 24)

	// One to three values are no level; five are, and interrupt, like one second of eight.
	check("outlier", stairs(1000, 50, 200, 1, 1000, 50), Flat, 0, 0, 0)
	check("pause", stairs(1000, 50, 200, 8, 1000, 50), Flat, 0, 0, 0)
	check("long pause", stairs(1000, 50, 200, 12, 1000, 50), Warmed, 62, 0, 9.6)
	// A level as fast, but for less than Tail, was no steady state that could be interrupted.
	check("flash", stairs(500, 50, 1000, 8, 500, 8, 1000, 50), Warmed, 66, 50, 29)
	check("outlier at the end", stairs(1000, 99, 200, 1), Flat, 0, 0, 0)
	never("stopped", stairs(1000, 80, 0, 20))
	never("nothing", stairs(0, 100))

	never("ramp", ramp(100, 0.01))
	never("ramp down", ramp(100, -0.002))
	// 0.02 % a value are 4 % over 200.
	never("slow ramp", ramp(200, 0.0002))
	// 0.01 % are 2 % over 200: within Same.
	check("slower ramp", ramp(200, 0.0001), Flat, 0, 0, 0)

	for name, bad := range map[string]float64{"NaN": math.NaN(), "Inf": math.Inf(1), "minus": -1} {
		xs := stairs(1000, 40)
		xs[7] = bad
		never(name, xs)
		if s := SteadyState(xs, everyEighth); s.Levels != nil {
			t.Errorf("%s: levels %v", name, s.Levels)
		}
	}
	never("empty", nil)
}

// ramp rises from 1000 by a share of it per value.
func ramp(n int, by float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = 1000 * (1 + by*float64(i))
	}
	return xs
}

// TestLevels: every value is in one level, in order, and levels describe their values.
func TestLevels(t *testing.T) {
	// Neighbours' differences are 2, 0, -2, 0 ...: MAD 1 about the median 0; SD of each level 1.0.
	xs := make([]float64, 120)
	for i := range xs {
		xs[i] = 1000 + float64(i/2%2*2)
		if i < 40 {
			xs[i] -= 400
		}
	}
	s := SteadyState(xs, everyEighth)
	if len(s.Levels) != 2 {
		t.Fatalf("levels %v, want two", s.Levels)
	}
	check := func(l Level, from, to int, mean float64) {
		t.Helper()
		// Half of the values 1 above and half 1 below the mean: SD sqrt(n/(n-1)).
		sd := math.Sqrt(float64(to-from) / float64(to-from-1))
		if l.From != from || l.To != to || math.Abs(l.Mean-mean) > 1e-9 ||
			math.Abs(l.SD-sd) > 1e-9 {
			t.Errorf("level %+v, want %d to %d, mean %v, SD %v", l, from, to, mean, sd)
		}
	}
	check(s.Levels[0], 0, 40, 601)
	check(s.Levels[1], 40, 120, 1001)
	if s.Kind != Warmed || s.At != 40 {
		t.Errorf("%q at %d", s.Kind, s.At)
	}
}

// TestNoiseOf: the estimate ignores levels and outliers, and includes autocorrelation.
func TestNoiseOf(t *testing.T) {
	const seed = 5
	check := func(name string, ar, wantSD, wantCorrelated, within float64) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 0))
		xs := autoregressive(r, 8000, 0.02, ar)
		for i := range xs {
			xs[i] *= 1000
			if i > 3000 {
				xs[i] += 500
			}
			if i%50 == 0 {
				xs[i] -= 700
			}
		}
		sd, correlated := noiseOf(xs, 0)
		if math.Abs(sd/wantSD-1) > within || math.Abs(correlated/wantCorrelated-1) > within {
			t.Errorf("seed %d, %s: SD %.2f, variance x %.2f; want %v, %v", seed, name, sd,
				correlated, wantSD, wantCorrelated)
		}
	}
	check("white", 0, 20, 1, 0.15)
	check("half", 0.5, 20, 3, 0.15) // (1 + 0.5) / (1 - 0.5)
	// 0.7 at most: the SD of AR(0.9) is 20, of its differences 20 sqrt(2 x 0.1).
	check("more than allowed", 0.9, 20*math.Sqrt(0.1/0.3), 1.7/0.3, 0.15)
	if sd, correlated := noiseOf(stairs(7, 30), 0.5); sd != 0.5 || correlated != 1 {
		t.Errorf("constant: SD %v, x %v; want the floor and 1", sd, correlated)
	}
	// Counts that mostly repeat: 2 differences of 3 in 20: sqrt(2 x 9 / (2 x 19)).
	xs := stairs(1, 10, 4, 1, 1, 9)
	if sd, _ := noiseOf(xs, 0.1); !near(sd, math.Sqrt(9.0/19)) {
		t.Errorf("small counts: SD %v", sd)
	}
}

// autoregressive is AR(1) noise with a level of 1: each value keeps a share of the one before.
func autoregressive(r *rand.Rand, n int, sd, ar float64) []float64 {
	xs := make([]float64, n)
	e := sd * r.NormFloat64()
	for i := range xs {
		xs[i] = 1 + e
		e = ar*e + math.Sqrt(1-ar*ar)*sd*r.NormFloat64()
	}
	return xs
}

// TestSteadyStateFinds simulates series with a known truth, with one outlier in fifty values.
func TestSteadyStateFinds(t *testing.T) {
	const experiments = 200
	check := func(kind string, n int, sd, ar float64, early, late int, least float64,
		at int, level func(i int) float64) {
		t.Helper()
		checkShare(t, 11, experiments, least, 1, func(r *rand.Rand) bool {
			xs := autoregressive(r, n, sd, ar)
			for i := range xs {
				xs[i] *= 1000 * level(i)
				if r.IntN(50) == 0 {
					xs[i] *= r.Float64()
				}
			}
			s := SteadyState(xs, everyEighth)
			return s.Kind == kind && s.At >= at-early && s.At <= at+late
		})
	}
	step := func(at int, by float64) func(int) float64 {
		return func(i int) float64 {
			if i < at {
				return by
			}
			return 1
		}
	}
	flat := step(0, 1)
	warm := func(tau float64) func(int) float64 {
		return func(i int) float64 { return 1 - 0.6*math.Exp(-float64(i)/tau) }
	}
	check(Flat, 240, 0.02, 0, 0, 0, 0.95, 0, flat)
	check(Flat, 240, 0.02, 0.5, 0, 0, 0.93, 0, flat)
	check(Flat, 60, 0.06, 0, 0, 0, 0.93, 0, flat)
	check(Warmed, 240, 0.02, 0, 1, 2, 0.97, 60, step(60, 0.8))
	check(Warmed, 240, 0.02, 0.5, 3, 8, 0.93, 60, step(60, 0.8))
	check(Slowed, 240, 0.02, 0, 3, 5, 0.93, 60, step(60, 1.1))
	// 0.6 exp(-t/20) = 0.03 at 60.
	check(Warmed, 240, 0.02, 0, 20, 30, 0.9, 60, warm(20))
	// A drift of 0.05 % a value, 12 % in all, is never steady.
	check(Unsteady, 240, 0.02, 0, 0, 0, 0.95, -1,
		func(i int) float64 { return 1 + 0.0005*float64(i) })
}

func BenchmarkSteadyState(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 0))
	xs := autoregressive(r, 1000, 0.02, 0) // flat, the slowest: nothing can be pruned
	for _, n := range []int{250, 1000} {
		b.Run(map[int]string{250: "250", 1000: "1000"}[n], func(b *testing.B) {
			for b.Loop() {
				SteadyState(xs[:n], everyEighth)
			}
		})
	}
}
