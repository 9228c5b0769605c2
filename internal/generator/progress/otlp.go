package progress

import (
	"slices"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
)

const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

// otlp returns the message of a push. MetricsData replaces ExportMetricsServiceRequest, which has
// the same encoding but depends on an unneeded gateway to gRPC.
func (m *measures) otlp(with []*common.KeyValue) *metrics.MetricsData {
	about := append(attributes("prony.", m.about), attribute("service.name", "prony"))
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: slices.Concat(with, about)},
		ScopeMetrics: []*metrics.ScopeMetrics{{
			Scope: &common.InstrumentationScope{
				Name: "prony.example/internal/generator/progress",
			},
			Metrics: m.otlpMetrics(),
		}},
	}}}
}

func (m *measures) otlpMetrics() []*metrics.Metric {
	var out []*metrics.Metric
	for _, x := range m.metrics {
		var points []*metrics.NumberDataPoint
		for _, s := range x.samples {
			p := &metrics.NumberDataPoint{Attributes: attributes("", s.labels),
				StartTimeUnixNano: unixNs(m.began), TimeUnixNano: unixNs(m.now)}
			p.Value = &metrics.NumberDataPoint_AsDouble{AsDouble: s.value}
			if x.counter {
				p.Value = &metrics.NumberDataPoint_AsInt{AsInt: int64(s.value)}
			}
			points = append(points, p)
		}
		item := &metrics.Metric{Name: x.name, Description: x.help, Unit: x.unit,
			Data: &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: points}}}
		if x.counter {
			item.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: points, IsMonotonic: true,
				AggregationTemporality: cumulative}}
		}
		out = append(out, item)
	}
	return append(out, &metrics.Metric{Name: responseName, Description: responseHelp, Unit: "s",
		Data: &metrics.Metric_ExponentialHistogram{
			ExponentialHistogram: &metrics.ExponentialHistogram{
				AggregationTemporality: cumulative,
				DataPoints:             []*metrics.ExponentialHistogramDataPoint{m.exponential()},
			},
		}})
}

// attributes converts pairs of name and value, with a prefix for names.
func attributes(prefix string, items []string) (out []*common.KeyValue) {
	for pair := range slices.Chunk(items, 2) {
		out = append(out, attribute(prefix+pair[0], pair[1]))
	}
	return out
}

func attribute(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{
		Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func unixNs(t time.Time) uint64 { return uint64(t.UnixNano()) }

// exponential returns a data point with OpenTelemetry's buckets: bucket i begins above 2^(i/8) s.
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
