package pace

import (
	"math"
	"math/bits"
)

// Mix hashes seed and index to 64 well-mixed bits. It is SplitMix64 (Steele, Lea, Flood, OOPSLA
// 2014) used as a counter-based generator, so draw k needs no earlier draw.
func Mix(seed, k uint64) uint64 {
	z := seed + (k+1)*0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// Uniform returns a number in (0, 1], which is safe under a logarithm.
func Uniform(seed, k uint64) float64 {
	return (float64(Mix(seed, k)>>11) + 1) / (1 << 53)
}

// Below returns a number in [0, n) by multiply-shift (Lemire 2019); the bias is under n/2^64.
func Below(seed, k, n uint64) uint64 {
	hi, _ := bits.Mul64(Mix(seed, k), n)
	return hi
}

// Exp returns a number from the exponential distribution with mean 1, from 0 to 36.7.
func Exp(seed, k uint64) float64 {
	return -ln(Uniform(seed, k))
}

// Coefficients of ln, from FreeBSD's e_log.c.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	l1    = 6.666666666666735130e-01
	l2    = 3.999999999940941908e-01
	l3    = 2.857142874366239149e-01
	l4    = 2.222219843214978396e-01
	l5    = 1.818357216161805012e-01
	l6    = 1.531383769920937332e-01
	l7    = 1.479819860511658591e-01
)

// ln returns the natural logarithm of a finite positive number, identical to the last bit on every
// processor. math.Log is not: some processors have it in assembly, and some fuse products with
// sums. Every product here is converted, which forbids the compiler to fuse it. The error is under
// one unit in the last place (FreeBSD's e_log.c, Sun Microsystems 1993).
func ln(x float64) float64 {
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f *= 2
		exponent--
	}
	f--
	k := float64(exponent)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := l5 + float64(s4*l7)
	odd = l3 + float64(s4*odd)
	odd = l1 + float64(s4*odd)
	even := l4 + float64(s4*l6)
	even = l2 + float64(s4*even)
	r := float64(s2*odd) + float64(s4*even)
	half := float64(0.5 * f * f)
	low := float64(s*(half+r)) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - low) - f)
}

// Zipf draws numbers of which few are frequent and most are rare: number i has a probability
// proportional to 1/(i+1)^s. It is immutable, so threads may share it. The draws are exact, by
// rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions", TOMACS 6(3), 1996). It needs no table, and fewer than 1.1 tries
// on average for any n (observed for exponents from 0.001 to 50).
type Zipf struct {
	n, s   float64
	lo, hi float64 // H at the ends of the range: draws invert it
	near   float64 // a point this close to its number is always accepted
}

// NewZipf returns the distribution over [0, n), n up to 2⁵³, with exponent s > 0.
func NewZipf(n uint64, s float64) *Zipf {
	if n == 0 || !(s > 0) || math.IsInf(s, 0) {
		panic("pace: Zipf wants at least one number and an exponent above 0")
	}
	z := &Zipf{n: float64(n), s: s}
	z.lo = z.integral(1.5) - 1
	z.hi = z.integral(z.n + 0.5)
	z.near = 2 - z.inverse(z.integral(2.5)-z.weight(2))
	return z
}

// Draw returns draw k, a pure function of seed and k.
func (z *Zipf) Draw(seed, k uint64) uint64 {
	seed = Mix(seed, k) // a draw can take several tries, so each has its own generator
	for try := uint64(0); ; try++ {
		u := z.hi + float64(Uniform(seed, try)*(z.lo-z.hi))
		x := z.inverse(u)
		i := min(max(math.Floor(x+0.5), 1), z.n)
		if i-x <= z.near || u >= z.integral(i+0.5)-z.weight(i) {
			return uint64(i) - 1
		}
	}
}

// weight returns h(x) = 1/x^s.
func (z *Zipf) weight(x float64) float64 {
	return math.Exp(-z.s * ln(x))
}

// integral returns H(x), the integral of h from 1 to x: (x^(1-s) - 1) / (1-s), or ln x if s is 1.
// This form keeps its precision for s near 1.
func (z *Zipf) integral(x float64) float64 {
	l := ln(x)
	if t := (1 - z.s) * l; t != 0 {
		return math.Expm1(t) / t * l
	}
	return l
}

// inverse returns H⁻¹(u).
func (z *Zipf) inverse(u float64) float64 {
	t := max((1-z.s)*u, -1) // rounding can pass the pole
	if t == 0 {
		return math.Exp(u)
	}
	return math.Exp(math.Log1p(t) / t * u)
}
