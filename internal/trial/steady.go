package trial

import "math"

// The rule for a steady warm-up: the last warmSpans spans of warmSpan intervals each agree.
const (
	warmSpan   = 4    // intervals of warmInterval: half a second
	warmSpans  = 3    // a pause between two stages of a compiler looks steady for two spans
	warmChange = 0.03 // largest relative difference between the spans' counts
)

// steady reports whether a cumulative count grew equally fast over the last spans, in the manner of
// Georges, Buytaert & Eeckhout (OOPSLA 2007, §3.2), who stop when the variation over the last
// iterations falls below a few per cent. Counts vary by their root even when nothing changes, so
// two such deviations are allowed on top; a slow service is not kept warming up by its own
// randomness.
func steady(cumulative []int64) bool {
	n := len(cumulative)
	if n < warmSpans*warmSpan+1 {
		return false
	}
	least, most := math.Inf(1), 0.0
	for i := range warmSpans {
		end := n - 1 - i*warmSpan
		count := float64(cumulative[end] - cumulative[end-warmSpan])
		least, most = min(least, count), max(most, count)
	}
	return least > 0 && most/least-1 <= warmChange+2*math.Sqrt(2/least)
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
