package lab

import (
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

// The line of a trial names the reason of its grade, and no latency that the verdict withholds.
func TestDigest(t *testing.T) {
	check := func(grade, want, not string) {
		t.Helper()
		r := &record.Record{Trial: "b1-01-a", Outcome: record.Measured,
			Loads: []record.Load{{Name: "half", Model: "open",
				ResponseTime: record.Dist{P99Ns: 139e6}}},
			Verdict: record.Verdict{Grade: grade, Findings: []record.Finding{
				{Rule: "quiet", Grade: record.Suspect, Text: &record.Words{Observed: "others"}},
				{Rule: "delivered", Load: "half", Grade: grade, Value: 0.976, Limit: 0.99,
					Unit: record.UnitShare, Side: record.Below},
			}}}
		if got := Digest(r); !strings.Contains(got, want) || strings.Contains(got, not) {
			t.Errorf("%q, want %q and not %q", got, want, not)
		}
	}
	check(record.Invalid, "INVALID: half: delivered: share of due requests sent: 97.6 % and 1 more",
		"quiet")
	check(record.Invalid, "half p99 –", "139 ms")
	check(record.Suspect, "SUSPECT: quiet: others and 1 more", "delivered")
	check(record.Suspect, "half p99 139 ms", "p99 –")
	check(record.Valid, "VALID", "delivered") // findings without effect are omitted
}

// A trial that its user ended is stopped, and neither failed nor INVALID.
func TestDigestOfStopped(t *testing.T) {
	r := &record.Record{Trial: "b1-01-a", Outcome: "failed",
		Failure: &record.Failure{Step: "measure", Error: "interrupted", Interrupted: true},
		Verdict: record.Verdict{Grade: record.Invalid}}
	if got := strings.Fields(Digest(r)); strings.Join(got, " ") != "b1-01-a stopped: measure" {
		t.Errorf("%q", got)
	}
}

// The figures of a run so far have the numbers of each load, but none that the verdict withholds.
func TestLiveResults(t *testing.T) {
	r := &record.Record{Outcome: record.Measured, Loads: []record.Load{
		{Name: "peak", Model: record.Closed, ThroughputPerS: 1200},
		{Name: "half", Model: record.Open, ResponseTime: record.Dist{P99Ns: 5e6}},
		{Name: "over", Model: record.Open, ResponseTime: record.Dist{P99Ns: 9e9}},
		{Name: "limit", Model: record.Open, Search: &record.Search{SLO: "p99<5ms", MetPerS: 900,
			RatePerS: 950}},
	}, Verdict: record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
		{Rule: "capacity", Load: "over", Grade: record.Invalid}}}}
	want := []record.LiveResult{
		{Load: "peak", Metric: "throughput", Unit: "1/s", Value: 1200},
		{Load: "half", Metric: "p99", Unit: "ns", Value: 5e6},
		{Load: "over", Metric: "p99", Unit: "ns"},
		{Load: "limit", Metric: "capacity", Unit: "1/s", Value: 950, Objective: "p99<5ms",
			Met: true},
	}
	if got := liveResults(r); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.Outcome = "failed"
	if got := liveResults(r); got != nil {
		t.Errorf("a failed trial has %+v", got)
	}
}
