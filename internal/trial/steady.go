package trial

import "math"

// The rule for a steady warm-up. It looks back over two spans of warmSpan intervals each.
const (
	warmSpan   = 4    // intervals of warmInterval
	warmChange = 0.03 // largest relative difference of the two spans' counts
)

// steady reports whether the last span of a cumulative count grew as fast as the span before it: a
// window comparison in the manner of Georges, Buytaert & Eeckhout (OOPSLA 2007, §3.2), who stop
// when the variation over the last iterations falls below a few per cent. Counts vary by their root
// even when nothing changes, so two such deviations are allowed on top; a slow service is not kept
// warming up by its own randomness.
func steady(cumulative []int64) bool {
	n := len(cumulative)
	if n < 2*warmSpan+1 {
		return false
	}
	last := float64(cumulative[n-1] - cumulative[n-1-warmSpan])
	before := float64(cumulative[n-1-warmSpan] - cumulative[n-1-2*warmSpan])
	if before <= 0 || last <= 0 {
		return false
	}
	return math.Abs(last/before-1) <= warmChange+2*math.Sqrt(1/last+1/before)
}

// rates turns a cumulative count per interval into requests a second.
func rates(cumulative []int64) []float64 {
	var out []float64
	var before int64
	for _, n := range cumulative {
		out = append(out, float64(n-before)/warmInterval.Seconds())
		before = n
	}
	return out
}
