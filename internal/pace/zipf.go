package pace

import "math"

// Zipf draws numbers of which few are frequent and most are rare: i comes with a probability
// proportional to 1/(i+1)^s. It is a constant once made, so threads may share one. The draws are
// exact, by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate
// variates from monotone discrete distributions", TOMACS 6(3), 1996): no table, and fewer than 1.1
// tries on average (seen for exponents from 0.001 to 50), however many numbers there are.
type Zipf struct {
	n, s   float64
	lo, hi float64 // H over the numbers: what a draw inverts
	near   float64 // so near to its number a point is always accepted
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
	seed = Mix(seed, k) // a draw may take several tries: each has a generator of its own
	for try := uint64(0); ; try++ {
		u := z.hi + float64(Uniform(seed, try)*(z.lo-z.hi))
		x := z.inverse(u)
		i := min(max(math.Floor(x+0.5), 1), z.n)
		if i-x <= z.near || u >= z.integral(i+0.5)-z.weight(i) {
			return uint64(i) - 1
		}
	}
}

// weight is h(x) = 1/x^s.
func (z *Zipf) weight(x float64) float64 {
	return math.Exp(-z.s * ln(x))
}

// integral is H(x), the integral of h from 1 to x: (x^(1-s) - 1) / (1-s), or ln x where s is 1. The
// form keeps its digits near there.
func (z *Zipf) integral(x float64) float64 {
	l := ln(x)
	if t := (1 - z.s) * l; t != 0 {
		return math.Expm1(t) / t * l
	}
	return l
}

// inverse is H⁻¹.
func (z *Zipf) inverse(u float64) float64 {
	t := max((1-z.s)*u, -1) // rounding may pass the pole
	if t == 0 {
		return math.Exp(u)
	}
	return math.Exp(math.Log1p(t) / t * u)
}
