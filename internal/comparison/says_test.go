package comparison

import (
	"math"
	"testing"
)

// What nothing could be told of says how much would have been, as far as that means anything.
func TestSays(t *testing.T) {
	check := func(outcome string, detectable float64, want string) {
		t.Helper()
		r := Row{Outcome: outcome, Word: "w", Detectable: detectable}
		if got := r.Says(); got != want {
			t.Errorf("%s, %v: %q, want %q", outcome, detectable, got, want)
		}
	}
	check(Better, 0.03, "w")
	check(Alike, 0.03, "w (sees 3.0 %)")
	check(Alike, 2, "w (sees 200 %)")
	check(Alike, 2.01, "w (too noisy)")
	check(Alike, math.NaN(), "w")
}
