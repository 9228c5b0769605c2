package live

import (
	"slices"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"

	"prony/internal/load"
)

const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// otlp makes the message of a push. MetricsData stands for ExportMetricsServiceRequest, which is
// the same on the wire and comes with a gateway to gRPC that nobody here needs.
func (m *measures) otlp(with []*common.KeyValue) *metrics.MetricsData {
	attributes := slices.Concat(with, []*common.KeyValue{attribute("prony.engine", m.engine),
		attribute("prony.model", m.model), attribute("prony.target", m.target),
		attribute("service.name", "prony")})
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: attributes},
		ScopeMetrics: []*metrics.ScopeMetrics{{
			Scope:   &common.InstrumentationScope{Name: "prony/internal/live"},
			Metrics: m.otlpMetrics(),
		}},
	}}}
}

func (m *measures) otlpMetrics() []*metrics.Metric {
	var out []*metrics.Metric
	sum := func(name, help, unit string, points ...*metrics.NumberDataPoint) {
		out = append(out, &metrics.Metric{Name: name, Description: help, Unit: unit,
			Data: &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: points, IsMonotonic: true,
				AggregationTemporality: cumulative}}})
	}
	gauge := func(name, help, unit string, points ...*metrics.NumberDataPoint) {
		out = append(out, &metrics.Metric{Name: name, Description: help, Unit: unit,
			Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}})
	}
	for _, x := range counters {
		sum(x.otel, x.help, x.unit, m.count(x.of(&m.totals)))
	}
	var failed []*metrics.NumberDataPoint
	for i, class := range load.ClassNames {
		failed = append(failed, m.count(m.totals.Errors[i], attribute("class", class)))
	}
	sum(failedOtel, failedHelp, "{request}", failed...)
	for _, x := range gauges {
		gauge(x.otel, x.help, x.unit, m.value(x.of(m)))
	}
	var lag []*metrics.NumberDataPoint
	for i, q := range lagNames {
		if m.lagNs[i] > 0 {
			lag = append(lag, m.value(inSeconds(float64(m.lagNs[i])), attribute("quantile", q)))
		}
	}
	if len(lag) > 0 {
		gauge(lagOtel, lagHelp, "s", lag...)
	}
	return append(out, &metrics.Metric{Name: responseOtel, Description: responseHelp, Unit: "s",
		Data: &metrics.Metric_ExponentialHistogram{
			ExponentialHistogram: &metrics.ExponentialHistogram{
				AggregationTemporality: cumulative,
				DataPoints:             []*metrics.ExponentialHistogramDataPoint{m.exponential()},
			},
		}})
}

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{
		Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func (m *measures) point(labels []*common.KeyValue) *metrics.NumberDataPoint {
	return &metrics.NumberDataPoint{
		Attributes: labels, StartTimeUnixNano: unixNs(m.began), TimeUnixNano: unixNs(m.now),
	}
}

func (m *measures) count(n int64, labels ...*common.KeyValue) *metrics.NumberDataPoint {
	p := m.point(labels)
	p.Value = &metrics.NumberDataPoint_AsInt{AsInt: n}
	return p
}

func (m *measures) value(v float64, labels ...*common.KeyValue) *metrics.NumberDataPoint {
	p := m.point(labels)
	p.Value = &metrics.NumberDataPoint_AsDouble{AsDouble: v}
	return p
}

func unixNs(t time.Time) uint64 { return uint64(t.UnixNano()) }

// exponential has OpenTelemetry's buckets: number i begins where Prometheus' number i ends.
func (m *measures) exponential() *metrics.ExponentialHistogramDataPoint {
	t := &m.response
	sum := inSeconds(t.sumNs)
	p := &metrics.ExponentialHistogramDataPoint{
		StartTimeUnixNano: unixNs(m.began), TimeUnixNano: unixNs(m.now), Count: uint64(t.count),
		Sum: &sum, Scale: schema,
	}
	if t.count == 0 {
		return p
	}
	largest := inSeconds(float64(t.maxNs))
	p.Max = &largest
	low, high := eighthsBuckets, 0
	for i, n := range t.eighths {
		if n > 0 {
			low, high = min(low, i), i
		}
	}
	p.Positive = &metrics.ExponentialHistogramDataPoint_Buckets{
		Offset: int32(low + eighthsFrom - 1),
	}
	for _, n := range t.eighths[low : high+1] {
		p.Positive.BucketCounts = append(p.Positive.BucketCounts, uint64(n))
	}
	return p
}
