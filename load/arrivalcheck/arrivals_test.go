package arrivalcheck

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
)

const (
	us = int64(time.Microsecond)
	ms = int64(time.Millisecond)
)

// onePercent is the value that A² exceeds by chance in one of a hundred cases, and limit the one
// from which package verdict reports a finding.
const (
	onePercent = 1.957
	limit      = 2 * onePercent
)

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// poisson returns n moments with exponential gaps of a mean.
func poisson(r *rand.Rand, n int, mean int64) []int64 {
	at := make([]int64, n)
	t := 0.0
	for k := range at {
		t += r.ExpFloat64() * float64(mean)
		at[k] = int64(t)
	}
	return at
}

// even returns n moments with equal gaps.
func even(n int, gap int64) []int64 {
	at := make([]int64, n)
	for k := range at {
		at[k] = int64(k) * gap
	}
	return at
}

// sent simulates requests leaving a generator: each lag later than due, one at a time.
func sent(due []int64, lag func(due int64) int64) Times {
	left := make([]int64, len(due))
	last := int64(-1 << 60)
	for k, d := range due {
		last = max(d+lag(d), last+2*us) // a send takes two microseconds
		left[k] = last
	}
	return Times{Due: due, Left: left}
}

// A² by its definition, n·∫(Fn − F)²/(F(1 − F))dF, summed over a million steps of F.
func TestAndersonDarlingIsItsIntegral(t *testing.T) {
	for seed, n := range map[uint64]int{1: 3, 2: 20, 3: 200} {
		gaps := make([]float64, n)
		mean := 0.0
		r := seeded(seed)
		for i := range gaps {
			gaps[i] = math.Pow(r.Float64(), 3) // not exponential, so the sum is not trivial
			mean += gaps[i] / float64(n)
		}
		const steps = 1e6
		sorted := slices.Sorted(slices.Values(gaps))
		want, below := 0.0, 0
		for k := range int(steps) {
			f := (float64(k) + 0.5) / steps
			for below < n && -math.Expm1(-sorted[below]/mean) <= f {
				below++
			}
			d := float64(below)/float64(n) - f
			want += d * d / (f * (1 - f)) / steps * float64(n)
		}
		want *= 1 + 0.6/float64(n)
		if got := andersonDarling(gaps); math.Abs(got-want) > 1e-3*want {
			t.Errorf("n = %d, seed %d: A² is %v, its integral %v", n, seed, got, want)
		}
	}
}

// The one-percent point is exceeded in one of a hundred Poisson processes, with few gaps and with
// many: 200 of 20,000 with a standard deviation of 14, 40 of 4,000 with one of 6.
func TestFalseAlarms(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	check := func(requests, times, least, most int) {
		t.Helper()
		alarms := 0
		for seed := range uint64(times) {
			at := poisson(seeded(seed), requests, ms)
			if Arrivals(Times{Due: at, Left: at}, true, nil).AndersonDarling > onePercent {
				alarms++
			}
		}
		if alarms < least || alarms > most {
			t.Errorf("%d requests: %d of %d Poisson processes exceed %v, want %d to %d "+
				"(seeds 0-%d)", requests, alarms, times, onePercent, least, most, times-1)
		}
	}
	check(120, 20000, 150, 250) // 113 gaps on average are longer than 50 µs: exp(-0.05) of 119
	check(1200, 4000, 22, 58)
}

