package pace

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// Never is what Next returns if no arrival is left.
const Never = math.MaxInt64

// Piece is a stretch of a Profile: linear from From to To in ForNs.
type Piece struct {
	ForNs    int64
	From, To float64
}

// Profile is a quantity over time: arrivals per second, or active users. After its last piece it
// keeps the last value, or begins again if Cycles is set. Only the last piece of a profile without
// Cycles may have a ForNs of 0; it is flat and never ends.
type Profile struct {
	Pieces []Piece
	Cycles bool
}

// Flat returns the profile of a constant.
func Flat(v float64) Profile { return Profile{Pieces: []Piece{{From: v, To: v}}} }

// Schedule describes an arrival process: how the rate changes over time and how gaps are
// distributed, or a recorded trace.
type Schedule struct {
	Arrivals string  // Constant or Poisson; Replay for a trace
	Rate     Profile // arrivals per second
	Trace    []int64 // Replay: offsets in ns, never decreasing
}

// Check returns what is wrong with the profile as a quantity of any kind. The other methods require
// a profile that passes it.
func (p Profile) Check() error {
	if len(p.Pieces) == 0 {
		return fmt.Errorf("no pieces")
	}
	remaining := int64(farNs)
	for i, piece := range p.Pieces {
		last := i == len(p.Pieces)-1 && !p.Cycles
		switch {
		case piece.ForNs < 0 || piece.ForNs == 0 && !last:
			return fmt.Errorf("piece %d lasts %d ns; only the last one of a profile that does not "+
				"cycle may be without a time", i+1, piece.ForNs)
		case piece.ForNs == 0 && piece.From != piece.To:
			return fmt.Errorf("piece %d goes from %v to %v in no time", i+1, piece.From, piece.To)
		case !isNumber(piece.From) || !isNumber(piece.To):
			return fmt.Errorf("piece %d goes from %v to %v; a value is a number from 0 on", i+1,
				piece.From, piece.To)
		case piece.ForNs > remaining:
			return fmt.Errorf("the pieces last longer than 146 years")
		}
		remaining -= piece.ForNs
	}
	return nil
}

func isNumber(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// checkRates returns what is wrong with a profile of rates.
func (p Profile) checkRates() error {
	for _, piece := range p.Pieces {
		for _, rate := range []float64{piece.From, piece.To} {
			// Written so that it also rejects NaN, for which all comparisons are false.
			if !(rate == 0 || rate >= minPerS && rate <= maxPerS) {
				return fmt.Errorf("rate %v/s is not between %g/s and %g/s", rate, minPerS, maxPerS)
			}
		}
	}
	if err := p.Check(); err != nil {
		return err
	}
	if p.Max() == 0 {
		return fmt.Errorf("rate 0/s sends nothing; let one piece be between %g/s and %g/s", minPerS,
			maxPerS)
	}
	return nil
}

// At returns the value at an offset from the start in ns; before the start, the first value. At the
// border of two pieces, the later one counts.
func (p Profile) At(ns int64) float64 {
	ns = max(ns, 0)
	if p.Cycles {
		ns %= p.Duration()
	}
	for _, piece := range p.Pieces {
		if ns < piece.ForNs {
			return piece.at(ns)
		}
		ns -= piece.ForNs
	}
	return p.last()
}

// last returns the value that a profile keeps after its pieces.
func (p Profile) last() float64 { return p.Pieces[len(p.Pieces)-1].To }

// at never decreases along a piece that rises, and never increases along one that falls, even in
// the last bit, because each step of its arithmetic is monotone.
func (p Piece) at(ns int64) float64 {
	return p.From + float64((p.To-p.From)*(float64(ns)/float64(p.ForNs)))
}

// Mean returns the mean value over [fromNs, toNs), exact except for the last bits, because it is
// summed from trapezoids. For an empty range it returns the value at fromNs.
func (p Profile) Mean(fromNs, toNs int64) float64 {
	if toNs <= fromNs {
		return p.At(fromNs)
	}
	sum, length := 0.0, float64(toNs-fromNs)
	from, to := fromNs, toNs
	if p.Cycles {
		cycle := p.Duration()
		from = fromNs % cycle
		to = from + (toNs - fromNs)
		if n := to / cycle; n > 0 {
			sum = p.integral(from, cycle) + float64(n-1)*p.integral(0, cycle)
			from, to = 0, to%cycle
		}
	}
	return (sum + p.integral(from, to)) / length
}

// integral returns the integral over [from, to), in values times ns, of one pass through the
// pieces. In a profile with Cycles, to must be in the first cycle.
func (p Profile) integral(from, to int64) float64 {
	sum := 0.0
	start := int64(0)
	for _, piece := range p.Pieces {
		a, b := max(from, start)-start, min(to, start+piece.ForNs)-start
		if a < b {
			sum += (piece.at(a) + piece.at(b)) / 2 * float64(b-a)
		}
		start += piece.ForNs
	}
	if a := max(from, start); a < to {
		sum += p.last() * float64(to-a)
	}
	return sum
}

// Max returns the highest value of the profile.
func (p Profile) Max() float64 {
	high := 0.0
	for _, piece := range p.Pieces {
		high = max(high, piece.From, piece.To)
	}
	return high
}

// Scale returns the profile with every value multiplied by x.
func (p Profile) Scale(x float64) Profile {
	p.Pieces = slices.Clone(p.Pieces)
	for i := range p.Pieces {
		p.Pieces[i].From *= x
		p.Pieces[i].To *= x
	}
	return p
}

// Duration returns the length of the pieces, or of one cycle, in ns; 0 for a constant without end.
func (p Profile) Duration() int64 {
	sum := int64(0)
	for _, piece := range p.Pieces {
		sum += piece.ForNs
	}
	return sum
}

// IsFlat reports whether the value never changes.
func (p Profile) IsFlat() bool {
	return !slices.ContainsFunc(p.Pieces, func(piece Piece) bool {
		return piece.From != p.Pieces[0].From || piece.To != p.Pieces[0].From
	})
}

// Next returns the first offset, fromNs or later, at which user i's activity differs from active,
// or Never, if the profile is a number of users: of 2.9 users, users 0 and 1 are active. A
// further call from there with !active returns a later offset, so alternating calls always advance.
func (p Profile) Next(i int, fromNs int64, active bool) int64 {
	from := max(fromNs, 0)
	start, passes := int64(0), 1
	if p.Cycles {
		// The second pass covers the part of the cycle before from.
		start, passes = from-from%p.Duration(), 2
	}
	changed := func(v float64) bool { return (v >= float64(i)+1) != active }
	for range passes {
		for _, piece := range p.Pieces {
			if atNs, ok := piece.first(max(from-start, 0), changed); ok {
				return start + atNs
			}
			start += piece.ForNs
		}
	}
	if !p.Cycles && changed(p.last()) {
		return max(from, start)
	}
	return Never
}

// first returns the first offset in the piece, from or later, whose value satisfies is. A piece is
// monotone, so a binary search finds it, to the nanosecond and consistent with At.
func (p Piece) first(from int64, is func(float64) bool) (int64, bool) {
	if from >= p.ForNs {
		return 0, false
	}
	if is(p.at(from)) {
		return from, true
	}
	atNs := from + int64(sort.Search(int(p.ForNs-from), func(i int) bool {
		return is(p.at(from + int64(i)))
	}))
	return atNs, atNs < p.ForNs
}
