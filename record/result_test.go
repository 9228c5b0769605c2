package result_test

import (
	"testing"

	"prony/record"
)

// What a finding was held to is its limit, or the number that it can have moved most.
func TestAgainst(t *testing.T) {
	check := func(want, limit string, moves ...result.Move) {
		t.Helper()
		f := result.Finding{Limit: limit, Moves: moves}
		if got := f.Against(); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	check("limit 5.0 %", "5.0 %")
	check("no limit", "")
	check("can have moved p99 by 100 %", "", result.Move{Number: "p50", By: 0.2},
		result.Move{Number: "p99", By: 1.001})
	check("can have moved throughput by 4.1 %", "", result.Move{Number: "throughput", By: 0.041})
}
