package metric_test

import (
	"math"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// whole returns a record with a load of 2 s in which 900 requests were good and 100 failed.
func whole() (*record.Record, *record.Load) {
	return &record.Record{
			Start: record.Start{ListenNs: 1e6, ReadyNs: 2e6, FirstResponseNs: 3e6,
				RSSBytes: 30 << 20},
			Warmup: record.Warmup{Kind: stats.Warmed, Steady: true, DurationNs: 9e9,
				SteadyAtNs: 4e9, PeakAtNs: 3e9, CostNs: 1e9},
			Artifact: record.Artifact{SizeBytes: 7, ImageBytes: 8},
		}, &record.Load{
			Model: record.Closed, WindowNs: 2e9, ThroughputPerS: 450, Scheduled: 1000, Done: 900,
			Errors: record.Errors{Status: 100},
			Service: record.Usage{CPUPerRequestNs: 20e3, CPUNs: 3e9, WindowNs: 2e9,
				RSSMaxBytes: 64 << 20, ThreadsMax: 7,
				Roles: &record.Roles{CompilerNs: 0.3e9, GCNs: 0.6e9}},
			Generator:     record.Gen{CPUPerRequestNs: 5e3},
			Telemetry:     &record.WindowTelemetry{WindowNs: 4e9, Spans: 6000},
			ResponseTime:  record.Dist{MeanNs: 1e6, MaxNs: 9e6},
			WithoutStalls: &record.WithoutStalls{PerS: 500},
			Host:          record.Host{EnergyJ: 1.8},
			BackendCalls: []record.BackendCalls{{Count: 900, IntervalNs: 1e9},
				{Count: 450, IntervalNs: 2e9}},
			Lag: record.Dist{Count: 1, P99Ns: 3e6}, OwnLag: record.Dist{Count: 1, P99Ns: 2e6},
			GC: &record.GC{AllocatedBytes: 5000, HeapAfterBytes: 1 << 20, PauseNs: 0.1e9,
				PauseMaxNs: 4e6},
			Search: &record.Search{RatePerS: 400},
		}
}

// TestValues checks the value of every metric in one record.
func TestValues(t *testing.T) {
	want := map[string]float64{
		metric.Throughput: 450, metric.Achieved: 0.9, metric.Capacity: 400, "error_share": 0.1,
		metric.CPU: 20e3, metric.RSS: 64 << 20, "generator_cpu_per_request": 5e3, "mean": 1e6,
		"max": 9e6, "requests": 900, metric.ThroughputWithoutStalls: 500, "cpu_used": 1.5,
		"threads_max": 7, "compiler_share": 0.1, "gc_share": 0.2, "energy_per_request": 0.002,
		"backend_calls_per_response": 2.5, // 1,800 and 450 in 2 s
		"lag_p99":                    3e6, "own_lag_p99": 2e6, metric.Allocated: 5,
		metric.HeapAfterGC: 1 << 20, metric.GCPaused: 0.05, metric.GCPauseMax: 4e6,
		metric.SpansEach: 3, // 6,000 in 4 s at 500/s
		"listen":         1e6, metric.Ready: 2e6, "first_response": 3e6, "idle_rss": 30 << 20,
		metric.SteadyAt: 4e9, metric.TimeToPeak: 3e9, metric.WarmupCost: 1e9, "artifact_size": 7,
		"image_size": 8,
	}
	r, l := whole()
	for _, m := range metric.All {
		if m.Quantile > 0 {
			continue
		}
		if got := m.Value(r, l); !(math.Abs(got-want[m.Name]) <= 1e-9*want[m.Name]) {
			t.Errorf("%s is %v, want %v", m.Name, got, want[m.Name])
		}
	}
}

// TestUnknownValues checks what makes a value unknown.
func TestUnknownValues(t *testing.T) {
	check := func(name string, known bool, change func(*record.Record, *record.Load)) {
		t.Helper()
		r, l := whole()
		change(r, l)
		if got := metric.Named(name, "").Value(r, l); math.IsNaN(got) == known {
			t.Errorf("%s is %v, want it known: %v", name, got, known)
		}
	}
	type (
		rec = *record.Record
		ld  = *record.Load
	)
	check(metric.Achieved, false, func(_ rec, l ld) { l.Done, l.Scheduled = 0, 0 })
	check(metric.Capacity, false, func(_ rec, l ld) { l.Search.Reason = "a bound" })
	check(metric.Capacity, false, func(_ rec, l ld) { l.Search = nil })
	check(metric.ThroughputWithoutStalls, false, func(_ rec, l ld) { l.WithoutStalls = nil })
	check(metric.ThroughputWithoutStalls, false, func(_ rec, l ld) {
		l.WithoutStalls.Unknown = stats.StallsDepend
	})
	for _, role := range []string{"compiler_share", "gc_share"} {
		check(role, false, func(_ rec, l ld) { l.Service.Roles = nil })
		check(role, false, func(_ rec, l ld) { l.Service.CPUNs = 0 })
		check(role, false, func(_ rec, l ld) { l.Service.Roles.CompilerOrGCNs = 1 })
		check(role, true, func(_ rec, l ld) { *l.Service.Roles = record.Roles{} })
	}
	const calls = "backend_calls_per_response"
	check(calls, false, func(_ rec, l ld) { l.BackendCalls = nil })
	check(calls, false, func(_ rec, l ld) { l.BackendCalls[1].Error = "it is gone" })
	check(calls, false, func(_ rec, l ld) { l.BackendCalls[0].IntervalNs = 0 })
	check(calls, false, func(_ rec, l ld) { l.Done = 0 })
	check("lag_p99", false, func(_ rec, l ld) { l.Lag.Count = 0 })
	check(metric.Allocated, false, func(_ rec, l ld) { l.GC = nil })
	check(metric.Allocated, false, func(_ rec, l ld) { l.GC.AllocatedBytes = -1 })
	check(metric.SpansEach, false, func(_ rec, l ld) { l.Telemetry.WindowNs = 0 })
	check(metric.SpansEach, false, func(_ rec, l ld) { l.Telemetry = nil })
	for _, name := range []string{"mean", "max"} { // an open load must be answered by 99 %
		check(name, true, func(_ rec, l ld) { l.Model, l.Done = record.Open, 990 })
		check(name, false, func(_ rec, l ld) { l.Model, l.Done = record.Open, 989 })
		check(name, true, func(_ rec, l ld) { l.Done = 989 })
	}
	check(metric.SteadyAt, false, func(r rec, _ ld) { r.Warmup.Steady = false })
	check(metric.SteadyAt, true, func(r rec, _ ld) { r.Warmup.Kind = "" })
	check(metric.SteadyAt, true, func(r rec, _ ld) { r.Target.URL = "http://a" })
	check(metric.SteadyAt, false, func(r rec, _ ld) {
		r.Target.URL, r.Warmup.DurationNs = "http://a", 0
	})
	for _, name := range []string{metric.SteadyAt, metric.TimeToPeak, metric.WarmupCost} {
		check(name, false, func(r rec, _ ld) { r.Warmup.Kind = stats.Unsteady })
		check(name, false, func(r rec, _ ld) { r.Warmup.Cores = []int{1} })
		check(name, false, func(r rec, _ ld) { r.Warmup.PrioritizedThreads = 1 })
		check(name, false, func(r rec, _ ld) { r.Warmup.ReconnectedAtNs = 1 })
		check(name, name == metric.SteadyAt, func(r rec, _ ld) { r.Warmup.Kind = "" })
	}
}

// TestValuesOfSlices checks the values from which ratios between targets of a start are computed.
func TestValuesOfSlices(t *testing.T) {
	check := func(name string, want float64, s record.Sliced) {
		t.Helper()
		got := metric.Named(name, "").Slices(&s)
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s of %+v is %v, want %v", name, s, got, want)
		}
	}
	check(metric.Throughput, 50, record.Sliced{Requests: 100, TimeNs: 2e9})
	check(metric.Throughput, math.NaN(), record.Sliced{Requests: 100, TimeNs: 2e9, RatePerS: 50})
	check(metric.Throughput, math.NaN(), record.Sliced{Requests: 100})
	check(metric.CPU, 50, record.Sliced{Requests: 100, CPUNs: 5000})
	check(metric.CPU, math.NaN(), record.Sliced{Requests: 100, CPUNs: -1})
	check(metric.CPU, math.NaN(), record.Sliced{CPUNs: 5000})
	check("mean", 7, record.Sliced{ResponseTime: record.Dist{MeanNs: 7}})
}

