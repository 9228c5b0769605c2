package lab

import (
	"slices"
	"testing"
)

// What --by names is asked for first, and nothing else is left out; processor time is the default.
func TestWhatDecides(t *testing.T) {
	check := func(word string, want ...string) {
		t.Helper()
		if got := measuresBy(word); !slices.Equal(got, want) {
			t.Errorf("--by %s: %q, want %q", word, got, want)
		}
	}
	check(Decisive[0], "peak/cpu_per_request", "peak/throughput", "half/p99", "users/capacity")
	check("p99", "half/p99", "peak/cpu_per_request", "peak/throughput", "users/capacity")
}
