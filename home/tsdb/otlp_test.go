package tsdb

import (
	"context"
	"maps"
	"math"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Published queries for such services work unchanged: those of the benchmark
// "Observability-Benchmarking" (section "Interesting Metrics" of its README), on the metrics of the
// present Java agent.
func TestQueriesAsPrinted(t *testing.T) {
	s := open(t, Options{})
	two(t, s)
	const spring, quarkus = `service_name="spring-jvm"`, `service_name="quarkus-jvm"`
	for _, row := range []struct {
		query string
		want  map[string]float64
	}{
		// The last export is step 3: 200 · 3, and 200 · 2 · 3.
		{`sum by (service_name) (http_server_request_duration_seconds_count)`,
			map[string]float64{`{` + spring + `}`: 600, `{` + quarkus + `}`: 1200}},
		// 200 requests in 10 s, and twice as many: exact, as the window's edges are samples.
		{`sum by (service_name) (rate(http_server_request_duration_seconds_count[30s]))`,
			map[string]float64{`{` + spring + `}`: 20, `{` + quarkus + `}`: 40}},
		{`sum by (endpoint) (spring_request_count_total)`,
			map[string]float64{`{endpoint="/hello/virtual"}`: 30}},
		{`sum by (endpoint) (quarkus_request_count_total)`,
			map[string]float64{`{endpoint="/hello/reactive"}`: 60}},
		{`sum by (jvm_memory_pool_name, area) (jvm_memory_used_bytes) / 1024 / 1024`,
			map[string]float64{ // of two services: 2 · 30, 2 · 50, 2 · 20
				`{area="heap", jvm_memory_pool_name="G1 Eden Space"}`: 60,
				`{area="heap", jvm_memory_pool_name="G1 Old Gen"}`:    100,
				`{area="nonheap", jvm_memory_pool_name="Metaspace"}`:  40}},
		{`sum by (jvm_memory_type) (jvm_memory_used_bytes{` + spring + `}) / 1024 / 1024`,
			map[string]float64{`{jvm_memory_type="heap"}`: 80, `{jvm_memory_type="non_heap"}`: 20}},
		{`max by (jvm_memory_pool_name) (jvm_memory_used_after_last_gc_bytes)`,
			map[string]float64{`{jvm_memory_pool_name="G1 Eden Space"}`: 0,
				`{jvm_memory_pool_name="G1 Old Gen"}`: 40 * mib}},
		// (64 - 30) + (128 - 50) + (24 - 20) = 116
		{`sum by (service_name) (jvm_memory_committed_bytes - jvm_memory_used_bytes)` +
			` / 1024 / 1024`,
			map[string]float64{`{` + spring + `}`: 116, `{` + quarkus + `}`: 116}},
		{`count by (prony_trial, prony_target, prony_variant, telemetry_sdk_language) ` +
			`(spring_request_count_total)`,
			map[string]float64{`{prony_target="spring-jvm/virtual", prony_trial="b1-01", ` +
				`prony_variant="otel-java", telemetry_sdk_language="java"}`: 1}},
		// A subquery without a step has a point a second.
		{`max_over_time(sum(spring_request_count_total)[10s:])`, map[string]float64{`{}`: 30}},
		{`count_over_time(sum(spring_request_count_total)[10s:])`, map[string]float64{`{}`: 10}},
		{`count by (process_runtime_version) (target_info)`,
			map[string]float64{`{process_runtime_version="25.0.1"}`: 2}},
	} {
		answers(t, s, row.query, row.want)
	}
	if d := s.Stats().Dropped; len(d) > 0 {
		t.Errorf("dropped %v", d)
	}
}

// A quantile of a classic histogram is linear inside its bucket (Prometheus' documentation of
// histogram_quantile). Step 3 has 300, 150, 120 and 30 up to 5, 10, 25 ms and above, 600 in all.
func TestQuantiles(t *testing.T) {
	s := open(t, Options{})
	two(t, s)
	for q, want := range map[string]float64{
		"0.25": 0.0025, // rank 150 of 300 in the first: 5 ms · 150/300
		"0.5":  0.005,  // rank 300, the end of the first
		"0.6":  0.007,  // rank 360, 60 of 150 into the second: 5 + 5 · 60/150
		"0.9":  0.02125,
		// rank 540, 90 of 120 into the third: 10 + 15 · 90/120 = 21.25
		"0.99": 0.025, // rank 594 lies above the last bound: the answer is that bound
	} {
		answers(t, s, `histogram_quantile(`+q+`, sum by (le, service_name) `+
			`(http_server_request_duration_seconds_bucket{service_name="spring-jvm"}))`,
			map[string]float64{`{service_name="spring-jvm"}`: want})
	}
}

// Exponential histograms are stored as native ones. Scale 0 has buckets (1, 2], (2, 4], (4, 8] from
// offset 0 on; 10, 20 and 10 in them.
func TestExponentialHistogramsBecomeNative(t *testing.T) {
	s := open(t, Options{})
	md := pmetric.NewMetrics()
	m := resource(md, "go", "b1-01").AppendEmpty()
	m.SetName("rpc.duration")
	m.SetUnit("s")
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetTimestamp(at(0))
	p.Positive().BucketCounts().FromRaw([]uint64{10, 20, 10})
	p.SetCount(40)
	p.SetSum(120)
	consume(t, s, md)
	row := func(query string, want float64) {
		t.Helper()
		answers(t, s, `sum without (instance, job, prony_target, prony_trial, prony_variant, `+
			`service_instance_id, service_name, telemetry_sdk_language) (`+query+`)`,
			map[string]float64{`{}`: want})
	}
	row(`histogram_count(rpc_duration_seconds)`, 40)
	row(`histogram_avg(rpc_duration_seconds)`, 3) // 120 / 40
	// Rank 20 is the middle of (2, 4]. Inside a bucket, values are assumed to be spread evenly on a
	// logarithmic scale: 2 · (4/2)^0.5.
	row(`histogram_quantile(0.5, rpc_duration_seconds)`, 2*math.Sqrt2)
}

// Deltas are summed up: 5, then 7, then 1 more are 5, 12 and 13.
func TestDeltasAreSummedUp(t *testing.T) {
	s := open(t, Options{})
	send := func(after time.Duration, v int64) {
		md := pmetric.NewMetrics()
		m := counter(resource(md, "node", "b1-01"), "jobs", at(after), v)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		m.Sum().DataPoints().At(0).SetStartTimestamp(at(-time.Minute))
		consume(t, s, md)
		if got := m.Sum().DataPoints().At(0).IntValue(); got != v {
			t.Errorf("the sender's own point is %d now, was %d", got, v)
		}
	}
	for i, v := range []int64{5, 7, 1} {
		send(time.Duration(i-3)*10*time.Second, v)
	}
	send(-20*time.Second, 100) // again: it does not follow the last one
	answers(t, s, `sum(jobs_total)`, map[string]float64{`{}`: 13})
	answersAt(t, s, `sum(jobs_total)`, noon.Add(-20*time.Second), map[string]float64{`{}`: 12})
	wantDropped(t, s, map[string]int64{DropDelta: 1})
}

func wantDropped(t testing.TB, s *Store, want map[string]int64) {
	t.Helper()
	got := s.Stats().Dropped
	maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("dropped %v, want %v", got, want)
	}
}

