//go:build otel

package main

import (
	"context"
	"os"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Without an exporter or endpoint in the environment, the SDK would send to port 4318 of this
// machine, on which usually no program listens. These exporters discard the data instead, so that
// the service does all the work except encoding and sending.

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

type discardLogs struct{}

func (discardLogs) Export(context.Context, []sdklog.Record) error { return nil }

func (discardLogs) ForceFlush(context.Context) error { return nil }

func (discardLogs) Shutdown(context.Context) error { return nil }

func discardUnsentSpans() []autoexport.SpanOption {
	if hasEndpoint("TRACES") {
		return nil
	}
	return []autoexport.SpanOption{autoexport.WithFallbackSpanExporter(
		func(context.Context) (sdktrace.SpanExporter, error) { return discardSpans{}, nil },
	)}
}

func discardUnsentMetrics() []autoexport.MetricOption {
	if hasEndpoint("METRICS") {
		return nil
	}
	return []autoexport.MetricOption{autoexport.WithFallbackMetricReader(
		func(context.Context) (sdkmetric.Reader, error) {
			return sdkmetric.NewPeriodicReader(discardMetrics{}), nil
		},
	)}
}

func discardUnsentLogs() []autoexport.LogOption {
	if hasEndpoint("LOGS") {
		return nil
	}
	return []autoexport.LogOption{autoexport.WithFallbackLogExporter(
		func(context.Context) (sdklog.Exporter, error) { return discardLogs{}, nil },
	)}
}

func hasEndpoint(signal string) bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
		os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}
