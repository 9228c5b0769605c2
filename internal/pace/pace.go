// Package pace says when requests are due. An arrival process is a pure function of its parameters
// and a seed: the k-th arrival falls at the same offset for every contender, on every machine,
// however many threads send it, so that all are asked the same question at the same moments.
//
// Non-goals: this package never looks at a clock and never hears about answers. A schedule that
// bends to the system under test is how coordinated omission gets in (G. Tene, "How NOT to Measure
// Latency").
package pace

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/bits"
)

// Process yields arrivals one after another: offsets from the start in nanoseconds, never
// decreasing. Next does not allocate.
type Process interface {
	Next() int64
}

// Names of the processes, as suites spell them.
const (
	Constant = "constant"
	Poisson  = "poisson"
)

// Bounds of rates, arrivals a second. Below, a gap or two would leave the range of int64; above,
// gaps come near the nanosecond that offsets are rounded to.
const (
	minPerS = 1e-6
	maxPerS = 1e8
)

// New returns the named process at ratePerS arrivals a second. The constant process ignores the
// seed.
func New(name string, ratePerS float64, seed uint64) (Process, error) {
	// Written so that NaN, which compares with nothing, is refused too.
	if !(ratePerS >= minPerS && ratePerS <= maxPerS) {
		return nil, fmt.Errorf("pace %s: rate %v/s is not between %g/s and %g/s", name, ratePerS,
			minPerS, maxPerS)
	}
	switch name {
	case Constant:
		return &constant{gapNs: 1e9 / ratePerS}, nil
	case Poisson:
		return &poisson{gapNs: 1e9 / ratePerS, seed: seed}, nil
	}
	return nil, fmt.Errorf("pace: no arrival process %q; there are %s and %s", name, Constant,
		Poisson)
}

// constant puts arrival k at exactly k/rate: rounded once, never accumulated.
type constant struct {
	gapNs float64
	k     float64
}

func (c *constant) Next() int64 {
	t := int64(math.Round(c.k * c.gapNs))
	c.k++
	return t
}

// poisson has exponential gaps, by inversion of a counter-based generator: gap k depends on seed
// and k alone. Independent users make Poisson arrivals (Palm-Khintchine), which is why it is the
// default wherever a latency is claimed.
type poisson struct {
	gapNs float64
	seed  uint64
	k     uint64
	t     int64
}

// Next rounds each gap, not their sum: the last bit of a logarithm, or of a product fused with a
// sum, differs from one kind of processor to the next, and in a sum of floats it would in time move
// an arrival by a nanosecond and change the schedule's hash. It makes a mean gap of m ns shorter by
// 1/(24m²) of itself: 0.04 % at the highest rate, nothing at any that can be sent.
func (p *poisson) Next() int64 {
	p.t += int64(math.Round(-math.Log(Uniform(p.seed, p.k)) * p.gapNs))
	p.k++
	return p.t
}

// Share returns every n-th arrival of p beginning with the i-th (0 <= i < n), so that n threads can
// send one schedule with nothing shared between them: the union of their shares is p itself.
func Share(p Process, i, n int) Process {
	for range i {
		p.Next()
	}
	if n == 1 {
		return p
	}
	return &share{p: p, skip: n - 1}
}

type share struct {
	p    Process
	skip int
	warm bool
}

func (s *share) Next() int64 {
	if s.warm {
		for range s.skip {
			s.p.Next()
		}
	}
	s.warm = true
	return s.p.Next()
}

// Count consumes p up to the horizon and returns how many arrivals fall into [from, to).
func Count(p Process, from, to int64) int64 {
	var n int64
	for t := p.Next(); t < to; t = p.Next() {
		if t >= from {
			n++
		}
	}
	return n
}

// Hash identifies the schedule up to the horizon (ns): equal hashes mean equal arrivals. It
// consumes p. FNV-1a, 64 bits, over the offsets as little-endian integers.
func Hash(p Process, horizon int64) string {
	h := fnv.New64a()
	var b [8]byte
	for t := p.Next(); t < horizon; t = p.Next() {
		binary.LittleEndian.PutUint64(b[:], uint64(t))
		h.Write(b[:])
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

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