// Invalid data is counted, and neither stored nor reported as an error.
func TestWhatIsWrongIsCounted(t *testing.T) {
	for _, row := range []struct {
		name string
		fill func(pmetric.MetricSlice)
		want map[string]int64
	}{
		{"in two minutes", func(ms pmetric.MetricSlice) {
			gauge(ms, "x", at(2*time.Minute), 1)
		}, map[string]int64{DropFuture: 1}},
		{"in 50 years", func(ms pmetric.MetricSlice) {
			gauge(ms, "x", math.MaxUint64, 1)
		}, map[string]int64{DropFuture: 1}},
		{"no time at all", func(ms pmetric.MetricSlice) { // which means 1970
			gauge(ms, "x", 0, 1)
		}, map[string]int64{DropOld: 1}},
		{"two hours ago, all types", func(ms pmetric.MetricSlice) {
			old := at(-2 * time.Hour)
			gauge(ms, "x", old, 1)
			counter(ms, "y", old, 1)
			java(ms, old, 1) // one histogram, and 3 + 3 + 2 pools
			m := ms.AppendEmpty()
			m.SetName("x")
			m.SetEmptySummary().DataPoints().AppendEmpty().SetTimestamp(old)
			m = ms.AppendEmpty()
			m.SetName("y")
			h := m.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			h.DataPoints().AppendEmpty().SetTimestamp(old)
		}, map[string]int64{DropOld: 2 + 1 + 8 + 2}},
		{"another value for the same moment", func(ms pmetric.MetricSlice) {
			gauge(ms, "good", at(0), 2)
		}, map[string]int64{DropDuplicate: 1}},
		{"temporality unsaid", func(ms pmetric.MetricSlice) {
			counter(ms, "x", at(0), 1).Sum().SetAggregationTemporality(0)
		}, map[string]int64{DropUntranslatable: 1}},
		{"no name", func(ms pmetric.MetricSlice) { gauge(ms, "", at(0), 1) },
			map[string]int64{DropUntranslatable: 1}},
		{"no data", func(ms pmetric.MetricSlice) { ms.AppendEmpty().SetName("x") },
			map[string]int64{DropUntranslatable: 1}},
		{"a label of 5 kB", func(ms pmetric.MetricSlice) {
			gauge(ms, "x", at(0), 1, "l", string(make([]byte, 5<<10)))
		}, map[string]int64{DropLabels: 1}},
		{"buckets that do not add up", func(ms pmetric.MetricSlice) {
			m := ms.AppendEmpty()
			m.SetName("x")
			h := m.SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(at(0))
			p.Positive().BucketCounts().FromRaw([]uint64{1, 2})
			p.SetCount(7)
		}, map[string]int64{DropInvalid: 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := open(t, Options{})
			md := pmetric.NewMetrics()
			gauge(resource(md, "go", "b1-01"), "good", at(0), 1)
			consume(t, s, md)
			md = pmetric.NewMetrics()
			ms := resource(md, "go", "b1-01")
			row.fill(ms)
			gauge(ms, "also", at(0), 2)
			md.MarkReadOnly() // as if shared with other consumers
			consume(t, s, md)
			wantDropped(t, s, row.want)
			answers(t, s, `sum(good) + sum(also)`, map[string]float64{`{}`: 3})
			answers(t, s, `{__name__=~"x.*|y.*"}`, nil)
		})
	}
}

