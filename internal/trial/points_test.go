package trial_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/probe"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/record"
	"prony.example/stats"
)

// meter stores its calls, and their times.
type meter struct {
	w   *world
	got []telemetry.Own
}

func (m *meter) Points(_ context.Context, o telemetry.Own) {
	loads := map[string]bool{}
	for _, s := range o.Series {
		loads[s.Labels["load"]] = true
	}
	m.w.note("points of " + strings.Join(slices.Sorted(maps.Keys(loads)), " "))
	m.got = append(m.got, o)
}

// lines returns the values of all series, by name and the varying labels, with their times in ms
// from a moment.
func (m *meter) lines(from int64) map[string]string {
	out := map[string]string{}
	for _, o := range m.got {
		for _, s := range o.Series {
			name := s.Name
			for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
				if k != "load" && slices.Contains(telemetry.CommonLabels, k) || s.Labels[k] == "" {
					continue
				}
				name += " " + s.Labels[k]
			}
			var values []string
			for i, v := range s.Values {
				values = append(values, fmt.Sprintf("%d:%.6g", (s.WallNs[i]-from)/1e6, v))
			}
			if s.UntilNs != 0 {
				values = append(values, fmt.Sprintf("%d:end", (s.UntilNs-from)/1e6))
			}
			out[name] = strings.Join(values, " ")
		}
	}
	return out
}

// seen is a watcher whose samples are half a second apart: in the n-th, the service uses n tenths
// of a core, the lab a tenth, n MB and n threads.
type seen struct{ watcher }

func (*seen) Series() (s probe.Series) {
	for n := int64(1); n <= 20; n++ {
		s.TNs = append(s.TNs, n*5e8)
		s.CPUCores = append(s.CPUCores, float64(n)/10)
		s.LabCores = append(s.LabCores, 0.1)
		s.RSSBytes, s.Threads = append(s.RSSBytes, n*1e6), append(s.Threads, n)
		s.BusyShare, s.StealShare = append(s.BusyShare, 0.5), append(s.StealShare, -1)
	}
	return s
}

// detailed responds to a load of 2.4 s that opens 50 ms after its mark: of 1,000 requests due per
// second 950 succeed and 25 fail, and the n-th fifth of a second has one response, of n ms.
func (w *world) detailed(opened *int64) func(context.Context, load.Spec) (*load.Result, error) {
	return func(ctx context.Context, s load.Spec) (*load.Result, error) {
		if s.Name == "half" {
			s.Observer = load.Observers{s.Observer, load.WindowFunc(func(open bool) {
				if open {
					*opened = clock.Wall().UnixNano() + 50e6
				}
			})}
		}
		res, err := w.steadyLoad(ctx, s)
		if err != nil || s.Name != "half" {
			return res, err
		}
		l := &res.Load
		l.WindowOpenedUnixNs, l.WindowNs, l.Series.IntervalNs = *opened, 24e8, 2e8
		for n := range int64(12) {
			l.Series.Scheduled = append(l.Series.Scheduled, 200)
			l.Series.Sent = append(l.Series.Sent, 200)
			l.Series.Done = append(l.Series.Done, 190)
			l.Series.Failed = append(l.Series.Failed, 5)
			h := hdrhistogram.New(1, 1e10, 3)
			if err := h.RecordValue((n + 1) * 1e6); err != nil {
				w.t.Error(err)
			}
			res.Intervals = append(res.Intervals, load.Interval{Response: h,
				Offset: time.Duration(n * 2e8), Length: 2e8})
		}
		l.Scheduled, l.Sent, l.Errors.Status = 2400, 2400, 60
		trialtest.Answer(l, 2280)
		l.Lag = record.Dist{Count: 1, P50Ns: 1000, P99Ns: 2000, MaxNs: 3000}
		l.GC = &record.GC{AllocatedBytes: 4000, PauseNs: 24e6, HeapAfterBytes: -1}
		return res, nil
	}
}

// metered runs one trial with a meter and returns when the load "half" opened.
func (w *world) metered(role string) (m *meter, opened int64) {
	w.t.Helper()
	m = &meter{w: w}
	w.lab.Meter = m
	w.lab.Watch = func(launch.Process, time.Duration) (trial.Watcher, error) {
		return &seen{newWatcher(w)}, nil
	}
	w.offer = w.detailed(&opened)
	e := w.experiment("a")
	e.Plan.Trials[0].Role = role
	if _, err := w.run(context.Background(), e); err != nil {
		w.t.Fatal(err)
	}
	return m, opened
}

