package spanstore

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/telemetry/traces"
)

// Names of the span metrics, as in the OpenTelemetry Collector's spanmetrics connector; in
// Prometheus traces_span_metrics_calls_total and traces_span_metrics_duration_milliseconds.
const (
	CallsName    = "traces.span.metrics.calls"
	DurationName = "traces.span.metrics.duration"
)

// other replaces names of services and spans beyond the limits.
const other = "other"

// seriesKey distinguishes series of calls.
type seriesKey struct {
	service, name string
	kind          ptrace.SpanKind
	status        ptrace.StatusCode
}

type series struct {
	calls   int64
	sumNs   float64
	minNs   int64
	maxNs   int64
	buckets []uint64 // one more than traces.Bounds
}

// callMetrics are the span metrics of one trial.
type callMetrics struct {
	limit    int // of series, without those of other
	sinceNs  int64
	series   map[seriesKey]*series
	services map[string]bool
}

func newMetrics(limit int, sinceNs int64) *callMetrics {
	return &callMetrics{limit: limit, sinceNs: sinceNs, series: map[seriesKey]*series{},
		services: map[string]bool{}}
}

// maxServices limits the services; with kinds and statuses it bounds the series of other.
const maxServices = 64

func (m *callMetrics) add(s ptrace.Span, service string) {
	key := seriesKey{service, s.Name(), s.Kind(), s.Status().Code()}
	v := m.series[key]
	if v == nil {
		v = m.open(key)
	}
	ns := duration(s)
	if v.calls == 0 {
		v.minNs = ns
	}
	v.calls++
	v.sumNs += float64(ns)
	v.minNs, v.maxNs = min(v.minNs, ns), max(v.maxNs, ns)
	at, _ := slices.BinarySearch(traces.Bounds, float64(ns)/1e6)
	v.buckets[at]++
}

// open makes a series, or returns one of other if there are too many. It copies and cuts names,
// which may have any length.
func (m *callMetrics) open(key seriesKey) *series {
	key.kind = max(0, min(key.kind, ptrace.SpanKindConsumer))
	key.status = max(0, min(key.status, ptrace.StatusCodeError))
	key.service = traces.CutText(strings.Clone(key.service), traces.MaxNameBytes)
	key.name = traces.CutText(strings.Clone(key.name), traces.MaxNameBytes)
	if !m.services[key.service] && len(m.services) >= maxServices {
		key.service = other
	}
	if m.series[key] == nil && len(m.series) >= m.limit || key.service == other {
		key.name = other
	}
	m.services[key.service] = true
	v := m.series[key]
	if v == nil {
		v = &series{buckets: make([]uint64, len(traces.Bounds)+1)}
		m.series[key] = v
	}
	return v
}

// keys returns the keys in order, so that equal counts give equal messages.
func (m *callMetrics) keys() []seriesKey {
	return slices.SortedFunc(maps.Keys(m.series), func(a, b seriesKey) int {
		return cmp.Or(cmp.Compare(a.service, b.service), cmp.Compare(a.name, b.name),
			cmp.Compare(a.kind, b.kind), cmp.Compare(a.status, b.status))
	})
}

// write appends the metrics as cumulative sums and histograms, with a resource for each service.
func (m *callMetrics) write(out pmetric.Metrics, trial, target string, nowNs int64) {
	var calls pmetric.NumberDataPointSlice
	var histograms pmetric.HistogramDataPointSlice
	last := ""
	for i, k := range m.keys() {
		if i == 0 || k.service != last {
			last = k.service
			calls, histograms = resource(out, k.service, trial, target)
		}
		v := m.series[k]
		p := calls.AppendEmpty()
		p.SetIntValue(v.calls)
		p.SetStartTimestamp(pcommon.Timestamp(m.sinceNs))
		p.SetTimestamp(pcommon.Timestamp(nowNs))
		k.describe(p.Attributes())
		h := histograms.AppendEmpty()
		h.SetStartTimestamp(pcommon.Timestamp(m.sinceNs))
		h.SetTimestamp(pcommon.Timestamp(nowNs))
		h.SetCount(uint64(v.calls))
		h.SetSum(v.sumNs / 1e6)
		h.SetMin(float64(v.minNs) / 1e6)
		h.SetMax(float64(v.maxNs) / 1e6)
		h.ExplicitBounds().FromRaw(traces.Bounds)
		h.BucketCounts().FromRaw(v.buckets)
		k.describe(h.Attributes())
	}
}

func resource(out pmetric.Metrics, service, trial, target string) (pmetric.NumberDataPointSlice,
	pmetric.HistogramDataPointSlice) {
	r := out.ResourceMetrics().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", service)
	if trial != "" {
		r.Resource().Attributes().PutStr(traces.TrialAttribute, trial)
		r.Resource().Attributes().PutStr(traces.TargetAttribute, target)
	}
	scope := r.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName("prony/spanmetrics")
	calls := scope.Metrics().AppendEmpty()
	calls.SetName(CallsName)
	sum := calls.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	durations := scope.Metrics().AppendEmpty()
	durations.SetName(DurationName)
	durations.SetUnit("ms")
	histogram := durations.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return sum.DataPoints(), histogram.DataPoints()
}

// describe sets the attributes as the connector does.
func (k seriesKey) describe(m pcommon.Map) {
	m.PutStr("service.name", k.service)
	m.PutStr("span.name", k.name)
	m.PutStr("span.kind", "SPAN_KIND_"+strings.ToUpper(k.kind.String()))
	m.PutStr("status.code", "STATUS_CODE_"+strings.ToUpper(k.status.String()))
}

func (m *callMetrics) lines(t *trial, nowNs int64) (out []traces.Calls) {
	for _, k := range m.keys() {
		v := m.series[k]
		out = append(out, traces.Calls{
			Trial: t.ID, Target: t.Target, FromNs: m.sinceNs, ToNs: nowNs, Service: k.service,
			Name: k.name, Kind: traces.Kind(int32(k.kind)),
			Status: traces.Status(int32(k.status)), Calls: v.calls, SumNs: int64(v.sumNs),
			MinNs: v.minNs, MaxNs: v.maxNs, Buckets: v.buckets,
		})
	}
	return out
}
