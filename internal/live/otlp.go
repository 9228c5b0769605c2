package live

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"prony/internal/load"
)

// A push must be over before the next is due. One that failed is not repeated: the next one, whose
// counters are cumulative, tells all that it would have told.
const (
	pushEvery   = time.Second
	pushTimeout = 900 * time.Millisecond
)

// pusher pushes what a view has measured to a receiver of OTLP.
type pusher struct {
	endpoint string
	provider *metric.MeterProvider

	mu     sync.Mutex
	pushed int64
	failed int64
	first  error
}

// startPushes begins to push. The endpoint's scheme says how: http or https for protobuf over HTTP,
// grpc or grpcs for gRPC without and with TLS. Nothing is sent to find out whether anybody listens.
func startPushes(endpoint string, measure func() measures) (*pusher, error) {
	exporter, err := newExporter(endpoint)
	if err != nil {
		return nil, fmt.Errorf("push metrics to %q: %w", endpoint, err)
	}
	p := &pusher{endpoint: endpoint}
	// What the library would print, it prints in the middle of the page.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(p.note))
	first := measure()
	reader := metric.NewPeriodicReader(&counting{exporter, p}, metric.WithInterval(pushEvery),
		metric.WithTimeout(pushTimeout), metric.WithProducer(producer{measure}))
	p.provider = metric.NewMeterProvider(metric.WithReader(reader),
		metric.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "prony"),
			attribute.String("prony.target", first.target),
			attribute.String("prony.model", first.model),
			attribute.String("prony.engine", first.engine),
		)))
	return p, nil
}

func newExporter(endpoint string) (metric.Exporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, errors.New("want an endpoint such as http://127.0.0.1:4318")
	}
	ctx := context.Background() // neither connects before it pushes
	switch u.Scheme {
	case "http", "https":
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/metrics"
		}
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(u.String()),
			otlpmetrichttp.WithTimeout(pushTimeout),
			otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	case "grpc", "grpcs":
		options := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(u.Host),
			otlpmetricgrpc.WithTimeout(pushTimeout),
			otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{})}
		if u.Scheme == "grpc" {
			options = append(options, otlpmetricgrpc.WithInsecure())
		}
		return otlpmetricgrpc.New(ctx, options...)
	}
	return nil, fmt.Errorf("%s is no scheme of OTLP; there are http, https, grpc and grpcs",
		u.Scheme)
}

// counting is an exporter whose failures are counted instead of told each.
type counting struct {
	metric.Exporter
	pusher *pusher
}

func (c *counting) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	err := c.Exporter.Export(ctx, m)
	c.pusher.mu.Lock()
	c.pusher.pushed++
	c.pusher.mu.Unlock()
	if err != nil {
		c.pusher.note(err)
	}
	return nil
}

func (p *pusher) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	if p.first == nil {
		p.first = err
	}
}

func (p *pusher) failures() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// close pushes a last time and tells what went wrong.
func (p *pusher) close() error {
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := p.provider.Shutdown(ctx) // repeats what the last push came to, or is of another kind
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == 0 && err != nil {
		return fmt.Errorf("end the pushes to %s: %w", p.endpoint, err)
	}
	if p.failed == 0 {
		return nil
	}
	return fmt.Errorf("push metrics to %s: %d of %d pushes failed, the first one: %w", p.endpoint,
		p.failed, p.pushed, p.first)
}

// producer makes OTLP metrics of measures when a push is due.
type producer struct{ measure func() measures }

func (p producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	m := p.measure()
	return []metricdata.ScopeMetrics{{
		Scope: instrumentation.Scope{Name: "prony/internal/live"}, Metrics: m.otlp(),
	}}, nil
}

func (m *measures) otlp() []metricdata.Metrics {
	var out []metricdata.Metrics
	sum := func(name, help, unit string, points ...metricdata.DataPoint[int64]) {
		out = append(out, metricdata.Metrics{Name: name, Description: help, Unit: unit,
			Data: metricdata.Sum[int64]{DataPoints: points, IsMonotonic: true,
				Temporality: metricdata.CumulativeTemporality}})
	}
	gauge := func(name, help, unit string, points ...metricdata.DataPoint[float64]) {
		out = append(out, metricdata.Metrics{Name: name, Description: help, Unit: unit,
			Data: metricdata.Gauge[float64]{DataPoints: points}})
	}
	for _, x := range counters {
		sum(x.otel, x.help, x.unit, at(m, x.of(&m.totals)))
	}
	var failed []metricdata.DataPoint[int64]
	for i, class := range load.ClassNames {
		failed = append(failed, at(m, m.totals.Errors[i], attribute.String("class", class)))
	}
	sum(failedOtel, failedHelp, "{request}", failed...)
	for _, x := range gauges {
		gauge(x.otel, x.help, x.unit, at(m, x.of(m)))
	}
	var lag []metricdata.DataPoint[float64]
	for i, q := range lagNames {
		if m.lagNs[i] > 0 {
			lag = append(lag, at(m, inSeconds(float64(m.lagNs[i])),
				attribute.String("quantile", q)))
		}
	}
	if len(lag) > 0 {
		gauge(lagOtel, lagHelp, "s", lag...)
	}
	return append(out, metricdata.Metrics{Name: responseOtel, Description: responseHelp, Unit: "s",
		Data: metricdata.ExponentialHistogram[float64]{
			Temporality: metricdata.CumulativeTemporality,
			DataPoints:  []metricdata.ExponentialHistogramDataPoint[float64]{m.exponential()},
		}})
}

func at[N int64 | float64](m *measures, v N, labels ...attribute.KeyValue) metricdata.DataPoint[N] {
	return metricdata.DataPoint[N]{
		Attributes: attribute.NewSet(labels...), StartTime: m.began, Time: m.now, Value: v,
	}
}

// exponential has OpenTelemetry's buckets: number i begins where Prometheus' number i ends.
func (m *measures) exponential() metricdata.ExponentialHistogramDataPoint[float64] {
	t := &m.response
	p := metricdata.ExponentialHistogramDataPoint[float64]{
		StartTime: m.began, Time: m.now, Count: uint64(t.count), Sum: inSeconds(t.sumNs),
		Scale: schema,
	}
	if t.count == 0 {
		return p
	}
	p.Max = metricdata.NewExtrema(inSeconds(float64(t.maxNs)))
	low, high := eighthsBuckets, 0
	for i, n := range t.eighths {
		if n > 0 {
			low, high = min(low, i), i
		}
	}
	p.PositiveBucket.Offset = int32(low + eighthsFrom - 1)
	for _, n := range t.eighths[low : high+1] {
		p.PositiveBucket.Counts = append(p.PositiveBucket.Counts, uint64(n))
	}
	return p
}
