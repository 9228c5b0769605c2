package verdict

import (
	"math"
	"testing"

	"prony.example/record"
)

// Without a histogram, ranks are interpolated between the record's percentiles.
func TestRanksWithoutHistogram(t *testing.T) {
	r := ranks{d: &record.Dist{Count: 1000, MinNs: 10, P50Ns: 100, P90Ns: 300, P99Ns: 1200,
		P999Ns: 1290, MaxNs: 2290}}
	for q, want := range map[float64]float64{-1: 10, 0: 10, 0.25: 55, 0.5: 100, 0.7: 200, 0.9: 300,
		0.96: 900, 0.99: 1200, 0.995: 1250, 0.9995: 1790, 1: 2290, 2: 2290} {
		if got := r.at(q); math.Abs(got-want) > 1e-6 {
			t.Errorf("rank %v: %v, want %v", q, got, want)
		}
	}
	if got := r.above(0.9, 240); math.Abs(got-0.2) > 1e-9 || r.above(0.9, 301) != 0 {
		t.Errorf("p90 is above 240 by %v, above 301 by %v", got, r.above(0.9, 301))
	}
}

// A percentile is withheld if so many requests have no response that it may be one of them.
func TestWithheldByCensored(t *testing.T) {
	for _, x := range []struct {
		name     string
		censored int64
		want     bool
	}{{"p99", 99, false}, {"p99", 101, true}, {"p50", 4999, false}, {"p50", 5000, true},
		{"p50", 0, false}, {"throughput", 9999, false}} {
		l := &record.Load{Censored: x.censored,
			ResponseTime:    record.Dist{Count: 10_000 - x.censored},
			Autocorrelation: record.Autocorrelation{Samples: 10_000, EffectiveShare: 1}}
		if got := withheldIn(l, x.name); got != x.want {
			t.Errorf("%s with %d without a response: %v", x.name, x.censored, got)
		}
	}
}
