//go:build otel

package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	otelruntime "go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log/global"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	serviceName = "go-nethttp"
	// flushGrace comes after shutdownGrace, and the contract allows two seconds for both.
	flushGrace = 500 * time.Millisecond
)

// logger passes records to the global provider, which drops them unless startLogs sets one.
var logger = otelslog.NewLogger(serviceName)

// telemetry records spans, metrics and logs, as configured by the variables OTEL_*.
type telemetry struct {
	stops []func(context.Context) error
}

func newTelemetry(ctx context.Context) (telemetry, error) {
	var t telemetry
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}))
	// The SDK for Go leaves this variable to the program. Instrumented code then calls the API's
	// default providers, which do nothing.
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return t, nil
	}
	origin, err := newResource(ctx)
	if err != nil {
		return t, err
	}
	err = errors.Join(
		t.startTraces(ctx, origin), t.startMetrics(ctx, origin), t.startLogs(ctx, origin))
	return t, err
}

// newResource describes the service. The environment, OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES, takes precedence.
func newResource(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", serviceName)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
}

// startTraces leaves the sampler to the SDK, which reads OTEL_TRACES_SAMPLER itself.
func (t *telemetry) startTraces(ctx context.Context, origin *resource.Resource) error {
	exporter, err := autoexport.NewSpanExporter(ctx, discardUnsentSpans()...)
	if err != nil {
		return err
	}
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(origin)}
	if !autoexport.IsNoneSpanExporter(exporter) {
		options = append(options, sdktrace.WithBatcher(exporter))
	}
	provider := sdktrace.NewTracerProvider(options...)
	otel.SetTracerProvider(provider)
	t.stops = append(t.stops, provider.Shutdown)
	return nil
}

func (t *telemetry) startMetrics(ctx context.Context, origin *resource.Resource) error {
	reader, err := autoexport.NewMetricReader(ctx, discardUnsentMetrics()...)
	if err != nil || autoexport.IsNoneMetricReader(reader) {
		return err
	}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(reader), sdkmetric.WithResource(origin))
	otel.SetMeterProvider(provider)
	t.stops = append(t.stops, provider.Shutdown)
	return otelruntime.Start(otelruntime.WithMeterProvider(provider))
}

func (t *telemetry) startLogs(ctx context.Context, origin *resource.Resource) error {
	exporter, err := autoexport.NewLogExporter(ctx, discardUnsentLogs()...)
	if err != nil || autoexport.IsNoneLogExporter(exporter) {
		return err
	}
	provider := sdklog.NewLoggerProvider(
		sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)), sdklog.WithResource(origin))
	global.SetLoggerProvider(provider)
	t.stops = append(t.stops, provider.Shutdown)
	return nil
}

// instrument also counts the requests of the endpoint hello, like the other services with a counter
// of their own.
func (t *telemetry) instrument(handler http.Handler) (http.Handler, error) {
	hellos, err := otel.Meter(serviceName).Int64Counter("hello.request.count",
		metric.WithDescription("Requests of the endpoint hello."),
		metric.WithUnit("{request}"))
	if err != nil {
		return nil, err
	}
	path := "/hello/" + mode
	// Made once, as the package metric advises: making a set of attributes allocates.
	endpoint := metric.WithAttributeSet(attribute.NewSet(attribute.String("endpoint", path)))
	count := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			hellos.Add(r.Context(), 1, endpoint)
		}
		handler.ServeHTTP(w, r)
	}
	return otelhttp.NewHandler(http.HandlerFunc(count), serviceName), nil
}

// stop sends the queued data within flushGrace. It reports losses on standard error, because they
// are no failure of the service.
func (t *telemetry) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), flushGrace)
	defer cancel()
	var failures error
	for _, stop := range t.stops {
		failures = errors.Join(failures, stop(ctx))
	}
	if failures != nil {
		otel.Handle(failures)
	}
}

// exportLog adds a line to the exported log; the context contains its trace.
func exportLog(ctx context.Context, line string) {
	logger.InfoContext(ctx, line)
}
