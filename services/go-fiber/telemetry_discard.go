//go:build otel

package main

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Without an exporter the SDK records nothing: a batch processor drops spans, a provider without
// a reader drops measurements. These two take what they are given, so that a service that sends
// nothing does all the work but encoding and sending.

type discardSpans struct{}

func (discardSpans) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

func (discardSpans) Shutdown(context.Context) error { return nil }

type discardMetrics struct{}

func (discardMetrics) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

func (discardMetrics) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

func (discardMetrics) Export(context.Context, *metricdata.ResourceMetrics) error { return nil }

func (discardMetrics) ForceFlush(context.Context) error { return nil }

func (discardMetrics) Shutdown(context.Context) error { return nil }
