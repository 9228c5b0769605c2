package tsdb

import (
	"context"
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// mine returns Prony's own gauge of a trial, at some moments before noon.
func mine(trial string, before ...time.Duration) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "prony")
	ms := rm.ScopeMetrics().AppendEmpty().Metrics()
	for i, d := range before {
		gauge(ms, "prony_load_latency_seconds", at(-d), float64(i+1), "trial", trial)
	}
	return md
}

// Prony's own metrics arrive long after the services' metrics of the same time. They are stored,
// and not counted as received.
func TestOwnComesLate(t *testing.T) {
	s := open(t, Options{})
	two(t, s) // up to noon
	before := s.Stats()
	dropped, err := s.ConsumeOwn(context.Background(),
		mine("b1-01", 61*time.Minute, 50*time.Minute, 49*time.Minute, 30*time.Second))
	if err != nil || !maps.Equal(dropped, map[string]int64{DropOld: 1}) {
		t.Errorf("dropped %v, %v; want one that is old", dropped, err)
	}
	after := s.Stats()
	if after.Samples != before.Samples || len(after.Dropped) != 0 {
		t.Errorf("%+v, want %d samples and none dropped", after, before.Samples)
	}
	for when, want := range map[time.Duration]float64{49 * time.Minute: 3, 50 * time.Minute: 2,
		30 * time.Second: 4} {
		answersAt(t, s, `sum (prony_load_latency_seconds{service_name="prony"})`, noon.Add(-when),
			map[string]float64{`{}`: want})
	}
}

// A query of one trial skips Prony's own metrics of other trials, but not a service's label with
// that name, or series without a trial.
func TestOwnOfOneTrial(t *testing.T) {
	s := open(t, Options{})
	for _, trial := range []string{"", "b1-01", "b1-02"} {
		if _, err := s.ConsumeOwn(context.Background(), mine(trial, time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	md := pmetric.NewMetrics()
	gauge(resource(md, "shop", "b1-01"), "jobs", at(-time.Second), 7, "trial", "free")
	consume(t, s, md)
	for id, want := range map[string]float64{"": 3, "b1-01": 2, "b1-09": 1} {
		a, err := s.Query(context.Background(), "count(prony_load_latency_seconds)",
			Window{To: noon, Trial: id})
		if err != nil || len(a.Rows) != 1 || a.Rows[0].Last != want {
			t.Errorf("trial %q: %+v, %v; want %g series", id, a.Rows, err, want)
		}
	}
	a, err := s.Query(context.Background(), "jobs", Window{To: noon, Trial: "b1-01"})
	if err != nil || len(a.Rows) != 1 || a.Rows[0].Last != 7 {
		t.Errorf("jobs: %+v, %v", a.Rows, err)
	}
}