// Samples may arrive in any order within the allowed time, and are dropped beyond it.
func TestOutOfOrder(t *testing.T) {
	s := open(t, Options{OutOfOrder: 10 * time.Minute})
	for _, after := range []time.Duration{0, -9 * time.Minute, -11 * time.Minute} {
		md := pmetric.NewMetrics()
		gauge(resource(md, "go", "b1-01"), "x", at(after), after.Minutes())
		consume(t, s, md)
	}
	answers(t, s, `max(x)`, map[string]float64{`{}`: 0})
	answersAt(t, s, `max(x)`, noon.Add(-8*time.Minute), map[string]float64{`{}`: -9})
	// The sample of x and that of target_info.
	wantDropped(t, s, map[string]int64{DropOld: 2})
}

// NaN and infinities are stored, and do not hide the other values.
func TestNotFinite(t *testing.T) {
	s := open(t, Options{})
	for i, v := range []float64{1, math.NaN(), math.Inf(1), math.Inf(-1), 3} {
		md := pmetric.NewMetrics()
		gauge(resource(md, "go", "b1-01"), "x", at(time.Duration(i-4)*time.Second), v)
		consume(t, s, md)
	}
	a, err := s.Query(context.Background(), "x",
		Window{From: noon.Add(-4 * time.Second), To: noon, Step: time.Second})
	if err != nil || len(a.Rows) != 1 {
		t.Fatal(err, a)
	}
	r := a.Rows[0]
	if len(r.Points) != 5 || !math.IsNaN(r.Points[1].Value) || !math.IsInf(r.Points[2].Value, 1) {
		t.Errorf("points %v", r.Points)
	}
	if r.Min != 1 || r.Mean != 2 || r.Max != 3 || r.Last != 3 { // of 1 and 3
		t.Errorf("min %g, mean %g, max %g, last %g", r.Min, r.Mean, r.Max, r.Last)
	}
	if r.Spark != "▁   █" {
		t.Errorf("spark %q", r.Spark)
	}
}

