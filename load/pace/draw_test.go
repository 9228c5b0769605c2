package pace

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"testing"
)

// math.Log is itself within one unit of the last place, so two may lie between them.
func TestLn(t *testing.T) {
	check := func(x float64) {
		t.Helper()
		got, want := ln(x), math.Log(x)
		if d := math.Abs(got - want); d > 2*math.Abs(math.Nextafter(want, math.Inf(1))-want) {
			t.Errorf("ln %v = %v, want %v", x, got, want)
		}
	}
	for k := range uint64(100_000) {
		u := Uniform(1, k)
		check(u)
		check(1 / u)
		check(math.Exp(1400*u - 700))
	}
	check(1)
	check(0x1p-53)
	check(math.Sqrt2 / 2)
	check(1 - 0x1p-53)
	if ln(1) != 0 {
		t.Errorf("ln 1 = %v", ln(1))
	}
}

// The bits are the same on every processor, because a schedule's hash depends on them.
func TestExpStaysWhatItWas(t *testing.T) {
	h := fnv.New64a()
	for k := range uint64(1_000_000) {
		_ = binary.Write(h, binary.LittleEndian, Exp(42, k)) // a hash never fails
	}
	if got, want := fmt.Sprintf("%016x", h.Sum64()), "79a4516447c5618d"; got != want {
		t.Errorf("a million draws have the hash %s, want %s", got, want)
	}
}

// zipfChances returns the exact probabilities, summed in big numbers.
func zipfChances(n int, s float64) []float64 {
	sum := new(big.Float).SetPrec(100)
	for i := range n {
		sum.Add(sum, big.NewFloat(math.Pow(float64(i+1), -s)))
	}
	total, _ := sum.Float64()
	chances := make([]float64, n)
	for i := range chances {
		chances[i] = math.Pow(float64(i+1), -s) / total
	}
	return chances
}

// χ² against the exact probabilities, with numbers whose expectation is under 20 combined. There
// are 80 rows, so the limit of each is one in a million (4.75); 1 in 1,000 was exceeded once, by a
// row that was then correct over 200 seeds (χ² of 0.9 on average for 1 degree) and over 40 million
// draws.
func TestZipfIsExact(t *testing.T) {
	check := func(n int, s float64, seed uint64) {
		t.Helper()
		const draws = 100_000
		z := NewZipf(uint64(n), s)
		counts := make([]float64, n)
		for k := range uint64(draws) {
			counts[z.Draw(seed, k)]++ // n or more would panic
		}
		sum, freedom := 0.0, -1.0
		count, expected := 0.0, 0.0
		for i, chance := range zipfChances(n, s) {
			count, expected = count+counts[i], expected+chance*draws
			if expected >= 20 {
				sum += (count - expected) * (count - expected) / expected
				count, expected = 0, 0
				freedom++
			}
		}
		if freedom > 0 && sum > chiSquareAt(freedom, 4.75) {
			t.Errorf("n %d, s %g, seed %d: χ² = %g of %g degrees", n, s, seed, sum, freedom)
		}
	}
	for seed := range uint64(2) {
		for _, s := range []float64{0.001, 0.5, 0.99, 1, 1 + 1e-12, 1.01, 2, 5} {
			for _, n := range []int{1, 2, 3, 10, 1000, 10_000} {
				check(n, s, seed)
			}
		}
	}
}

// By hand: with s = 1 and two numbers the first has 1/(1 + 1/2) of the draws, with three and s = 2
// 1/(1 + 1/4 + 1/9) = 36/49. 3.29 standard deviations of a count are allowed.
func TestZipfByHand(t *testing.T) {
	check := func(n uint64, s, want float64) {
		t.Helper()
		const draws = 1_000_000
		z, zeros := NewZipf(n, s), 0
		for k := range uint64(draws) {
			if z.Draw(1, k) == 0 {
				zeros++
			}
		}
		got, slack := float64(zeros)/draws, 3.29*math.Sqrt(want*(1-want)/draws)
		if math.Abs(got-want) > slack {
			t.Errorf("n %d, s %g: %g of the draws are 0, want %g ± %g", n, s, got, want, slack)
		}
	}
	check(1, 1, 1)
	check(2, 1, 2./3)
	check(3, 2, 36./49)
	check(4, 0.5, 1/(1+1/math.Sqrt2+1/math.Sqrt(3)+0.5))
	// Σ1/i up to 10¹² is ln 10¹² + 0.5772: no table would hold it.
	check(1e12, 1, 1/(12*math.Ln10+0.57721566))
	check(1<<53, 2, 6/(math.Pi*math.Pi))
	check(5, 300, 1) // the second has 2⁻³⁰⁰
}

// H keeps its precision next to s = 1: with t = (1-s) ln x it is ln x (1 + t/2 + t²/6), and H⁻¹
// inverts it.
func TestZipfNearOne(t *testing.T) {
	for _, s := range []float64{1 - 1e-6, 1 - 1e-12, 1, 1 + 1e-15, 1 + 1e-9, 1 + 1e-6} {
		z := NewZipf(1000, s)
		for _, x := range []float64{0.6, 1.5, 20, 999.5} {
			l := math.Log(x)
			u := (1 - s) * l
			if got, want := z.integral(x), l*(1+u/2+u*u/6); math.Abs(got/want-1) > 1e-14 {
				t.Errorf("s %v: H(%g) = %v, want %v", s, x, got, want)
			}
			if got := z.inverse(z.integral(x)); math.Abs(got/x-1) > 1e-14 {
				t.Errorf("s %v: H⁻¹(H(%g)) = %v", s, x, got)
			}
		}
	}
}

// A draw depends only on seed and k, costs no memory, and needs few tries.
func TestZipfIsPure(t *testing.T) {
	z := NewZipf(1000, 1)
	forth := make([]uint64, 1000)
	for k := range forth {
		forth[k] = z.Draw(9, uint64(k))
	}
	for k := len(forth) - 1; k >= 0; k-- {
		if got := z.Draw(9, uint64(k)); got != forth[k] {
			t.Fatalf("draw %d is %d and then %d", k, forth[k], got)
		}
	}
	for shift := range 2 {
		same := 0
		for k := range forth[shift:] {
			if z.Draw(10, uint64(k)) == forth[k+shift] {
				same++
			}
		}
		if same > 200 { // two draws agree with Σp² = 1.64/7.49² = 0.03
			t.Errorf("%d of 1000 draws agree between two seeds, %d apart", same, shift)
		}
	}
	k := uint64(0)
	if n := testing.AllocsPerRun(1000, func() { z.Draw(1, k); k++ }); n != 0 {
		t.Errorf("a draw allocates %g times", n)
	}
}

func BenchmarkZipf(b *testing.B) {
	z := NewZipf(1_000_000, 0.99)
	b.ReportAllocs()
	k := uint64(0)
	for b.Loop() {
		z.Draw(1, k)
		k++
	}
}
