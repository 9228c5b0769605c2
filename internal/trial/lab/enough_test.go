package lab

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"prony.example/internal/report/runs"
	"prony.example/internal/service"
	"prony.example/record"
)

// blocks returns a run of four blocks in which each target has these rates.
func blocks(perS map[string][]float64) *runs.Run {
	r := &runs.Run{Head: record.Run{ID: "r"}}
	for target, rates := range perS {
		for i, rate := range rates {
			r.Records = append(r.Records, &record.Record{
				Version: 1, Run: "r", Trial: fmt.Sprintf("b%d-%s", i+1, target), Block: i + 1,
				Scenario: "read", Contract: "none", Outcome: record.Measured,
				Time:    time.Date(2026, 11, 1, 0, i, 0, 0, time.UTC),
				Target:  record.Target{Name: target, Variant: "none"},
				Verdict: record.Verdict{Grade: record.Valid},
				Loads: []record.Load{{Name: "peak", Model: "closed", Connections: 8,
					ThroughputPerS: rate, WindowNs: 1e9}},
			})
		}
	}
	return r
}

// TestEnough checks which comparison says how many blocks would suffice: the first one that found
// no difference, but not the control, which compares the first service with itself.
func TestEnough(t *testing.T) {
	noisy := []float64{900, 1100, 1000, 1040}
	steady := []float64{1000, 1001, 1002, 1003}
	check := func(what string, again, says bool, others ...[]float64) {
		t.Helper()
		rates := map[string][]float64{"a": steady}
		services := Catalog{{Name: "a"}}
		for i, r := range others {
			name := fmt.Sprintf("b%d", i)
			rates[name] = r
			services = append(services, &service.Service{Name: name})
		}
		a := &Answer{Dir: t.TempDir(), Run: blocks(rates)}
		if err := a.compare(Comparison{By: "throughput", Again: again}, services); err != nil {
			t.Fatal(err)
		}
		if got := strings.HasPrefix(a.Enough, "Detecting a difference of 5 % in "); got != says {
			t.Errorf("%s: %q", what, a.Enough)
		}
		if len(a.Against) != len(others) || a.First != "a" {
			t.Errorf("%s: %d comparisons with %q", what, len(a.Against), a.First)
		}
	}
	check("one noisy service", false, true, noisy)
	check("one steady service", false, false, steady)
	check("the first of two is noisy", false, true, noisy, steady)
	check("the last of two is noisy", false, true, steady, noisy)
	check("only the control is noisy", true, false, steady, noisy)
	check("only the other service is noisy", true, true, noisy, steady)
	a := &Answer{Dir: "x", Run: &runs.Run{}}
	if err := a.compare(Comparison{}, nil); err == nil ||
		!strings.HasPrefix(err.Error(), "read run x: the run has no records") {
		t.Errorf("no records: %v", err)
	}
}