func TestSummaryAndSpark(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, row := range []struct {
		values          []float64
		low, mean, high float64
		spark           string
	}{
		{nil, nan, nan, nan, ""},
		{[]float64{nan, inf}, nan, nan, nan, "  "},
		{[]float64{7}, 7, 7, 7, "▁"},
		{[]float64{2, 2}, 2, 2, 2, "▁▁"},
		{[]float64{1, 2, 6}, 1, 3, 6, "▁▂█"}, // (2-1)/(6-1) · 7 = 1.4
		{[]float64{-math.MaxFloat64, 0, math.MaxFloat64}, -math.MaxFloat64, 0, math.MaxFloat64,
			"▁▅█"}, // 1/2 · 7 = 3.5, rounded up
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64, math.MaxFloat64,
			math.MaxFloat64, "▁▁"},
		{[]float64{0, math.SmallestNonzeroFloat64}, 0, 0, math.SmallestNonzeroFloat64, "▁▁"},
		// Five values in three blocks: 1, 2 and 3, 4 and 5, of means 1, 2.5, 4.5; 1.5/3.5 · 7 = 3.
		{[]float64{1, 2, 3, 4, 5}, 1, 3, 5, "▁▄█"},
	} {
		low, mean, high := summary(row.values)
		for _, pair := range [][2]float64{{low, row.low}, {mean, row.mean}, {high, row.high}} {
			if pair[0] != pair[1] && !(math.IsNaN(pair[0]) && math.IsNaN(pair[1])) {
				t.Errorf("%v: %g, %g, %g", row.values, low, mean, high)
			}
		}
		if got := spark(row.values, 3); got != row.spark {
			t.Errorf("%v: %q, want %q", row.values, got, row.spark)
		}
	}
}

// A trial's series end with it: the next trial's queries do not return them during the lookback of
// five minutes, and a series may begin again.
func TestTrialsEnd(t *testing.T) {
	s := open(t, Options{})
	two(t, s)
	before := s.Stats()
	answers(t, s, `count(jvm_memory_used_bytes)`, map[string]float64{`{}`: 6})
	if err := s.EndTrial(noon.Add(time.Second), "b1-01"); err != nil {
		t.Fatal(err)
	}
	later := noon.Add(2 * time.Second)
	answersAt(t, s, `count by (prony_trial) (jvm_memory_used_bytes)`, later,
		map[string]float64{`{prony_trial="b1-02"}`: 3})
	answers(t, s, `count(jvm_memory_used_bytes)`, map[string]float64{`{}`: 6})
	if after := s.Stats(); after.Samples != before.Samples || after.Series != before.Series {
		t.Errorf("markers count as samples: %+v, before %+v", after, before)
	}
}

// NoRecordedValue marks the end of a series in OTLP.
func TestNoRecordedValue(t *testing.T) {
	s := open(t, Options{})
	md := pmetric.NewMetrics()
	gauge(resource(md, "go", "b1-01"), "x", at(-time.Second), 1)
	consume(t, s, md)
	answersAt(t, s, `sum(x)`, noon.Add(-time.Second), map[string]float64{`{}`: 1})
	md = pmetric.NewMetrics()
	gauge(resource(md, "go", "b1-01"), "x", at(0), 0)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).
		SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	consume(t, s, md)
	answers(t, s, `sum(x)`, nil)
}

// A cancelled request stores nothing and returns an error.
func TestCancelled(t *testing.T) {
	s := open(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	md := pmetric.NewMetrics()
	ms := resource(md, "go", "b1-01")
	for range 300 { // the translator checks the context from time to time
		gauge(ms, "x", at(0), 1)
	}
	if err := s.ConsumeMetrics(ctx, md); err == nil {
		t.Error("no error")
	}
	if n := s.Stats().Samples; n != 0 {
		t.Errorf("%d samples", n)
	}
	answers(t, s, `x`, nil)
}
