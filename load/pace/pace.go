// Package pace says when requests are due. An arrival process is a pure function of its parameters
// and a seed: the k-th arrival falls at the same offset for every contender, on every machine,
// however many threads send it, so that all are asked the same question at the same moments.
//
// A Profile, often from the text that Parse reads, says how a rate (or a number of users)
// changes; a Schedule adds how the gaps fall, or is a recorded trace; its Process yields the
// arrivals, of which each thread sends its Share. Zipf, Below and Exp draw keys and pauses so too.
//
// Non-goals: this package never looks at a clock and never hears about answers. A schedule that
// bends to the system under test is how coordinated omission gets in (G. Tene, "How NOT to Measure
// Latency").
package pace

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
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
	Replay   = "replay"
)

// Bounds of rates, arrivals a second. Below, a gap or two would leave the range of int64; above,
// gaps come near the nanosecond that offsets are rounded to.
const (
	minPerS = 1e-6
	maxPerS = 1e8
)

// farNs, 146 years, is the end of time: what would come later never comes, so that the sum of two
// offsets never leaves the range of int64.
const farNs = 1 << 62

// Process returns the arrivals of the schedule from the first one on. The constant process and a
// replay ignore the seed.
func (s Schedule) Process(seed uint64) (Process, error) {
	if s.Arrivals == Replay {
		return newReplay(s.Trace)
	}
	if s.Arrivals != Constant && s.Arrivals != Poisson {
		return nil, fmt.Errorf("pace: no arrival process %q; there are %s, %s and %s", s.Arrivals,
			Constant, Poisson, Replay)
	}
	if err := s.Rate.checkRates(); err != nil {
		return nil, fmt.Errorf("pace %s: %w", s.Arrivals, err)
	}
	if !s.Rate.IsFlat() {
		return newShaped(s.Rate, s.Arrivals == Poisson, seed), nil
	}
	gapNs := 1e9 / s.Rate.Pieces[0].From
	if s.Arrivals == Constant {
		return &constant{gapNs: gapNs}, nil
	}
	return &poisson{gapNs: gapNs, seed: seed}, nil
}

// constant puts arrival k at exactly k/rate: rounded once, never accumulated.
type constant struct {
	gapNs float64
	k     float64
}

func (c *constant) Next() int64 {
	t := c.k * c.gapNs
	if t >= farNs {
		return Never
	}
	c.k++
	return int64(math.Round(t))
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

// Next rounds each gap, not their sum: in a sum of floats the last bit of a product would in time
// move an arrival by a nanosecond and change the schedule's hash. It makes a mean gap of m ns
// shorter by 1/(24m²) of itself: 0.04 % at the highest rate, nothing at any that can be sent.
func (p *poisson) Next() int64 {
	p.t = min(p.t+int64(math.Round(Exp(p.seed, p.k)*p.gapNs)), farNs)
	p.k++
	if p.t == farNs {
		return Never
	}
	return p.t
}

// newReplay returns the recorded arrivals; the trace is read, never written.
func newReplay(trace []int64) (Process, error) {
	if len(trace) == 0 {
		return nil, fmt.Errorf("pace %s: the trace holds no arrival", Replay)
	}
	before := int64(0)
	for i, atNs := range trace {
		if atNs < before || atNs >= farNs {
			return nil, fmt.Errorf("pace %s: arrival %d of the trace is at %d ns after %d ns; "+
				"sort the trace, and let it begin at 0 or later", Replay, i, atNs, before)
		}
		before = atNs
	}
	return &replay{remaining: trace}, nil
}

type replay struct {
	remaining []int64
}

func (r *replay) Next() int64 {
	if len(r.remaining) == 0 {
		return Never
	}
	atNs := r.remaining[0]
	r.remaining = r.remaining[1:]
	return atNs
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
}

func (s *share) Next() int64 {
	atNs := s.p.Next()
	for range s.skip {
		s.p.Next()
	}
	return atNs
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
	return Hashes(p, 1, horizon)[0]
}

// Hashes are those of the n shares of p (see Share), of which the union is p. It consumes p.
func Hashes(p Process, n int, horizon int64) []string {
	sums := make([]hash.Hash64, n)
	for i := range sums {
		sums[i] = fnv.New64a()
	}
	var b [8]byte
	k := 0
	for t := p.Next(); t < horizon; t = p.Next() {
		binary.LittleEndian.PutUint64(b[:], uint64(t))
		sums[k].Write(b[:])
		if k++; k == n {
			k = 0
		}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%016x", sums[i].Sum64())
	}
	return out
}