// Small delays of a good generator cause no finding, for any number of arrivals.
func TestGoodGenerators(t *testing.T) {
	check := func(what string, mean int64, lag func(*rand.Rand) int64) {
		t.Helper()
		for seed := range uint64(5) {
			r := seeded(seed)
			due := poisson(r, 1<<16, mean)
			p := Arrivals(sent(due, func(int64) int64 { return lag(r) }), true, nil)
			if p.AndersonDarling == 0 || p.AndersonDarling > onePercent {
				t.Errorf("%s, seed %d: A² is %v", what, seed, p.AndersonDarling)
			}
			// By the shortest sample, 65,536 × 20 µs, there are 13 bins of 100 ms, which are too
			// few.
			for _, d := range []float64{p.Dispersion1ms, p.Dispersion10ms, p.Dispersion100ms} {
				if d != 0 && math.Abs(d-1) > 0.5 {
					t.Errorf("%s, seed %d: dispersion is %v", what, seed, d)
				}
			}
		}
	}
	exact := func(*rand.Rand) int64 { return 0 }
	pacing := func(r *rand.Rand) int64 { return 3*us + int64(r.ExpFloat64()*float64(3*us)) }
	check("exact, 1,000/s", ms, exact)
	check("exact, 20,000/s", 50*us, exact)
	check("exact, 100,000/s", 10*us, exact) // two of ten microseconds go into the send before
	check("3 µs and more late, 1,000/s", ms, pacing)
	check("3 µs and more late, 20,000/s", 50*us, pacing)
	check("3 µs and more late, 50,000/s", 20*us, pacing)
	check("60 µs late each, 20,000/s", 50*us, func(*rand.Rand) int64 { return 60 * us })
	check("one of 100,000 is 3 ms late, 20,000/s", 50*us, func(r *rand.Rand) int64 {
		if r.IntN(100000) == 0 {
			return 3 * ms
		}
		return 0
	})
}

// Delays of bad generators do.
func TestBadGenerators(t *testing.T) {
	check := func(what string, left []int64) {
		t.Helper()
		if p := Arrivals(Times{Due: left, Left: left}, true, nil); p.AndersonDarling < limit {
			t.Errorf("%s: A² is %v, want more than %v", what, p.AndersonDarling, limit)
		}
	}
	due := poisson(seeded(1), 1<<16, 50*us)
	wheel := func(tick int64) []int64 {
		return sent(due, func(at int64) int64 { return tick - at%tick }).Left
	}
	check("a wheel of 1 ms", wheel(ms))
	check("a wheel of 10 ms", wheel(10*ms))
	check("equal gaps", even(1<<16, 51*us))
	// Sleeping takes 60 µs too long, and arrivals due meanwhile go out in one bunch.
	slow := make([]int64, len(due))
	for k, d := range due {
		slow[k] = d + 60*us
		if k > 0 && d < slow[k-1] {
			slow[k] = slow[k-1] + 2*us
		}
	}
	check("wakes late", slow)
	pairs := slices.Repeat(poisson(seeded(2), 1<<15, 100*us), 2)
	slices.Sort(pairs)
	for k := 1; k < len(pairs); k += 2 {
		pairs[k] += 60 * us
	}
	check("pairs", slices.Sorted(slices.Values(pairs)))
	quiet := poisson(seeded(3), 2000, ms)
	for k := range quiet {
		quiet[k] -= quiet[k] % ms
	}
	check("whole milliseconds, 1,000/s", quiet)
}

// A preemption of a fifth of a second is not a property of the process.
func TestOneHiccup(t *testing.T) {
	hiccup := func(at int64) int64 { return max(700*ms-at, 0) * min(max(at-500*ms, 0), 1) }
	got := Arrivals(sent(poisson(seeded(1), 1<<16, 50*us), hiccup), true, nil)
	if got.AndersonDarling > onePercent {
		t.Errorf("A² is %v after one hiccup", got.AndersonDarling)
	}
	// 200 of 65,535 gaps are off, which is 0.3 %.
	got = Arrivals(sent(even(1<<16, ms), hiccup), false, nil)
	if got.GapDeviationNs != 0 {
		t.Errorf("gaps are off by %d ns after one hiccup", got.GapDeviationNs)
	}
}

// A rate that grows from 0 to 20,000/s in 6.6 s: its integral is t²/2·(20,000/6.6).
func TestRescaledRamp(t *testing.T) {
	const slope = 20000 / 6.6e9 / 1e9 // per ns²
	r := seeded(1)
	due := make([]int64, 1<<16)
	u := 0.0
	for k := range due {
		u += r.ExpFloat64()
		due[k] = int64(math.Sqrt(2 * u / slope))
	}
	times := Times{Due: due, Left: due}
	expected := func(ns int64) float64 { return slope / 2 * float64(ns) * float64(ns) }
	p := Arrivals(times, true, expected)
	if p.AndersonDarling > onePercent {
		t.Errorf("A² of the rescaled gaps is %v", p.AndersonDarling)
	}
	for _, d := range []float64{p.Dispersion1ms, p.Dispersion10ms, p.Dispersion100ms} {
		if math.Abs(d-1) > 0.5 { // 66 bins of 100 ms have a standard deviation of 0.17
			t.Errorf("dispersion of the rescaled gaps is %v", d)
		}
	}
	if p := Arrivals(times, true, nil); p.Dispersion100ms < 10 {
		t.Errorf("dispersion as of a steady rate is %v, want far more than 1", p.Dispersion100ms)
	}
}

