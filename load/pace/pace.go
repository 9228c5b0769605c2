// Package pace computes when requests are due. An arrival process is a pure function of its
// parameters and a seed: the k-th arrival has the same offset for every target, on every machine,
// for any number of threads, so all targets get the same requests at the same moments.
//
// A Profile, usually parsed from text by Parse, describes how a rate (or a number of users) changes
// over time. A Schedule adds the distribution of gaps, or is a recorded trace. Its Process yields
// the arrivals, of which each thread sends its Share. Zipf, Below and Exp draw keys and pauses in
// the same way.
//
// Non-goals: clocks and responses. A schedule that adapts to the system under test causes
// coordinated omission (G. Tene, "How NOT to Measure Latency").
package pace

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
)

// Process yields arrivals one after another as offsets from the start in nanoseconds, never
// decreasing. Next does not allocate.
type Process interface {
	Next() int64
}

// Names of the processes in suites.
const (
	Constant = "constant"
	Poisson  = "poisson"
	Replay   = "replay"
)

// Bounds of rates, in arrivals per second. Below them, the sum of a few gaps would exceed an int64;
// above them, gaps approach the nanosecond to which offsets are rounded.
const (
	minPerS = 1e-6
	maxPerS = 1e8
)

// farNs, 146 years, is the end of time: later arrivals never come, so the sum of two offsets never
// exceeds an int64.
const farNs = 1 << 62

// Process returns the arrivals of the schedule from the first one on. The constant process and a
// replay ignore the seed. It fails if the schedule is invalid.
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

// constant puts arrival k at exactly k/rate: each is rounded once, so errors do not accumulate.
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

// poisson has exponential gaps by inversion of a counter-based generator: gap k depends only on
// seed and k. Arrivals of many independent users are Poisson (Palm-Khintchine theorem), so this
// process is the default for latency measurements.
type poisson struct {
	gapNs float64
	seed  uint64
	k     uint64
	t     int64
}

// Next rounds each gap, not their sum: in a sum of floats the last bit of a product would
// eventually move an arrival by a nanosecond and change the schedule's hash. Rounding shortens a
// mean gap of m ns by the fraction 1/(24m²): 0.04 % at the highest rate, and nothing at rates that
// can be sent.
func (p *poisson) Next() int64 {
	p.t = min(p.t+int64(math.Round(Exp(p.seed, p.k)*p.gapNs)), farNs)
	p.k++
	if p.t == farNs {
		return Never
	}
	return p.t
}

// newReplay returns the recorded arrivals. It reads the trace and never changes it.
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
// send one schedule without sharing state: the union of their shares is p.
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

// Count consumes p up to the end of [from, to) and returns how many arrivals fall into it.
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
// consumes p. The hash is FNV-1a, 64 bits, over the offsets as little-endian integers.
func Hash(p Process, horizon int64) string {
	return Hashes(p, 1, horizon)[0]
}

// Hashes returns the Hash of each of the n shares of p (see Share). It consumes p.
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
