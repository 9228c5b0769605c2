package pace

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// shapes are profiles of every kind, as text.
var shapes = []string{
	"1000 for 1s, 2000",
	"ramp 100..2000 in 3s",
	"ramp 2000..0 in 3s",
	"ramp 0..2000 in 1s, ramp 2000..0 in 1s, 0 for 1s, 500",
	"steps 1000..5000 by 1000 every 500ms",
	"spike 1000..10000 at 1s for 200ms",
	"sine 1000..5000 every 2s",
	"sine 3000..0 every 700ms",
	"repeat 0 for 300ms, 3333.3 for 200ms, ramp 10..777.7 in 1s",
}

func parsed(t testing.TB, text string) Profile {
	t.Helper()
	p, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shape(t testing.TB, name, text string, seed uint64) Process {
	t.Helper()
	p, err := Schedule{Arrivals: name, Rate: parsed(t, text)}.Process(seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Every arrival of the constant process is at the calculated moment, to the nanosecond.
func TestShapesByArithmetic(t *testing.T) {
	check := func(text string, total int, at func(k float64) (seconds float64)) {
		t.Helper()
		p := shape(t, Constant, text, 0)
		for k := range total {
			got, want := p.Next(), at(float64(k))*1e9
			if math.Abs(float64(got)-want) > 0.5001 {
				t.Fatalf("%s: arrival %d is at %d, want %.3f", text, k, got, want)
			}
		}
	}
	// The rate is 10t, its integral 5t²: k arrivals after √(k/5) s; then 100/s from 500 on.
	check("ramp 0..100 in 10s", 1000, func(k float64) float64 {
		if k < 500 {
			return math.Sqrt(k / 5)
		}
		return 10 + (k-500)/100
	})
	// Mirrored: 500 - k are left, in the last √((500-k)/5) s of ten.
	check("ramp 100..0 in 10s", 500, func(k float64) float64 {
		return 10 - math.Sqrt((500-k)/5)
	})
	// 100t + 50t² = k: t = √(1 + k/50) - 1; 150 in the first second, then 200/s.
	check("ramp 100..200 in 1s", 1000, func(k float64) float64 {
		if k < 150 {
			return math.Sqrt(1+k/50) - 1
		}
		return 1 + (k-150)/200
	})
	// Nothing in the first three seconds, nothing in the fifth.
	check("0 for 3s, 10 for 1s, 0 for 1s, 10", 100, func(k float64) float64 {
		if k < 10 {
			return 3 + k/10
		}
		return 5 + (k-10)/10
	})
	// A thousand in each first half of two seconds.
	check("repeat 1000 for 1s, 0 for 1s", 50_000, func(k float64) float64 {
		cycle := math.Floor(k / 1000)
		return 2*cycle + (k-1000*cycle)/1000
	})
	// 1/1024 of an arrival a cycle of 16 s: one each 16,384 s, jumped to at once.
	check("repeat 0.0009765625 for 1s, 0 for 15s", 1000, func(k float64) float64 {
		return 16_384 * k
	})
	// One arrival each 4,096 cycles of 250 µs.
	check("repeat 0 for 125us, 1.953125 for 125us", 1000, func(k float64) float64 {
		return 1.024*k + 0.000125
	})
}

// Counts between two moments, by the area under the rate.
func TestShapesByCount(t *testing.T) {
	check := func(text string, fromS, toS float64, want int64) {
		t.Helper()
		p := shape(t, Constant, text, 0)
		if got := Count(p, int64(fromS*1e9), int64(toS*1e9)); got != want {
			t.Errorf("%s: %d arrivals from %g to %g s, want %d", text, got, fromS, toS, want)
		}
	}
	check("ramp 0..100 in 10s", 0, 10, 500)
	check("ramp 0..100 in 10s", 10, 11, 100)
	check("ramp 100..0 in 10s", 0, 1000, 500)
	steps := "steps 1000..5000 by 1000 every 10s"
	check(steps, 0, 10, 10_000)
	check(steps, 10, 20, 20_000)
	check(steps, 40, 50, 50_000)
	check(steps, 50, 60, 50_000) // the last step stays
	spike := "spike 1000..10000 at 10s for 2s"
	check(spike, 0, 10, 10_000)
	check(spike, 10, 12, 20_000)
	check(spike, 12, 15, 3000)
	check("sine 1000..5000 every 60s", 0, 60, 180_000) // the mean is 3000
	check("sine 1000..5000 every 60s", 60, 600, 9*180_000)
	check("1000 for 10s, 0", 0, 1e6, 10_000)
	check("100 for 70ms, 0", 0, 1e6, 7) // 200·0.035 is more than 7 in floats
}

// The number of an arrival equals the integral of the rate up to it: Mean shares no code with the
// inversion. Rounding an offset is worth half a nanosecond of the rate.
func TestArrivalsInvertTheIntegral(t *testing.T) {
	check := func(name, text string) {
		t.Helper()
		const seed = 11
		rate := parsed(t, text)
		p := shape(t, name, text, seed)
		unit := 0.0
		for k := range uint64(20_000) {
			if name == Poisson {
				unit += Exp(seed, k)
			}
			at := p.Next()
			if at == Never {
				if all := rate.Mean(0, 1e12) * 1e3; unit < all-1e-3 {
					t.Errorf("%s, %s: ends after %g of %g", name, text, unit, all)
				}
				return
			}
			integral := rate.Mean(0, at) * float64(at) / 1e9
			// 20,000 gaps of a rounding of 1e-9 make less than 1e-6.
			if off := math.Abs(integral - unit); off > 0.51e-9*rate.Max()+1e-6 {
				t.Fatalf("%s, %s: arrival %d at %d ns: integral %.9f, want %.9f", name, text, k, at,
					integral, unit)
			}
			if name == Constant {
				unit++
			}
		}
	}
	for _, text := range shapes {
		check(Constant, text)
		check(Poisson, text)
	}
}

// In each bin the number of Poisson arrivals has the integral of the rate there as its mean and as
// its variance: over n bins Σ(count-mean)²/mean is χ² with n degrees of freedom, two-sided at 1 in
// 1,000 on either side. The seeds are fixed, so the test cannot flicker.
func TestPoissonFollowsTheShape(t *testing.T) {
	const bins, binNs = 500, 20e6
	check := func(text string, seed uint64) {
		t.Helper()
		counts := make([]float64, bins)
		p := shape(t, Poisson, text, seed)
		for at := p.Next(); at < bins*binNs; at = p.Next() {
			counts[at/binNs]++
		}
		sum, freedom := 0.0, 0.0
		for i, n := range counts {
			from := int64(i) * binNs
			mean := parsed(t, text).Mean(from, from+binNs) * binNs / 1e9
			if mean == 0 && n > 0 {
				t.Fatalf("%s, seed %d: %g arrivals in bin %d at a rate of 0", text, seed, n, i)
			}
			if mean >= 1 {
				sum += (n - mean) * (n - mean) / mean
				freedom++
			}
		}
		spread := 3.09 * math.Sqrt(2*freedom)
		if sum > chiSquareMax(freedom) || sum < freedom-spread {
			t.Errorf("%s, seed %d: χ² = %g of %g degrees", text, seed, sum, freedom)
		}
	}
	for _, text := range shapes {
		for seed := range uint64(5) {
			check(text, seed)
		}
	}
}

// The root keeps its precision near the end of a ramp: within half a nanosecond of rounding and
// four units in the last place of the ramp's length, by big numbers.
func TestRampsKeepTheirDigits(t *testing.T) {
	check := func(from, to float64, forNs int64) {
		t.Helper()
		piece := newShaped(Profile{Pieces: []Piece{{forNs, from, to}}}, false, 0).pieces[0]
		whole := math.Floor(piece.area)
		for _, need := range []float64{1, math.Floor(whole / 2), whole - 10, whole - 1} {
			got, want := piece.offset(0, need), exactOffset(from, to, forNs, need)
			if off := math.Abs(float64(got) - want); off > 0.5+4*float64(forNs)*0x1p-53 {
				t.Errorf("ramp %g..%g in %d ns: arrival %g at %d, off by %g ns", from, to, forNs,
					need, got, off)
			}
		}
	}
	for _, forNs := range []int64{1e9, 3600e9, 86_400e9} {
		check(0, 1e5, forNs)
		check(1e5, 0, forNs)
		check(1e5, 1, forNs)
		check(20_000, 19_999, forNs)
		check(19_999, 20_000, forNs)
		check(3, 7777.7, forNs)
	}
}

// exactOffset solves from·t + (to-from)/forNs·t²/2 = need·1e9 for t in ns, in 300 bits: with
// d = to-from, t = forNs·(√(from² + 2·d·need·1e9/forNs) - from)/d.
func exactOffset(from, to float64, forNs int64, need float64) float64 {
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(v) }
	d := num(to)
	d.Sub(d, num(from))
	length := num(float64(forNs))
	root := num(2e9 * need)
	root.Mul(root, d).Quo(root, length)
	root.Add(root, num(from).Mul(num(from), num(from))).Sqrt(root)
	root.Sub(root, num(from)).Mul(root, length).Quo(root, d)
	ns, _ := root.Float64()
	return ns
}

// A shape with a constant rate has the arrivals of the flat process: a nanosecond of rounding apart
// for the constant one, and half of √k for Poisson, whose gaps are rounded singly.
func TestShapedAgreesWithFlat(t *testing.T) {
	check := func(name string, slack float64) {
		t.Helper()
		flat := process(t, name, 12_345, 5)
		s := newShaped(parsed(t, "repeat 12345 for 1s, 12345 for 100ms"), name == Poisson, 5)
		for k := range 100_000 {
			a, b := flat.Next(), s.Next()
			if math.Abs(float64(a-b)) > slack {
				t.Fatalf("%s: arrival %d is at %d, flat at %d", name, k, b, a)
			}
		}
	}
	check(Constant, 1)
	check(Poisson, 0.5*math.Sqrt(100_000)) // six standard deviations
}

func TestSharesAreTheShape(t *testing.T) {
	check := func(p func() Process, n int) {
		t.Helper()
		const each = 3000
		want := first(p(), n*each)
		got := make([]int64, n*each)
		for i := range n {
			for j, at := range first(Share(p(), i, n), each) {
				got[i+j*n] = at
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d shares are not the process", n)
		}
	}
	for _, n := range []int{1, 2, 3, 8} {
		for _, text := range shapes {
			for _, name := range all {
				check(func() Process { return shape(t, name, text, 3) }, n)
			}
		}
		check(func() Process { return replayed(t, 0, 1, 1, 5, 8) }, n)
	}
}

func replayed(t testing.TB, trace ...int64) Process {
	t.Helper()
	p, err := Schedule{Arrivals: Replay, Trace: trace}.Process(1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReplay(t *testing.T) {
	trace := []int64{0, 3, 3, 9}
	want := []int64{0, 3, 3, 9, Never, Never}
	if got := first(replayed(t, trace...), 6); !slices.Equal(got, want) {
		t.Errorf("replay %d, want %d", got, want)
	}
	if got := first(Share(replayed(t, trace...), 1, 3), 3); !slices.Equal(got, []int64{3, Never,
		Never}) {
		t.Errorf("share 1 of 3: %d, want 3 and no more", got)
	}
	if got := Count(replayed(t, trace...), 3, Never); got != 3 {
		t.Errorf("%d arrivals from 3 on, want 3", got)
	}
}

// A process that has ended stays at its end, and Count and Hash count no arrival.
func TestNever(t *testing.T) {
	check := func(p Process, arrivals int) {
		t.Helper()
		before := int64(0)
		for k := range arrivals {
			at := p.Next()
			if at < before || at == Never {
				t.Fatalf("arrival %d of %d at %d after %d", k, arrivals, at, before)
			}
			before = at
		}
		for range 3 {
			if at := p.Next(); at != Never {
				t.Fatalf("an arrival at %d after the last of %d", at, arrivals)
			}
		}
	}
	for range 2 { // so that both processes reach the end
		check(shape(t, Constant, "1000 for 10s, 0", 0), 10_000)
		check(shape(t, Constant, "ramp 0..100 in 10s, 0", 0), 500)
		check(shape(t, Constant, "ramp 100..0 in 10s", 0), 500)
	}
	// 0.001 of an arrival in all: the constant process has its first at 0 and no second.
	check(shape(t, Constant, "0.001 for 1s, 0", 0), 1)
	// 2⁶² ns are 4,611,686,018.4 s: one arrival each 10⁶ s, from 0 on.
	check(process(t, Constant, minPerS, 0), 4612)
	check(shape(t, Constant, "1e-6 for 1s, 1e-6 for 1s", 0), 4612)
	check(newShaped(parsed(t, "1e-6 for 1s, 1e-6"), false, 0), 4612)
	// 10⁻¹⁵ of an arrival a second: the second one would be due in 31 million years.
	check(shape(t, Constant, "repeat 1e-6 for 1us, 0 for 999999us", 0), 1)
	// 0.8 of an arrival in 2⁶¹ ns, so that the third would be due in the third cycle, at 2⁶² or
	// later.
	check(shape(t, Constant, "repeat 1e-6 for 800000s, 0 for 2305043009213693952ns", 0), 2)
	// Seed 7's first gap is more than the 0.001 there is.
	check(shape(t, Poisson, "0.001 for 1s, 0", 7), 0)
	p := shape(t, Poisson, "1000 for 10s, 0", 1)
	if n := Count(p, 0, Never); n < 9700 || n > 10_300 { // 10,000 ± 3 √10,000
		t.Errorf("%d arrivals of 10,000", n)
	}
	check(p, 0)
	p = process(t, Poisson, minPerS, 1)
	if n := Count(p, 0, Never); n < 4408 || n > 4816 { // 4,612 ± 3 √4,612
		t.Errorf("%d arrivals of 4,612", n)
	}
	check(p, 0)
}

// Next never decreases, for any shape and any number of pieces and cycles.
func TestShapesNeverGoBack(t *testing.T) {
	check := func(name, text string) {
		t.Helper()
		p := shape(t, name, text, 9)
		before := int64(0)
		for k := range 200_000 {
			at := p.Next()
			if at < before {
				t.Fatalf("%s, %s: arrival %d at %d after %d", name, text, k, at, before)
			}
			before = at
		}
	}
	for _, name := range all {
		for _, text := range shapes {
			check(name, text)
		}
		check(name, "repeat 0.1 for 3ns, ramp 0..0.7 in 7ns, 1e8 for 11ns, 0 for 1ns")
		check(name, "repeat 1e8 for 1ns")
		check(name, "ramp 1e-6..1e8 in 1s, ramp 1e8..1e-6 in 1s")
		check(name, "repeat 1e-6 for 1ns, 0 for 1ns")
	}
}

// A change of these changes recorded schedules: it belongs in the changelog.
func TestShapesStayWhatTheyWere(t *testing.T) {
	check := func(text string, wantConstant, wantPoisson string) {
		t.Helper()
		for name, want := range map[string]string{Constant: wantConstant, Poisson: wantPoisson} {
			if got := Hash(shape(t, name, text, 42), 10e9); got != want {
				t.Errorf("%s, %s: hash %s, want %s", name, text, got, want)
			}
		}
	}
	// Constant rates, and so the published schedules of the flat processes.
	check("20000 for 3s, 20000", "d00a44dce863788a", "80e8540dd3f549fd")
	check("ramp 0..20000 in 10s", "18cee55a5b8ddc58", "fb57a61ae34c661b")
	check("steps 1000..5000 by 1000 every 2s", "8f3bbeb44b62860b", "7097bd847b01d8d9")
	check("spike 1000..10000 at 5s for 1s", "e46ec91fac084643", "e7e4a7b72aacc097")
	check("sine 1000..20000 every 3s", "69a6963f7348920b", "fd30c2c5838317d5")
	check("repeat 0 for 300ms, 3333.3 for 200ms, ramp 10..777.7 in 1s",
		"8941b5b7ba079cf8", "74fbad0f7d2f8430")
	if got, want := Hash(replayed(t, 0, 1e6, 5e8, 2e9), 1e9), "3bad8749a1ff5189"; got != want {
		t.Errorf("replay: hash %s, want %s", got, want)
	}
}

func TestBadSchedules(t *testing.T) {
	check := func(s Schedule, want string) {
		t.Helper()
		wantError(t, func() error {
			p, err := s.Process(1)
			if p != nil {
				t.Errorf("a process beside the error %v", err)
			}
			return err
		}, want)
	}
	rate := func(cycles bool, pieces ...Piece) Schedule {
		return Schedule{Arrivals: Poisson, Rate: Profile{Pieces: pieces, Cycles: cycles}}
	}
	check(rate(false), "pace poisson: no pieces")
	check(rate(false, Piece{1e9, 0, 0}, Piece{}), "rate 0/s sends nothing")
	check(rate(false, Piece{1e9, 5, -1}), "rate -1/s")
	check(rate(false, Piece{1e9, 5, math.NaN()}), "rate NaN/s")
	check(rate(false, Piece{1e9, 1e9, 5}), "rate 1e+09/s is not between 1e-06/s and 1e+08/s")
	check(rate(false, Piece{0, 1, 1}, Piece{1e9, 1, 1}), "piece 1 lasts 0 ns")
	check(rate(false, Piece{-1, 1, 1}), "piece 1 lasts -1 ns")
	check(rate(true, Piece{0, 1, 1}), "piece 1 lasts 0 ns")
	check(rate(false, Piece{0, 1, 2}), "piece 1 goes from 1 to 2 in no time")
	check(rate(false, Piece{farNs, 1, 2}, Piece{1, 1, 1}), "longer than 146 years")
	check(rate(false, Piece{farNs, 1, 2}, Piece{math.MaxInt64, 1, 1}), "longer than 146 years")
	check(Schedule{Arrivals: Replay}, "pace replay: the trace holds no arrival")
	check(Schedule{Arrivals: Replay, Trace: []int64{-1}}, "arrival 0 of the trace is at -1 ns")
	check(Schedule{Arrivals: Replay, Trace: []int64{2, 1}},
		"arrival 1 of the trace is at 1 ns after 2 ns; sort the trace")
	check(Schedule{Arrivals: Replay, Trace: []int64{Never}}, "arrival 0 of the trace")
}