// The seconds of a load, each at the time at which it ended.
func TestSecondsOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, opened := newWorld(t).metered("")
		got := m.lines(opened)
		const window = "1000:%[1]g 2000:%[1]g 2400:%[1]g 3400:end"
		for name, want := range map[string]string{
			"prony_load_requests_per_second half due":      fmt.Sprintf(window, 1000.0),
			"prony_load_requests_per_second half answered": fmt.Sprintf(window, 950.0),
			"prony_load_requests_per_second half failed":   fmt.Sprintf(window, 25.0),
			// 5 · (200 - 195), and 2 in the last 0.4 s
			"prony_load_outstanding half": "1000:25 2000:50 2400:60 3400:end",
			// The middle of 1 to 5 ms, 6 to 10 ms, 11 and 12 ms, to three digits.
			"prony_load_latency_seconds half 0.5": "1000:0.00300032 2000:0.00800358 " +
				"2400:0.0110019 3400:end",
			"prony_load_latency_seconds half 1": "1000:0.00500121 2000:0.0100024 " +
				"2400:0.0120013 3400:end",
			"prony_generator_lag_seconds half 0.99": fmt.Sprintf(window, 2e-6),
			// The marks of the second load are at 6 and 8 s, its window opens at 6.05 s: samples 13
			// and 14 are in its first second, 15 and 16 in the next.
			"prony_service_cpu_cores half":      "1000:1.35 2000:1.55 3400:end",
			"prony_generator_cpu_cores half":    "1000:0.1 2000:0.1 3400:end",
			"prony_service_memory_bytes half":   "1000:1.4e+07 2000:1.6e+07 3400:end",
			"prony_service_threads half":        "1000:14 2000:16 3400:end",
			"prony_host_cpu_share half busy":    "1000:0.5 2000:0.5 3400:end",
			"prony_host_cpu_share half steal":   "",
			"prony_host_pressure_share half io": fmt.Sprintf(window, 0.0),
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %q", name, got[name], want)
			}
		}
		if t.Failed() {
			for _, name := range slices.Sorted(maps.Keys(got)) {
				t.Log(name, got[name])
			}
		}
	})
}

// All sent series are metrics of the lab with their labels, and plausible values.
func TestAllThatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m, _ := w.metered(record.Observed)
		var all []telemetry.Series
		for _, o := range m.got {
			all = append(all, o.Series...)
		}
		for _, s := range all {
			if err := s.Check(); err != nil {
				t.Error(err)
				continue
			}
			of := telemetry.Metrics[slices.IndexFunc(telemetry.Metrics,
				func(m telemetry.Metric) bool { return m.Name == s.Name })]
			want := slices.Sorted(slices.Values(slices.Concat(of.Labels, telemetry.CommonLabels)))
			if got := slices.Sorted(maps.Keys(s.Labels)); !slices.Equal(got, want) {
				t.Errorf("%s has the labels %q, want %q", s.Name, got, want)
			}
			if s.Labels["trial"] != "b1-01-a" || s.Labels["launcher"] != "process" ||
				s.Labels["role"] != record.Observed || s.Labels["scenario"] != "read" {
				t.Errorf("%s: %v", s.Name, s.Labels)
			}
		}
		got := m.lines(0)
		for name, want := range map[string]string{
			"prony_trial_verdict INVALID":                  "1",
			"prony_trial_throughput_per_second peak":       "1000",
			"prony_trial_latency_seconds peak 0.99":        "0.001",
			"prony_trial_error_share half":                 "0.025641", // 60 of 2,340 responses
			"prony_trial_allocated_bytes_per_request half": "1.7094",   // 4,000 bytes
			"prony_trial_gc_paused_share half":             "0.01",
			"prony_trial_heap_after_gc_bytes half":         "", // unknown
			"prony_trial_reason INVALID half order":        "1",
		} {
			if _, v, _ := strings.Cut(got[name], ":"); v != want {
				t.Errorf("%s is %q, want %q", name, v, want)
			}
		}
		if t.Failed() {
			for _, name := range slices.Sorted(maps.Keys(got)) {
				t.Log(name, got[name])
			}
		}
	})
}

