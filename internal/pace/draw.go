package pace

import (
	"math"
	"math/bits"
)

// Mix hashes seed and index to 64 well-mixed bits: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
// used as a counter-based generator, so that draw k needs no draw before it.
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

// Exp returns a number of the exponential distribution of mean 1, from 0 to 36.7.
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

// ln is the natural logarithm of a finite positive number, the same to the last bit on every kind
// of processor, which math.Log is not: some have it in assembly, some fuse products with sums.
// Every product here is converted, which forbids the compiler to fuse it. The error is under one
// unit of the last place (FreeBSD's e_log.c, Sun Microsystems 1993).
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
