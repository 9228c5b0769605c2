package wording

import (
	"strings"
	"testing"

	"prony.example/record"
)

// TestAgainst checks that a finding is compared with its limit, or has the number that it can have
// moved most.
func TestAgainst(t *testing.T) {
	check := func(want, limit string, moves ...record.Bias) {
		t.Helper()
		f := record.Finding{Text: &record.Words{Limit: limit}, PossibleBias: moves}
		if got := Against(f); got != want {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
	}
	check("limit 5.0 %", "5.0 %")
	check("no limit", "")
	check("can have moved p99 by 100 %", "", record.Bias{Metric: "p50", Share: 0.2},
		record.Bias{Metric: "p99", Share: 1})
	check("can have moved throughput by 4.1 %", "", record.Bias{Metric: "throughput", Share: 0.041})
	// A bound is never rounded down.
	check("can have moved p99 by 101 %", "", record.Bias{Metric: "p99", Share: 1.001})
	check("can have moved mean by 3.1 %", "", record.Bias{Metric: "mean", Share: 0.0304})
}

// TestSmallShares checks that a share above 0 is not printed as 0.0 %.
func TestSmallShares(t *testing.T) {
	check := func(value float64, want string) {
		t.Helper()
		got := Finding(record.Finding{Rule: "balance", Value: value}).Observed
		if !strings.Contains(got, " "+want+" of a core") {
			t.Errorf("%q, want %s", got, want)
		}
	}
	check(0.0003, "0.03 %")
	check(0.0005, "0.1 %")
	check(0.012, "1.2 %")
}

// TestWaited checks that waits for streams are not called waits for connections.
func TestWaited(t *testing.T) {
	check := func(way, want string) {
		t.Helper()
		f := record.Finding{Rule: "waited", Case: way, Value: 0.58, Unit: record.UnitShare}
		if got := Finding(f).Observed; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check("", "58.0 % of the arrivals found every connection busy")
	check("streams", "58.0 % of the arrivals found every stream busy that the server permits")
}
