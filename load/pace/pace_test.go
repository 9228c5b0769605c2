package pace

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// all are the names of the processes.
var all = []string{Constant, Poisson}

func process(t testing.TB, name string, ratePerS float64, seed uint64) Process {
	t.Helper()
	p, err := Schedule{Arrivals: name, Rate: Flat(ratePerS)}.Process(seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func first(p Process, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = p.Next()
	}
	return out
}

// Arrival k of the constant process is the integer nearest to k·1e9/rate, computed here in exact
// fractions. Half a unit in the last place of a float64 is allowed in addition to the half of
// rounding: the quotient is rounded once to a float64 and once to an integer.
func TestConstantIsExact(t *testing.T) {
	const last = 10_000_000
	check := func(ratePerS float64) {
		t.Helper()
		p := process(t, Constant, ratePerS, 0)
		rate := new(big.Rat).SetFloat64(ratePerS)
		for k := range int64(last + 1) {
			got := p.Next()
			if k > 1000 && k%999_983 != 0 && k != last {
				continue
			}
			exact := new(big.Rat).Quo(new(big.Rat).SetInt64(k*1e9), rate)
			off, _ := exact.Sub(exact, new(big.Rat).SetInt64(got)).Float64()
			if math.Abs(off) > 0.5+float64(got)/(1<<53) {
				t.Errorf("rate %g/s: arrival %d is at %d, off by %g ns", ratePerS, k, got, off)
			}
		}
	}
	check(1000)     // a gap of a whole microsecond
	check(3)        // 333,333,333.3…: k = 1e7 falls on 3.3e15, a month
	check(70_000)   // 14,285.714…
	check(99_999.9) // a rate that no float64 holds
	check(6e7)      // 16.67 ns: rounded gaps would be off by 2 %
}

// A constant schedule begins at 0, a Poisson one after its first gap.
func TestFirstArrivals(t *testing.T) {
	got := first(process(t, Constant, 4, 9), 4)
	if want := []int64{0, 250e6, 500e6, 750e6}; !slices.Equal(got, want) {
		t.Errorf("constant at 4/s: %d, want %d", got, want)
	}
	if got := process(t, Poisson, 4, 9).Next(); got <= 0 {
		t.Errorf("Poisson begins at %d ns", got)
	}
}

// The gaps are exponential by the Anderson-Darling test with known parameters, which includes the
// tails: A² exceeds 6.000 in one of 1,000 true samples (Marsaglia & Marsaglia, J. Stat. Softw.
// 9(2), 2004). The seeds are fixed, so the test cannot flicker.
func TestPoissonGapsAreExponential(t *testing.T) {
	check := func(seed uint64, ratePerS float64) {
		t.Helper()
		const n = 20_000
		p := process(t, Poisson, ratePerS, seed)
		var before int64
		u := make([]float64, n)
		for i := range u {
			now := p.Next()
			u[i] = -math.Expm1(-float64(now-before) * ratePerS / 1e9)
			before = now
		}
		slices.Sort(u)
		sum := 0.0
		for i := range u {
			sum += float64(2*i+1) * (math.Log(u[i]) + math.Log1p(-u[n-1-i]))
		}
		if a2 := -n - sum/n; !(a2 < 6.000) {
			t.Errorf("seed %d, rate %g/s: A² = %g, want < 6.000", seed, ratePerS, a2)
		}
	}
	// A rate of 1/s has gaps of 1e9 ns, in which the grain of 1 ns cannot be seen.
	for seed := range uint64(10) {
		check(seed, 1)
	}
	check(42, 1000)
	check(math.MaxUint64, 20_000)
}

// Gaps of a Poisson process are independent: the correlation of n pairs of independent gaps has a
// standard deviation of 1/√n; 3.29 of them are exceeded once in 1,000.
func TestPoissonGapsAreIndependent(t *testing.T) {
	const n = 100_000
	p := process(t, Poisson, 1, 42)
	gaps := make([]float64, n+10)
	before := int64(0)
	for i := range gaps {
		now := p.Next()
		gaps[i] = float64(now-before)/1e9 - 1 // mean 0, variance 1
		before = now
	}
	for lag := 1; lag <= 10; lag++ {
		sum := 0.0
		for i := range n {
			sum += gaps[i] * gaps[i+lag]
		}
		if r := sum / n; math.Abs(r) > 3.29/math.Sqrt(n) {
			t.Errorf("gaps %d apart correlate by %g", lag, r)
		}
	}
}

// The number of arrivals in a bin has variance = mean for Poisson, at every scale; wrk2 shows 6.7,
// hey 29. Over n bins the ratio has a standard deviation of √(2/(n-1)); 3.29 are allowed (1 in
// 1,000). A constant process of a whole number of arrivals per bin has variance 0.
func TestIndexOfDispersion(t *testing.T) {
	const ratePerS, horizon = 20_000, 100e9
	check := func(name string, seed uint64, bin int64, want float64) {
		t.Helper()
		n := int64(horizon) / bin
		counts := make([]float64, n)
		p := process(t, name, ratePerS, seed)
		for at := p.Next(); at < horizon; at = p.Next() {
			counts[at/bin]++
		}
		sum, squares := 0.0, 0.0
		for _, c := range counts {
			sum, squares = sum+c, squares+c*c
		}
		mean := sum / float64(n)
		index := (squares/float64(n) - mean*mean) / mean
		if tolerance := want * 3.29 * math.Sqrt(2/float64(n-1)); math.Abs(index-want) > tolerance {
			t.Errorf("%s, seed %d, bins of %d ms: index of dispersion %g, want %g ± %g",
				name, seed, bin/1e6, index, want, tolerance)
		}
	}
	for _, bin := range []int64{1e6, 10e6, 100e6} {
		check(Constant, 0, bin, 0)
		check(Poisson, 42, bin, 1)
		check(Poisson, 43, bin, 1)
	}
}

// Arrival j of share i is arrival i + j·n of the whole: none twice, none missing.
func TestSharesAreTheProcess(t *testing.T) {
	check := func(name string, n int) {
		t.Helper()
		const each = 1000
		want := first(process(t, name, 12_345, 7), n*each)
		got := make([]int64, n*each)
		for i := range n {
			for j, at := range first(Share(process(t, name, 12_345, 7), i, n), each) {
				got[i+j*n] = at
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d shares are not the process", name, n)
		}
	}
	for _, name := range all {
		for n := 1; n <= 9; n++ {
			check(name, n)
		}
		check(name, 64)
	}
}

// list is a process with given arrivals and then none.
type list []int64

func (l *list) Next() int64 {
	if len(*l) == 0 {
		return math.MaxInt64
	}
	at := (*l)[0]
	*l = (*l)[1:]
	return at
}

func TestHashIsEqualWhenSchedulesAre(t *testing.T) {
	check := func(a, b []int64, horizon int64, want bool) {
		t.Helper()
		x, y := list(slices.Clone(a)), list(slices.Clone(b))
		if got := Hash(&x, horizon) == Hash(&y, horizon); got != want {
			t.Errorf("%d and %d up to %d: equal hashes %v, want %v", a, b, horizon, got, want)
		}
	}
	check(nil, nil, 10, true)
	check([]int64{1, 2, 3}, []int64{1, 2, 3}, 10, true)
	check([]int64{1, 2, 3}, []int64{1, 2, 4}, 10, false)
	check([]int64{1, 2, 3}, []int64{1, 2}, 10, false)
	check([]int64{0}, nil, 10, false)
	check([]int64{1, 2, 30}, []int64{1, 2, 31}, 10, true)         // beyond the horizon
	check([]int64{1, 10}, []int64{1}, 10, true)                   // the horizon is excluded
	check([]int64{1, 1 << 40}, []int64{1, 1 << 41}, 1<<50, false) // the high bytes count
	seen := map[string]string{}
	for _, name := range all {
		for seed := range uint64(3) {
			for _, rate := range []float64{100, 101} {
				h := Hash(process(t, name, rate, seed), 1e9)
				id := fmt.Sprint(name, rate, seed)
				if name == Constant { // it ignores the seed
					id = fmt.Sprint(name, rate)
				}
				if other, ok := seen[h]; ok && other != id {
					t.Errorf("%s and %s have one hash", id, other)
				}
				seen[h] = id
			}
		}
	}
	if len(seen) != 2+2*3 { // two constant ones, two rates × three seeds of Poisson
		t.Errorf("%d hashes, want 8", len(seen))
	}
}

// A change of these changes every schedule ever recorded: it belongs in the changelog.
func TestSchedulesStayWhatTheyWere(t *testing.T) {
	check := func(name string, seed uint64, want string) {
		t.Helper()
		if got := Hash(process(t, name, 20_000, seed), 10e9); got != want {
			t.Errorf("%s, seed %d: hash %s, want %s", name, seed, got, want)
		}
	}
	check(Constant, 1, "d00a44dce863788a")
	check(Poisson, 1, "bf66f99f16deb680")
	check(Poisson, 42, "80e8540dd3f549fd")
}

// Processors differ in the last bits of a logarithm. Two units in the last place on every gap, up
// or down, move no arrival of the first million; in a sum of floats they would.
func TestSchedulesDoNotHangOnTheLastBit(t *testing.T) {
	const ratePerS, seed = 20_000, 42
	check := func(nudge float64) {
		t.Helper()
		p := process(t, Poisson, ratePerS, seed)
		var sum int64
		for k := range uint64(1_000_000) {
			gap := -math.Log(Uniform(seed, k)) * 1e9 / ratePerS
			sum += int64(math.Round(gap * (1 + nudge)))
			if at := p.Next(); at != sum {
				t.Fatalf("nudged by %g, arrival %d moves from %d to %d", nudge, k, at, sum)
			}
		}
	}
	check(0)
	check(0x1p-51)
	check(-0x1p-51)
}

func TestCount(t *testing.T) {
	check := func(arrivals []int64, from, to, want int64) {
		t.Helper()
		l := list(arrivals)
		if got := Count(&l, from, to); got != want {
			t.Errorf("%d arrivals in [%d, %d), want %d", got, from, to, want)
		}
	}
	check([]int64{0, 1, 2, 3, 4}, 1, 3, 2) // 1 and 2
	check([]int64{2, 2, 2}, 2, 3, 3)
	check(nil, 0, 10, 0)
	// 20,000/s for a second after a lead of half a second, to the arrival.
	if got := Count(process(t, Constant, 20_000, 0), 5e8, 15e8); got != 20_000 {
		t.Errorf("%d arrivals in a second at 20,000/s", got)
	}
}

// chiSquareMax is exceeded once in 1,000.
func chiSquareMax(freedom float64) float64 { return chiSquareAt(freedom, 3.09) }

// chiSquareAt returns the value of χ² as far out as z standard deviations of a normal distribution
// (Wilson & Hilferty, PNAS 17, 1931).
func chiSquareAt(freedom, z float64) float64 {
	v := 2 / (9 * freedom)
	return freedom * math.Pow(1-v+z*math.Sqrt(v), 3)
}

func chiSquare(counts []int, expected float64) float64 {
	sum := 0.0
	for _, c := range counts {
		sum += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	return sum
}

func TestBelowIsUniform(t *testing.T) {
	check := func(seed, n uint64) {
		t.Helper()
		const each = 200 // draws a value
		counts := make([]int, n)
		for k := range each * n {
			counts[Below(seed, k, n)]++ // a value of n or more would panic
		}
		got, limit := chiSquare(counts, each), chiSquareMax(float64(n-1))
		if n > 1 && got > limit {
			t.Errorf("seed %d, below %d: χ² = %g, want < %g", seed, n, got, limit)
		}
	}
	for seed := range uint64(5) {
		for _, n := range []uint64{1, 2, 3, 10, 1000, 1024, 50_000} {
			check(seed, n)
		}
	}
}

// Draws from two seeds are independent, even if the seeds are neighbors, differ in one bit or by
// SplitMix64's own step (there the streams are one shifted by a draw, so k is not compared with k +
// 1). χ² over the 8 × 8 table of both draws has 63 degrees of freedom.
func TestSeedsAreIndependent(t *testing.T) {
	check := func(a, b uint64) {
		t.Helper()
		const cells, each = 64, 500
		counts := make([]int, cells)
		for k := range uint64(cells * each) {
			counts[8*Below(a, k, 8)+Below(b, k, 8)]++
		}
		if got, limit := chiSquare(counts, each), chiSquareMax(cells-1); got > limit {
			t.Errorf("seeds %#x and %#x: χ² = %g, want < %g", a, b, got, limit)
		}
	}
	check(0, 1)
	check(1, 2)
	check(42, 42^1<<63)
	check(42, 42+0x9e3779b97f4a7c15)
	check(7, 7^0x5851f42d4c957f2d)
}

// Uniform never returns 0, whose logarithm is infinite; its extremes are the ends of 53 bits.
func TestUniformStaysOpenAtZero(t *testing.T) {
	// SplitMix64 maps 0 to 0: the least draw, k = 0 of the seed that cancels the first step.
	if u := Uniform(1+^uint64(0x9e3779b97f4a7c15), 0); u != 0x1p-53 {
		t.Errorf("the least draw is %g, want 2⁻⁵³", u)
	}
	low := 1.0
	for k := range uint64(1_000_000) {
		u := Uniform(3, k)
		if u <= 0 || u > 1 {
			t.Fatalf("draw %d is %g", k, u)
		}
		low = min(low, u)
	}
	// The least of a million is below 1e-5 but for a probability of e⁻¹⁰.
	if low > 1e-5 {
		t.Errorf("the least of a million draws is %g", low)
	}
}

func TestBadParameters(t *testing.T) {
	check := func(name string, ratePerS float64, want string) {
		t.Helper()
		p, err := Schedule{Arrivals: name, Rate: Flat(ratePerS)}.Process(1)
		if err == nil || p != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s at %g/s: %v, %v; want an error that says %q", name, ratePerS, p, err, want)
		}
	}
	for _, name := range all {
		check(name, 0, "rate 0/s")
		check(name, -5, "rate -5/s")
		check(name, math.NaN(), "rate NaN/s")
		check(name, math.Inf(1), "rate +Inf/s")
		check(name, math.Inf(-1), "rate -Inf/s")
		check(name, 1e-300, "rate 1e-300/s") // a gap that no int64 holds
		check(name, 1e-7, "rate 1e-07/s")
		check(name, 1e10, "rate 1e+10/s") // ten in a nanosecond
	}
	check("uniform", 5, `no arrival process "uniform"; there are constant, poisson and replay`)
	check("", 5, `no arrival process ""`)
}

// At both ends of the permitted rates the schedule still advances.
func TestExtremeRates(t *testing.T) {
	for _, name := range all {
		for _, rate := range []float64{minPerS, maxPerS} {
			before := int64(-1)
			for k, at := range first(process(t, name, rate, 5), 100) {
				if at < before || at < 0 {
					t.Fatalf("%s at %g/s: arrival %d at %d after %d", name, rate, k, at, before)
				}
				before = at
			}
			if want := 99e9 / rate; math.Abs(float64(before)/want-1) > 0.5 {
				t.Errorf("%s at %g/s: arrival 99 at %d, want about %g", name, rate, before, want)
			}
		}
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, name := range all {
		whole := process(t, name, 20_000, 1)
		shared := Share(process(t, name, 20_000, 1), 1, 3)
		shaped := shape(t, name, "repeat ramp 0..1000 in 10ms", 1)
		for what, p := range map[string]Process{name: whole, "a share of " + name: shared,
			"shaped " + name: shaped} {
			if n := testing.AllocsPerRun(1000, func() { p.Next() }); n != 0 {
				t.Errorf("%s allocates %g times an arrival", what, n)
			}
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, name := range all {
		b.Run(name, func(b *testing.B) {
			p := process(b, name, 20_000, 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Next()
			}
		})
		b.Run("shaped "+name, func(b *testing.B) {
			p := shape(b, name, "sine 1000..50000 every 60s", 1)
			b.ReportAllocs()
			for b.Loop() {
				p.Next()
			}
		})
	}
}
