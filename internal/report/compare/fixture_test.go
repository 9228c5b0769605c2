package compare

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rows has a run's targets with the throughput of each block.
type rows map[string][]float64

// runOf returns a run in which latencies are a hundredth of a second divided by the throughput in
// thousands: at 10,000/s p50 is 1 ms, p90 2 ms, p99 4 ms.
func runOf(id string, at time.Time, rs rows) Side {
	s := Side{Dir: "results/" + id, Reproduce: "prony run " + id,
		Head: record.Run{ID: id, Suite: "canonical",
			Requests: map[string][]string{"read": {"GET /hello"}}}}
	for name, perS := range rs {
		for i, rate := range perS {
			r := trialOf(id, name, i+1, rate)
			r.Time = at.Add(time.Duration(i) * time.Minute)
			s.Records = append(s.Records, r)
		}
	}
	return s
}

func trialOf(run, name string, block int, rate float64) *record.Record {
	p50 := int64(1e13 / rate / 1e3)
	rt := record.Dist{Count: 100_000, P50Ns: p50, P90Ns: 2 * p50, P99Ns: 4 * p50, P999Ns: 8 * p50}
	target, origin, _ := strings.Cut(name, "@")
	r := &record.Record{
		Version: 1, Run: run, Suite: "canonical", Trial: fmt.Sprintf("b%d-%s", block, name),
		Block: block, Scenario: "read", Contract: "hello", Outcome: record.Measured,
		Target:   record.Target{Name: name, Service: target, Variant: "none", Origin: origin},
		Artifact: record.Artifact{SHA256: "of " + name, SizeBytes: 1 << 20},
		Start:    record.Start{ListenNs: 1e6, ReadyNs: 2e6, FirstResponseNs: 3e6},
		Limits: record.Limits{CPUs: 1, MemoryBytes: 1 << 30, ServiceCores: []int{1},
			LoadCores: []int{0}, InForce: []record.Limit{{Kind: record.LimitCores,
				By: record.ByCgroup1, Cores: []int{1}}}},
		Provenance: record.Provenance{Prony: "v0.4.1", Commit: "c0ffee", OS: "Linux",
			Kernel: "6.18.44-a", CPUModel: "EPYC", Cores: 2, Governor: "none"},
		Verdict: record.Verdict{Grade: record.Valid},
	}
	r.Warmup = record.Warmup{Steady: true, SteadyAtNs: 4e9}
	n := int64(rate * 10)
	r.Loads = []record.Load{
		{Name: "peak", Model: record.Closed, Connections: 64, Threads: 1, WindowNs: 10e9,
			Scheduled: n, Sent: n, Done: n, Answered: n, ThroughputPerS: rate, ResponseTime: rt},
		{Name: "half", Model: record.Open, Arrivals: "poisson", Connections: 64, Threads: 1,
			RatePerS: rate / 2, RateOf: "50% of peak", RateBase: "peak", WindowNs: 10e9,
			Scheduled: n / 2, Sent: n / 2, Done: n / 2, Answered: n / 2, ThroughputPerS: rate / 2,
			ResponseTime: rt},
	}
	for i := range r.Loads {
		r.Loads[i].Generator = record.Gen{Engine: "epoll", Pacing: "precise: until 65µs before"}
		r.Loads[i].Service.CPUPerRequestNs = 1e9 / rate
		r.Loads[i].Service.RSSMaxBytes = 50 << 20
	}
	return r
}

// at selects a target of a run.
func at(s Side, target string) Side {
	s.Target = target
	return s
}

func compare(t *testing.T, a, b Side, o Options) Comparison {
	t.Helper()
	c, err := Compare(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rowOf(t *testing.T, p Pair, load, metric string) Row {
	t.Helper()
	for _, r := range p.Rows {
		if r.Load == load && r.Metric == metric {
			return r
		}
	}
	t.Fatalf("there is no row %s/%s in %d rows", load, metric, len(p.Rows))
	return Row{}
}

// near checks that x is within one in a million of want, or that both are infinite, or both NaN.
func near(t *testing.T, what string, x, want float64) {
	t.Helper()
	if math.IsNaN(x) != math.IsNaN(want) || math.Abs(x-want) > 1e-6*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, x, want)
	}
}

func has(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, w := range wants {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, text)
		}
	}
}

// scaled multiplies values block by block.
func scaled(xs []float64, by ...float64) []float64 {
	out := make([]float64, len(xs))
	for i := range xs {
		out[i] = xs[i] * by[i%len(by)]
	}
	return out
}

// drifting is a machine whose blocks differ by up to 30 %, far more than the differences to detect.
var drifting = []float64{10000, 13000, 9000, 12000, 11000, 10500, 12500, 9500}
