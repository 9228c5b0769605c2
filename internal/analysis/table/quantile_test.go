package table

import (
	"math"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
)

// TestPercentilesWithoutHistogram checks that a third-party tool's percentile is a number without
// an interval.
func TestPercentilesWithoutHistogram(t *testing.T) {
	check := func(name string, count, ns int64, want float64, refusal string) {
		t.Helper()
		d := record.Dist{Count: count, P99Ns: ns}
		p := Percentiles(&record.Load{ResponseTime: d, WindowNs: 10e9}, &d, 0.95)[2]
		same := p.Ns == want || math.IsNaN(want) && math.IsNaN(p.Ns)
		if p.Name != "p99" || !same || p.HasInterval() || p.Refusal("--measure", 10e9) != refusal ||
			p.Refused() != (refusal != "") {
			t.Errorf("%s: %+v, %q", name, p, p.Refusal("--measure", 10e9))
		}
	}
	check("enough", 381, 5e6, 5e6, "")
	check("not told", 381, 0, math.NaN(), "")
	// (381 + 3 sqrt(381))/380 x 10 s is 11.57 s.
	check("one too few", 380, 5e6, 5e6,
		"an interval needs n ≥ 381 independent responses; n was 380 (raise --measure to 12s)")
	check("none", 0, 0, math.NaN(), "an interval needs n ≥ 381 independent responses; n was 0")
}

func TestEnds(t *testing.T) {
	check := func(center, lo, hi float64, want string) {
		t.Helper()
		if got := units.Ends(center, lo, hi); got != want {
			t.Errorf("%v, %v to %v: %s, want %s", center, lo, hi, got, want)
		}
	}
	check(12.1e6, 11.8e6, 12.6e6, "[11.8, 12.6]")
	check(999e3, 990e3, 1.01e6, "[990, 1010]") // the centre is in µs, so are they
	check(1e9, 0.9e9, 12e9, "[0.90, 12.0]")
}

// TestWarmupMetrics checks the time to peak and the cost, if there is a steady state.
func TestWarmupMetrics(t *testing.T) {
	check := func(kind string, peak, cost float64, withheld string) {
		t.Helper()
		r := trial("a", 1, 1000)
		r.Warmup = record.Warmup{Kind: kind, PeakAtNs: 3e9, CostNs: 2e9}
		study := analyze([]record.Record{r}, Options{})
		for name, want := range map[string]float64{"time_to_peak": peak, "warmup_cost": cost} {
			m, ok := study.Scenarios[0].Targets[0].Metric("", name)
			got := m.Summary.Center
			same := got == want || math.IsNaN(want) && math.IsNaN(got)
			if !ok || !same || m.Withheld.String() != withheld || m.Unit != units.Ns {
				t.Errorf("%q: %s is %v %s (%s), wanted %v", kind, name, got, m.Unit, m.Withheld,
					want)
			}
		}
	}
	nan := math.NaN()
	const never = "in the only trial the service reached no steady state, or only because the " +
		"warm-up gave its compilers priority or more cores (in the suite, set warmup: " +
		"{compilers: equal, cores: own} and raise warmup.max)"
	check("warmed up", 3e9, 2e9, "")
	check("flat", 3e9, 2e9, "")
	check("never", nan, nan, never)
	check("", nan, nan, never)
}

// TestTooFewInSomeTrial reports the trial with the fewest responses.
func TestTooFewInSomeTrial(t *testing.T) {
	check := func(want string, counts ...int64) {
		t.Helper()
		var offered []offer
		for _, n := range counts {
			offered = append(offered, offer{load: &record.Load{WindowNs: 10e9,
				ResponseTime: record.Dist{Count: n}}})
		}
		if got := tooFew(0.99, offered, 0.95).String(); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
	// (381 + 3 sqrt(381))/380 x 10 s is 11.57 s.
	const few = "an interval needs n ≥ 381 responses in each trial; n was 380 (raise --measure " +
		"to 12s)"
	check("", 381, 382)
	check(few, 380, 500, 400)
	check(few, 500, 400, 380)
}
