//go:build otel

package main

import (
	"context"
	"errors"
	"os"
	"time"

	fiberotel "github.com/gofiber/contrib/v3/otel"
	"github.com/gofiber/fiber/v3"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// flushGrace comes after shutdownGrace, and the contract allows two seconds for both.
const flushGrace = 500 * time.Millisecond

// telemetry records spans and metrics, and sends them where OTEL_EXPORTER_OTLP_ENDPOINT says.
type telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	hellos  metric.Int64Counter
}

func newTelemetry(ctx context.Context) (telemetry, error) {
	spans, numbers, err := newExporters(ctx)
	if err != nil {
		return telemetry{}, err
	}
	origin, err := newResource(ctx)
	if err != nil {
		return telemetry{}, err
	}
	t := telemetry{
		traces: sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(spans),
			sdktrace.WithResource(origin),
		),
		metrics: sdkmetric.NewMeterProvider(
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numbers)),
			sdkmetric.WithResource(origin),
		),
	}
	t.hellos, err = t.metrics.Meter("go-fiber").Int64Counter("hello.request.count",
		metric.WithDescription("Requests of the endpoint hello."),
		metric.WithUnit("{request}"))
	if err != nil {
		return telemetry{}, err
	}
	otel.SetTracerProvider(t.traces)
	otel.SetMeterProvider(t.metrics)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}))
	return t, nil
}

// newResource lets the environment, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, have the last
// word.
func newResource(ctx context.Context) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "go-fiber")),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
}

func newExporters(ctx context.Context) (sdktrace.SpanExporter, sdkmetric.Exporter, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return discardSpans{}, discardMetrics{}, nil
	}
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, nil, err
	}
	numbers, err := otlpmetrichttp.New(ctx)
	return spans, numbers, err
}

// instrument comes before the routes, because Fiber runs handlers in the order of registration.
func (t telemetry) instrument(app *fiber.App) {
	app.Use(fiberotel.Middleware())

	path := "/hello/" + mode
	// Made once, as the package metric advises: making a set of attributes allocates.
	endpoint := metric.WithAttributeSet(attribute.NewSet(attribute.String("endpoint", path)))
	app.Get(path, func(c fiber.Ctx) error {
		t.hellos.Add(c.Context(), 1, endpoint)
		return c.Next()
	})
}

// stop sends what is still queued, as far as that can be done in time. What is lost is said on
// standard error; the service itself has not failed.
func (t telemetry) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), flushGrace)
	defer cancel()
	if err := errors.Join(t.traces.Shutdown(ctx), t.metrics.Shutdown(ctx)); err != nil {
		otel.Handle(err)
	}
}
