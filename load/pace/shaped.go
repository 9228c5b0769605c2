package pace

import "math"

// shaped puts arrival k at Λ⁻¹(u), where Λ is the integral of the rate over time and u the k-th
// arrival of the same process at a rate of 1: k for the constant one, a sum of exponential gaps for
// Poisson (the time change of a non-homogeneous Poisson process: E. Çinlar, "Introduction to
// Stochastic Processes", 1975, §4.7). Every product that is part of a sum is converted, which
// forbids the compiler to fuse them, so the arrivals are the same on every processor.
type shaped struct {
	pieces  []stretch
	cycle   stretch // all pieces together; its area is 0 if the profile does not cycle
	poisson bool
	seed    uint64

	k           uint64
	total, nano int64 // the next arrival at a rate of 1, in units and billionths of a unit

	i      int    // the current piece
	start  int64  // where the current piece begins, ns
	before amount // Λ(start)
	last   int64
}

// amount is a number of arrivals with a fraction that stays exact for any integer part.
type amount struct {
	total    int64
	fraction float64 // in [0, 1)
}

func (a *amount) add(total int64, fraction float64) {
	a.fraction += fraction
	carry := math.Floor(a.fraction)
	a.fraction -= carry
	a.total += total + int64(carry)
}

func (a amount) minus(b amount) float64 {
	return float64(a.total-b.total) + (a.fraction - b.fraction)
}

// stretch is a piece with the values that its inversion needs.
type stretch struct {
	Piece
	area  float64 // arrivals in it
	slope float64 // its change of rate, 1/s²
	final bool    // it never ends
}

func newShaped(p Profile, poisson bool, seed uint64) *shaped {
	s := &shaped{poisson: poisson, seed: seed}
	for _, piece := range p.Pieces {
		// The doubled area is exact for whole rates, so a whole number of arrivals stays whole.
		area := (piece.From + piece.To) * float64(piece.ForNs) / 2e9
		slope := (piece.To - piece.From) / (float64(piece.ForNs) / 1e9)
		s.pieces = append(s.pieces, stretch{Piece: piece, area: area, slope: slope})
		s.cycle.area += area
		s.cycle.ForNs += piece.ForNs
	}
	if !p.Cycles {
		s.cycle = stretch{}
		end := Piece{From: p.last(), To: p.last()}
		s.pieces = append(s.pieces, stretch{Piece: end, final: true})
	}
	if poisson {
		s.step()
	}
	return s
}

// Next returns Never from then on if the rate stays 0 or the next arrival is too far away.
func (s *shaped) Next() int64 {
	if s.last == Never {
		return Never
	}
	unit := amount{s.total, float64(s.nano) / 1e9}
	for need := unit.minus(s.before); ; need = unit.minus(s.before) {
		p := &s.pieces[s.i]
		if p.final || need < p.area {
			// The last bit of a sum of areas, or of a root, can make a later arrival earlier.
			s.last = max(s.last, p.offset(s.start, need))
			s.step()
			return s.last
		}
		s.leave(p)
		if s.i == 0 && !s.skip(unit.minus(s.before)) {
			s.last = Never
			return Never
		}
	}
}

// step advances to the next arrival at a rate of 1. Gaps are rounded to 1e-9 and summed as
// integers, because integer sums are exact; rounding shortens the mean gap by the fraction 4e-20.
func (s *shaped) step() {
	if !s.poisson {
		s.total++
		return
	}
	s.nano += int64(math.Round(Exp(s.seed, s.k) * 1e9))
	s.total += s.nano / 1e9
	s.nano %= 1e9
	s.k++
}

// leave moves to the piece after p.
func (s *shaped) leave(p *stretch) {
	total := math.Floor(p.area)
	s.before.add(int64(total), p.area-total)
	s.start += p.ForNs
	s.i++
	if s.i == len(s.pieces) {
		s.i = 0
	}
}

// skip jumps over cycles without arrivals, of which there can be millions. It returns false if no
// cycle is left before the end of time.
func (s *shaped) skip(need float64) bool {
	n := math.Floor(need / s.cycle.area)
	if n > 0 {
		if float64(s.start)+float64(n*float64(s.cycle.ForNs)) >= farNs {
			return false
		}
		total := math.Floor(s.cycle.area)
		remaining := float64(n * (s.cycle.area - total))
		s.before.add(int64(n)*int64(total), remaining)
		s.start += int64(n) * s.cycle.ForNs
	}
	return s.start < farNs
}

// offset returns when a piece that begins at start reaches need arrivals.
func (p *stretch) offset(start int64, need float64) int64 {
	var ns float64
	switch {
	case p.From == p.To:
		ns = need * 1e9 / p.From // at a rate of 0: never
	case p.From < p.To:
		ns = rise(need, p.From, p.slope)
	default:
		// Seen backwards from its end, the piece rises, which avoids differences of nearly equal
		// numbers.
		ns = float64(p.ForNs) - rise(p.area-need, p.To, -p.slope)
	}
	// Written so that NaN, which is 0 arrivals at a rate of 0, becomes Never.
	if !(ns < farNs) {
		return Never
	}
	return start + int64(math.Round(ns))
}

// rise returns the ns after which a rate that begins at r and grows by slope per second has
// produced n arrivals: the root of n = rt + slope·t²/2 in the form without cancellation.
func rise(n, r, slope float64) float64 {
	if n <= 0 {
		return 0
	}
	return 2 * n / (r + math.Sqrt(float64(r*r)+float64(2*n*slope))) * 1e9
}
