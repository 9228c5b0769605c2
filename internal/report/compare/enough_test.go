package compare

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestEnough checks that the advised number of blocks detects the difference, and that one less
// does not.
func TestEnough(t *testing.T) {
	noisy := func(by float64, n int) Comparison {
		old, other := make([]float64, n), make([]float64, n)
		for i := range n {
			old[i] = 10_000
			other[i] = 10_000 * (1 + by*float64(i%2*2-1)) // as much above as below
		}
		s := runOf("r", noon, rows{"new": other, "old": old})
		for i, r := range s.Records { // a number that is worse known does not decide
			r.Loads[0].Service.CPUPerRequestNs *= 1 + 3*by*float64(i%3-1)
		}
		return compare(t, at(s, "old"), at(s, "new"), Options{Metrics: []string{
			"peak/throughput", "peak/cpu_per_request"}})
	}
	c := noisy(0.04, 6)
	says := c.Enough(0.05)
	var n, more int
	if _, err := fmt.Sscanf(says, "Detecting a difference of 5 %% in peak throughput would take "+
		"about %d more blocks (--blocks %d, or a longer", &more, &n); err != nil || n != 6+more {
		t.Fatalf("it says %q: %v", says, err)
	}
	r := rowOf(t, c.Pairs[0], "peak", "throughput")
	alpha := (1 - c.Confidence) / float64(c.Tests)
	if with := r.Ratio.DetectsWith(n-r.Ratio.N, alpha, power); with > 0.05 {
		t.Errorf("%d blocks see %v", n, with)
	}
	if with := r.Ratio.DetectsWith(n-1-r.Ratio.N, alpha, power); with <= 0.05 {
		t.Errorf("%d blocks see %v already", n-1, with)
	}
	first := c
	first.first = []string{"peak/cpu_per_request"}
	first.judge()
	if says := first.Enough(0.05); !strings.HasPrefix(says, "Detecting a difference of 5 % in "+
		"peak CPU per request would take ") {
		t.Errorf("asked by another number it says %q", says)
	}
	if says := noisy(0.3, 6).Enough(0.05); !strings.HasPrefix(
		says,
		"No sensible number of blocks",
	) {
		t.Errorf("of noise it says %q", says)
	}
	if says := noisy(0.001, 6).Enough(0.05); says != "" {
		t.Errorf("what sees 5 %% says %q", says)
	}
	s := runOf("r", noon, rows{"new": slower, "old": drifting})
	told := compare(t, at(s, "old"), at(s, "new"), Options{Metrics: []string{"peak/throughput"}})
	if says := told.Enough(math.SmallestNonzeroFloat64); says != "" {
		t.Errorf("what was told says %q", says)
	}
}
