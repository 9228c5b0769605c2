package compare

import (
	"slices"
	"testing"
)

// TestWhatDecides checks that the metric of --by decides first, that no other is missing, and that
// CPU time is the default.
func TestWhatDecides(t *testing.T) {
	check := func(word string, want ...string) {
		t.Helper()
		if got := DecidedBy(word); !slices.Equal(got, want) {
			t.Errorf("--by %s: %q, want %q", word, got, want)
		}
	}
	check(Decisive[0], "peak/cpu_per_request", "peak/throughput", "half/p99", "users/capacity")
	check("p99", "half/p99", "peak/cpu_per_request", "peak/throughput", "users/capacity")
}
