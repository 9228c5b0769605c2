package traces

import (
	"maps"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	c := Calls{Calls: 10, MinNs: 60_000, MaxNs: 250_000, Buckets: make([]uint64, len(Bounds)+1)}
	c.Buckets[1], c.Buckets[3] = 4, 6 // 0.05 to 0.1 ms, 0.2 to 0.3 ms
	for _, row := range []struct {
		q    float64
		want int64
	}{
		{0, 60_000},   // the minimum
		{.2, 80_000},  // 2 of 4 between 60 (the least) and 100 µs
		{.4, 100_000}, // all 4
		{.7, 225_000}, // 3 of 6 between 200 and 250 µs (the greatest)
		{1, 250_000},
	} {
		if got := c.Quantile(row.q); got != row.want {
			t.Errorf("%g: %d, want %d", row.q, got, row.want)
		}
	}
}

func TestOperations(t *testing.T) {
	buckets := func(at, n int) []uint64 {
		b := make([]uint64, len(Bounds)+1)
		b[at] = uint64(n)
		return b
	}
	calls := []*Calls{
		{Trial: "a", ToNs: 4e9, Service: "web", Name: "x", Kind: "server", Calls: 6, MinNs: 1e6,
			MaxNs: 1e6, Buckets: buckets(6, 6)},
		{Trial: "a", ToNs: 4e9, Service: "web", Name: "x", Kind: "server", Status: "error",
			Calls: 2, MinNs: 1e6, MaxNs: 1e6, Buckets: buckets(6, 2)},
		{Trial: "b", FromNs: 1e9, ToNs: 2e9, Service: "web", Name: "x", Kind: "server", Calls: 2,
			MinNs: 1e6, MaxNs: 1e6, Buckets: buckets(6, 2)},
	}
	// 10 calls in 4 s and 1 s.
	want := []Operation{{"web", "x", "server", 10, 2, 2, 1e6, 1e6}}
	if got := Metered(calls); !slices.Equal(got, want) || calls[0].Calls != 6 {
		t.Errorf("%+v, want %+v", got, want)
	}
	trace := &Trace{}
	for i := range 100 {
		trace.Spans = append(trace.Spans, Span{Service: "web", Name: "x",
			DurationNs: int64(100 - i)})
	}
	trace.Spans[0].Status = "error"
	// By nearest rank of 1 to 100.
	want = []Operation{{"web", "x", "", 100, 1, -1, 50, 99}}
	if got := Sampled([]*Trace{trace}); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Rates are per second of the trials of the targets that have the service: other targets of a run
// have trials of their own.
func TestMeteredPerTarget(t *testing.T) {
	buckets := make([]uint64, len(Bounds)+1)
	of := func(trial, target, service string, seconds, calls int64) *Calls {
		return &Calls{Trial: trial, Target: target, ToNs: seconds * 1e9, Service: service,
			Name: "x", Kind: "server", Calls: calls, Buckets: buckets}
	}
	got := Metered([]*Calls{of("1", "a", "web", 4, 40), of("2", "a", "web", 6, 60),
		of("3", "b", "api", 10, 500), of("1", "a", "db", 4, 20)})
	rates := map[string]float64{}
	for _, o := range got {
		rates[o.Service] = o.PerS
	}
	// In trial 2, a had no call of db.
	if want := map[string]float64{"web": 10, "api": 50, "db": 2}; !maps.Equal(rates, want) {
		t.Errorf("%v, want %v", rates, want)
	}
}