func TestUnknownMetrics(t *testing.T) {
	for base, higher := range map[string]bool{units.PerS: true, units.Ns: false, "B": false} {
		m := metric.Named("my_own", base)
		faster := base != "B"
		if m.Higher != higher || (m.Better == "faster") != faster || m.Label != "my own" {
			t.Errorf("%s: %+v", base, m)
		}
	}
	for x, want := range map[float64][2]bool{-1: {}, 0: {true, false}, 1: {true, true},
		math.Inf(1): {true, false}} {
		got := [2]bool{!math.IsNaN(metric.Known(x)), !math.IsNaN(metric.Positive(x))}
		if got != want {
			t.Errorf("%v: %v, want %v", x, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	check := func(want string, cpu int64, r *record.Roles) {
		t.Helper()
		if got := metric.Split(record.Usage{CPUNs: cpu, Roles: r}); got != want {
			t.Errorf("%d ns, %+v: %q, want %q", cpu, r, got, want)
		}
	}
	check("", 100, nil)
	check("", 0, &record.Roles{})
	check("91 % service, 6 % compiler, 3 % collector", 100, &record.Roles{CompilerNs: 6, GCNs: 3})
	check("0 % service, 60 % compiler, 50 % collector", 100,
		&record.Roles{CompilerNs: 60, GCNs: 50})
	check("96 % service, 4 % compiler or collector", 100, &record.Roles{CompilerOrGCNs: 4})
}
