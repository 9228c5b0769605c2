// Package forward sends received telemetry to another OTLP endpoint, such as an OpenTelemetry
// Collector or Grafana's stack. It uses the OpenTelemetry Collector's exporters, with a bounded
// queue and retries, so that a slow or dead endpoint does not affect the sender.
//
// Non-goals: it blocks no caller; it drops and counts items that do not fit into its queue.
package forward

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/telemetry"
	"prony.example/record"
)

const (
	queueBytes = 16 << 20         // for each signal
	senders    = 2                // for each signal except metrics
	timeout    = 5 * time.Second  // of one request
	retrying   = 30 * time.Second // for one request, which then fails
)

// Forward sends to one endpoint. It is safe for concurrent use. A nil Forward sends nothing.
type Forward struct {
	endpoint string // without a password
	reader   *sdkmetric.ManualReader
	provider *sdkmetric.MeterProvider
	traces   exporter.Traces
	metrics  exporter.Metrics
	logs     exporter.Logs
}

// Start prepares sending to an endpoint: http://HOST:PORT or https://… for OTLP over HTTP (to
// /v1/traces and so on below it), grpc://HOST:PORT or grpcs://… for OTLP over gRPC. It does not
// wait for a connection.
func Start(ctx context.Context, endpoint string) (*Forward, error) {
	factory, cfg, err := config(endpoint, senders)
	if err != nil {
		return nil, err
	}
	// One at a time: a database may refuse a sample that is older than the last one of its series.
	_, inOrder, err := config(endpoint, 1)
	if err != nil {
		return nil, err
	}
	f := &Forward{endpoint: cmdlog.Hush(endpoint), reader: sdkmetric.NewManualReader()}
	f.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	set := exporter.Settings{
		ID: component.NewID(factory.Type()), BuildInfo: component.NewDefaultBuildInfo(),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	set.MeterProvider = f.provider
	var errs [3]error
	f.traces, errs[0] = factory.CreateTraces(ctx, set, cfg)
	f.metrics, errs[1] = factory.CreateMetrics(ctx, set, inOrder)
	f.logs, errs[2] = factory.CreateLogs(ctx, set, cfg)
	err = errors.Join(errs[:]...)
	host := componenttest.NewNopHost()
	for _, part := range f.parts() {
		if err == nil {
			err = part.Start(ctx, host)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("forward telemetry to %s: %w", f.endpoint, err)
	}
	return f, nil
}

func (f *Forward) parts() []component.Component {
	return []component.Component{f.traces, f.metrics, f.logs}
}

func config(endpoint string, senders int) (exporter.Factory, component.Config, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("forward telemetry to %q: the value is not an endpoint; "+
			"write http://HOST:4318, https://HOST or grpc://HOST:4317", cmdlog.Hush(endpoint))
	}
	queue := exporterhelper.NewDefaultQueueConfig()
	queue.Sizer, queue.QueueSize = exporterhelper.RequestSizerTypeBytes, queueBytes
	queue.NumConsumers = senders
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval, retry.MaxElapsedTime = time.Second, retrying
	switch u.Scheme {
	case "http", "https":
		factory := otlphttpexporter.NewFactory()
		cfg := factory.CreateDefaultConfig().(*otlphttpexporter.Config)
		cfg.ClientConfig.Endpoint = strings.TrimSuffix(endpoint, "/")
		cfg.ClientConfig.Timeout = timeout
		cfg.QueueConfig, cfg.RetryConfig = configoptional.Some(queue), retry
		return factory, cfg, nil
	case "grpc", "grpcs":
		factory := otlpexporter.NewFactory()
		cfg := factory.CreateDefaultConfig().(*otlpexporter.Config)
		cfg.ClientConfig.Endpoint = u.Host
		cfg.ClientConfig.TLS.Insecure = u.Scheme == "grpc"
		cfg.TimeoutConfig.Timeout = timeout
		cfg.QueueConfig, cfg.RetryConfig = configoptional.Some(queue), retry
		return factory, cfg, nil
	}
	return nil, nil, fmt.Errorf("forward telemetry to %q: the scheme %q is not supported; write "+
		"http, https, grpc or grpcs", cmdlog.Hush(endpoint), u.Scheme)
}

// Traces sends a copy, so that the caller may change its own. It returns no error because the only
// one is a full queue, which Counts reports.
func (f *Forward) Traces(ctx context.Context, d ptrace.Traces) {
	if f != nil {
		send(ctx, d, ptrace.NewTraces(), f.traces.ConsumeTraces)
	}
}

// Metrics is like Traces.
func (f *Forward) Metrics(ctx context.Context, d pmetric.Metrics) {
	if f != nil {
		send(ctx, d, pmetric.NewMetrics(), f.metrics.ConsumeMetrics)
	}
}

// Logs is like Traces.
func (f *Forward) Logs(ctx context.Context, d plog.Logs) {
	if f != nil {
		send(ctx, d, plog.NewLogs(), f.logs.ConsumeLogs)
	}
}

func send[D interface{ CopyTo(D) }](ctx context.Context, d, own D,
	to func(context.Context, D) error) {
	d.CopyTo(own)
	_ = to(context.WithoutCancel(ctx), own) // counted, see Traces
}

// items are the names of the signals in the exporters' own metrics.
var items = []struct{ signal, name string }{
	{record.Logs, "log_records"}, {record.Points, "metric_points"}, {record.Spans, "spans"},
}

// Counts returns the exporters' counts of items by signal.
func (f *Forward) Counts(ctx context.Context) ([]telemetry.Forwarded, error) {
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(ctx, &all); err != nil {
		return nil, fmt.Errorf("count the data forwarded to %s: %w", f.endpoint, err)
	}
	sums := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				for _, p := range sum.DataPoints {
					sums[m.Name] += p.Value
				}
			}
		}
	}
	var out []telemetry.Forwarded
	for _, i := range items {
		out = append(out, telemetry.Forwarded{
			Signal:  i.signal,
			Sent:    sums["otelcol_exporter_sent_"+i.name],
			Failed:  sums["otelcol_exporter_send_failed_"+i.name],
			Dropped: sums["otelcol_exporter_enqueue_failed_"+i.name],
		})
	}
	return out, nil
}

// Close sends what is queued, each item once more, until ctx ends.
func (f *Forward) Close(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, part := range f.parts() {
			errs = append(errs, part.Shutdown(ctx))
		}
		done <- errors.Join(errs...)
	}()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("forward the remaining data to %s: %w", f.endpoint, err)
		}
		return nil
	case <-ctx.Done():
		// The exporters ignore deadlines; they end with the process.
		return fmt.Errorf("forward the remaining data to %s: %w", f.endpoint, ctx.Err())
	}
}