func TestGapDeviation(t *testing.T) {
	check := func(what string, times Times, want int64) {
		t.Helper()
		if got := Arrivals(times, false, nil).GapDeviationNs; got != want {
			t.Errorf("%s: gaps are off by %d ns, want %d", what, got, want)
		}
	}
	due := even(1001, ms) // 1,000 gaps: the 990th in order is the 99th percentile
	late := func(n int) Times {
		left := slices.Clone(due)
		for k := range n {
			left[10*k+5] += 30 * us // which changes two gaps
		}
		return Times{Due: due, Left: left}
	}
	check("on time", Times{Due: due, Left: due}, 0)
	check("5 late: 10 gaps are 1 %", late(5), 0)
	check("6 late", late(6), 30*us)
	check("all late alike", sent(due, func(int64) int64 { return 7 * ms }), 0)
	shaped := even(1001, ms)
	for k := range shaped {
		shaped[k] *= int64(k) // a rate that falls
	}
	check("not even, as was asked for", Times{Due: shaped, Left: shaped}, 0)
}

func TestDispersion(t *testing.T) {
	check := func(what string, left []int64, d1, d10, d100, within float64) {
		t.Helper()
		slices.Sort(left)
		p := Arrivals(Times{Due: left, Left: left}, true, nil)
		for i, got := range []float64{p.Dispersion1ms, p.Dispersion10ms, p.Dispersion100ms} {
			if want := []float64{d1, d10, d100}[i]; math.Abs(got-want) > within*want+0.001 {
				t.Errorf("%s: dispersion in bins of 10^%d ms is %v, want %v", what, i, got, want)
			}
		}
	}
	check("equal gaps of 100 µs", even(1<<15, 100*us), 0, 0, 0, 0)
	// Every second bin of 1 ms has 2 and the others none: (1² + 1²)/2 by 1; 20 bins make 20/19.
	check("two at once each 2 ms", slices.Concat(even(1<<13, 2*ms), even(1<<13, 2*ms)),
		1, 0, 0, 0.001)
	// 6,550 bins of 10 ms determine it within 2·√(2/6,550) = 3.5 %, 655 of 100 ms within 11 %.
	check("Poisson", poisson(seeded(1), 1<<16, ms), 1, 1, 1, 0.12)
	check("four at once, Poisson", slices.Repeat(poisson(seeded(1), 1<<14, 4*ms), 4), 4, 4, 4, 0.12)
	// 1.9 s are 19 bins of 100 ms, which are too few.
	check("short", poisson(seeded(2), 1900, ms)[:1850], 1, 1, 0, 0.25)
}

func TestTooFewSayNothing(t *testing.T) {
	for _, n := range []int{0, 1, 100} {
		at := even(n, 100*ms)
		p := Arrivals(Times{Due: at, Left: at}, true, nil)
		if p.Samples != int64(n) || p.AndersonDarling != 0 || p.Dispersion1ms != 0 {
			t.Errorf("%d requests: %+v", n, p)
		}
	}
	// All gaps are shorter than the resolution.
	at := even(1<<16, 40*us)
	if p := Arrivals(Times{Due: at, Left: at}, true, nil); p.AndersonDarling != 0 {
		t.Errorf("A² of gaps of 40 µs is %v", p.AndersonDarling)
	}
	at = even(99*600, 40*us)
	for k := range at {
		at[k] += int64(k/600) * ms // 98 gaps are longer
	}
	if p := Arrivals(Times{Due: at, Left: at}, true, nil); p.AndersonDarling != 0 {
		t.Errorf("A² of 98 gaps is %v", p.AndersonDarling)
	}
}
