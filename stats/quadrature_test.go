package stats

import (
	"slices"
	"testing"
)

// TestQuadraturesAreKept checks that a quadrature is computed once, and that the cached one has the
// same values.
func TestQuadraturesAreKept(t *testing.T) {
	for _, free := range []float64{1, 2.5, 40} {
		first, again, fresh := quadratureOf(free), quadratureOf(free), newQuadrature(free)
		if &first.shares[0] != &again.shares[0] {
			t.Errorf("%v degrees of freedom: computed twice", free)
		}
		if !slices.Equal(first.shares, fresh.shares) ||
			!slices.Equal(first.weights, fresh.weights) {
			t.Errorf("%v degrees of freedom: the kept quadrature differs", free)
		}
	}
}