// A trial of the comparison sends all at its end, other trials each load after its window; nothing
// is sent inside a window.
func TestWhenIsTold(t *testing.T) {
	for role, want := range map[string]string{
		"": "load warmup, load peak, load half, unwatch, stop b1-01-a, points of peak, " +
			"points of half, points of  half peak, record measured",
		record.Observed: "load warmup, load peak, points of peak, load half, " +
			"points of half, unwatch, stop b1-01-a, points of  half peak, record measured",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			m, _ := w.metered(role)
			var got []string
			for _, n := range w.notes {
				for _, what := range []string{"load", "points", "unwatch", "stop", "record"} {
					if strings.HasPrefix(n, what) {
						got = append(got, n)
					}
				}
			}
			if text := strings.Join(got, ", "); text != want {
				t.Errorf("role %q: %s\nwant %s", role, text, want)
			}
			last := m.got[len(m.got)-1]
			var marks []string
			for _, x := range last.Marks {
				marks = append(marks, x.Kind+" "+x.Name)
			}
			if text := strings.Join(marks, ", "); text != "phase launch, phase ready, "+
				"phase verify, phase warmup, phase warmup, phase measure, open peak, close peak, "+
				"open half, close half, phase reverify, phase stop" || last.Trial.Run == "" {
				t.Errorf("marks %s of %+v", text, last.Trial)
			}
		})
	}
}

// A collector that knows the trial receives its marks one by one, including those before its
// beginning, and without a request nothing is sent.
func TestMarksAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := &meter{w: w}
		w.lab.Home, w.lab.Meter = &listener{w: w}, m
		if _, err := w.run(context.Background(), w.watching("observe: {telemetry: true}\n",
			nil)); err != nil {
			t.Fatal(err)
		}
		begun := slices.IndexFunc(w.notes, func(n string) bool {
			return strings.HasPrefix(n, "begin")
		})
		if at := slices.Index(w.notes, "phase launch"); begun < 0 || at != begun+1 {
			t.Errorf("%q, want the phase launch right after the beginning", w.notes)
		}
		if n := len(m.got); n == 0 || len(m.got[n-1].Marks) != 0 {
			t.Errorf("%d times something was told, the marks again: %+v", n, m.got)
		}
	})
}

// A trial without anything to run also has a verdict, and no load.
func TestBrokenIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		m := &meter{w: w}
		w.lab.Meter = m
		e := w.experiment("a")
		e.Lacking["a"] = context.DeadlineExceeded
		if _, err := w.run(context.Background(), e); err != nil {
			t.Fatal(err)
		}
		got := m.lines(0)
		if len(m.got) != 1 || got["prony_trial_verdict INVALID"] == "" ||
			got["prony_trial_throughput_per_second"] != "" {
			t.Errorf("%v", got)
		}
	})
}

// The values of the table are sent in base units, except the withheld ones.
func TestResults(t *testing.T) {
	sum := func(lo, center, hi float64) stats.Summary {
		return stats.Summary{N: 3, Lo: lo, Center: center, Hi: hi}
	}
	none := math.NaN()
	m := &meter{got: []telemetry.Own{{Series: trial.Results(table.Study{
		Scenarios: []*table.Scenario{{Name: "read", Targets: []*table.Target{{
			Info: record.Target{Name: "a", Variant: "spy", Arm: "b", Driver: "wrk"},
			Metrics: []table.Metric{
				{Name: "p99", Load: "peak", Unit: "ns", Summary: sum(1e6, 2e6, 3e6)},
				{Name: "throughput", Load: "peak", Unit: "1/s", Summary: sum(none, 7, none)},
				{Name: "rss_max", Load: "peak", Unit: "B",
					Withheld: table.NoteOf(table.NoteNoTrial)},
			},
		}}}}}, "r", 5e9)}}}
	want := map[string]string{
		"prony_result low peak p99 seconds":              "5000:0.001",
		"prony_result median peak p99 seconds":           "5000:0.002",
		"prony_result high peak p99 seconds":             "5000:0.003",
		"prony_result median peak throughput per_second": "5000:7",
	}
	if got := m.lines(0); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if l := m.got[0].Series[0].Labels; l["arm"] != "spy by wrk b" || l["run"] != "r" ||
		l["target"] != "a" || l["scenario"] != "read" {
		t.Errorf("labels %v", l)
	}
	// Every metric of a run has a known unit.
	for _, s := range trial.Results(table.Analyze([]*record.Record{{Trial: "b1", Block: 1,
		Outcome: record.Measured, Scenario: "read", Target: record.Target{Name: "a"},
		Loads: []record.Load{{Name: "peak", Model: record.Closed, ThroughputPerS: 5}},
	}}, table.Options{}), "r", 1) {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
}
