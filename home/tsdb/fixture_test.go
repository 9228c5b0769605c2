package tsdb

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// noon is the present time in the tests, so that nothing depends on the day.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) pcommon.Timestamp { return pcommon.NewTimestampFromTime(noon.Add(d)) }

// open opens a store in a new folder, at noon.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	return openIn(t, t.TempDir(), o)
}

func openIn(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// resource begins the metrics of one service.
func resource(md pmetric.Metrics, service, trial string) pmetric.MetricSlice {
	rm := md.ResourceMetrics().AppendEmpty()
	a := rm.Resource().Attributes()
	a.PutStr("service.name", service)
	a.PutStr("service.instance.id", service+"-1")
	a.PutStr("telemetry.sdk.language", "java")
	a.PutStr("process.runtime.version", "25.0.1")
	a.PutStr("prony.trial", trial)
	a.PutStr("prony.target", service+"/virtual")
	a.PutStr("prony.variant", "otel-java")
	return rm.ScopeMetrics().AppendEmpty().Metrics()
}

func consume(t testing.TB, s *Store, md pmetric.Metrics) {
	t.Helper()
	if err := s.ConsumeMetrics(context.Background(), md); err != nil {
		t.Fatal(err)
	}
}

const mib = 1 << 20

// java adds the metrics of the OpenTelemetry Java agent 2.x: names and units of the semantic
// conventions. step counts the exports: counters are step times their rate.
func java(ms pmetric.MetricSlice, ts pcommon.Timestamp, step int) {
	h := ms.AppendEmpty()
	h.SetName("http.server.request.duration")
	h.SetUnit("s")
	h.SetDescription("Duration of HTTP server requests.")
	eh := h.SetEmptyHistogram()
	eh.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := eh.DataPoints().AppendEmpty()
	p.SetTimestamp(ts)
	p.Attributes().PutStr("http.request.method", "GET")
	p.Attributes().PutInt("http.response.status_code", 200)
	p.Attributes().PutStr("http.route", "/hello")
	p.ExplicitBounds().FromRaw([]float64{0.005, 0.01, 0.025})
	n := uint64(step)
	p.BucketCounts().FromRaw([]uint64{100 * n, 50 * n, 40 * n, 10 * n})
	p.SetCount(200 * n)
	p.SetSum(2 * float64(step))
	e := p.Exemplars().AppendEmpty()
	e.SetTimestamp(ts)
	e.SetDoubleValue(0.007)
	e.SetTraceID(pcommon.TraceID{15: 1})
	for _, m := range []struct {
		name string
		mib  [3]int64 // by pool
	}{
		{"jvm.memory.used", [3]int64{30, 50, 20}},
		{"jvm.memory.committed", [3]int64{64, 128, 24}},
		{"jvm.memory.used_after_last_gc", [3]int64{0, 40, -1}},
	} {
		memory(ms, ts, m.name, m.mib)
	}
}

var pools = [3][2]string{
	{"heap", "G1 Eden Space"}, {"heap", "G1 Old Gen"}, {"non_heap", "Metaspace"},
}

// memory adds a metric with a point for each pool, except for sizes below 0, which mean no point.
func memory(ms pmetric.MetricSlice, ts pcommon.Timestamp, name string, sizes [3]int64) {
	m := ms.AppendEmpty()
	m.SetName(name)
	m.SetUnit("By")
	m.SetDescription("Measure of memory.")
	sum := m.SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i, pool := range pools {
		if sizes[i] < 0 {
			continue
		}
		p := sum.DataPoints().AppendEmpty()
		p.SetTimestamp(ts)
		p.SetIntValue(sizes[i] * mib)
		p.Attributes().PutStr("jvm.memory.type", pool[0])
		p.Attributes().PutStr("jvm.memory.pool.name", pool[1])
	}
}

// counter adds a monotonic sum of one point.
func counter(ms pmetric.MetricSlice, name string, ts pcommon.Timestamp, v int64,
	attrs ...string) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetTimestamp(ts)
	p.SetIntValue(v)
	for i := 0; i < len(attrs); i += 2 {
		p.Attributes().PutStr(attrs[i], attrs[i+1])
	}
	return m
}

// gauge adds one point of a gauge.
func gauge(ms pmetric.MetricSlice, name string, ts pcommon.Timestamp, v float64,
	attrs ...string) {
	m := ms.AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(ts)
	p.SetDoubleValue(v)
	for i := 0; i < len(attrs); i += 2 {
		p.Attributes().PutStr(attrs[i], attrs[i+1])
	}
}

// put sends one point of a gauge, from a sender without a name.
func put(t testing.TB, s *Store, when time.Duration, name string, v float64, attrs ...string) {
	t.Helper()
	md := pmetric.NewMetrics()
	gauge(md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics(), name,
		at(when), v, attrs...)
	consume(t, s, md)
}

// two sends a run of two trials, one service each, with an export every 10 s up to noon.
func two(t testing.TB, s *Store) {
	t.Helper()
	for step := range 4 {
		ts := at(time.Duration(step-3) * 10 * time.Second)
		md := pmetric.NewMetrics()
		ms := resource(md, "spring-jvm", "b1-01")
		java(ms, ts, step)
		counter(ms, "spring.request.count", ts, int64(10*step), "endpoint", "/hello/virtual")
		ms = resource(md, "quarkus-jvm", "b1-02")
		java(ms, ts, 2*step)
		counter(ms, "quarkus.request.count", ts, int64(20*step), "endpoint", "/hello/reactive")
		consume(t, s, md)
	}
}

// answers checks an instant query at noon: want has a row's labels in braces and its number.
func answers(t testing.TB, s *Store, query string, want map[string]float64) {
	t.Helper()
	answersAt(t, s, query, noon, want)
}

func answersAt(t testing.TB, s *Store, query string, when time.Time, want map[string]float64) {
	t.Helper()
	a, err := s.Query(context.Background(), query, Window{To: when})
	if err != nil {
		t.Error(err)
		return
	}
	got := map[string]float64{}
	for _, r := range a.Rows {
		b := labels.NewBuilder(r.Labels)
		a.Common.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
		got[r.Name+b.Labels().String()] = r.Last
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d: %v", query, len(got), len(want), got)
	}
	for name, v := range want {
		g, ok := got[name]
		if !ok || math.Abs(g-v) > 1e-9*math.Abs(v) && !(math.IsNaN(g) && math.IsNaN(v)) {
			t.Errorf("%s: %s is %v (there: %v), want %v; all: %v", query, name, g, ok, v, got)
		}
	}
}
