package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"prony.example/internal/dev/testsets"
)

// For equal targets, 94 to 95.5 % of the intervals through a base contain 1, also if one group has
// fewer starts and scatters more.
func TestRatioThroughCovers(t *testing.T) {
	testsets.Whole(t, "a long simulation")
	const experiments = 8000
	r := rand.New(rand.NewPCG(39, 7))
	starts := func(n int, sd float64) Ratio {
		out := make([]StartRatio, n)
		for i := range out {
			out[i].LogRatio = 0.1 + sd*r.NormFloat64()
		}
		return CompareStarts(out, nil, 0.95).Ratio
	}
	check := func(a, b int, sd float64) {
		t.Helper()
		covers := 0.0
		for range experiments {
			x := RatioThrough(starts(a, 0.01), starts(b, sd))
			if x.Lo <= 1 && 1 <= x.Hi {
				covers += 1.0 / experiments
			}
		}
		if covers < 0.935 || covers > 0.965 {
			t.Errorf("%d and %d starts, SDs 1 %% and %v: covers in %.4f", a, b, sd, covers)
		}
	}
	check(6, 6, 0.01)
	check(6, 6, 0.03)
	check(12, 5, 0.02)
}

func TestRatioThroughByHand(t *testing.T) {
	// Log ratios 1, 3 % and 4, 8 % have SDs of 1.414 % and 2.828 %: the variance of the difference
	// of 4 % is 1 + 4 %², with (1 + 4)² / (1 + 16) = 1.47 degrees of freedom.
	a := CompareStarts(startsOf(0.01, 0.01, 0.03), nil, 0.95).Ratio
	b := CompareStarts(startsOf(0.01, 0.04, 0.08), nil, 0.95).Ratio
	r := RatioThrough(a, b)
	if math.Abs(math.Log(r.Center)-0.04) > 1e-12 || math.Abs(r.Free-25.0/17) > 1e-9 ||
		math.Abs(r.SDLog-0.03162) > 1e-5 || r.Lo >= 1 || r.Hi <= r.Center {
		t.Errorf("%+v", r)
	}
	one := CompareStarts(startsOf(0.01, 0.04), nil, 0.95).Ratio
	if none := RatioThrough(a, one); none.HasInterval() {
		t.Errorf("of a single start: %+v", none)
	}
}
