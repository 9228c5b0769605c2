//! Spans, metrics and logs of the build with the feature `otel`, as the variables `OTEL_*` say.

use std::env;
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use axum::Router;
use opentelemetry::metrics::Counter;
use opentelemetry::propagation::TextMapCompositePropagator;
use opentelemetry::{KeyValue, global};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_instrumentation_tower::http::server::Layer as HttpLayer;
use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::Failure;
use crate::discard::{DiscardLogs, DiscardMetrics, DiscardSpans};

const SERVICE_NAME: &str = "rust-axum";

/// Of the events that become log records; the libraries' own are none of the service's.
const LOG_TARGET: &str = "rust_axum::log";

/// It comes after the server's own second of grace, and the contract allows two for both.
const FLUSH_GRACE: Duration = Duration::from_millis(500);

/// The providers that run; none of them, if the environment wants none.
#[derive(Default)]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    logs: Option<SdkLoggerProvider>,
}

enum Destination {
    Otlp,
    Nowhere,
    /// Recorded, queued and aggregated, but not sent.
    Discarded,
}

impl Telemetry {
    /// To be called within the runtime: the exporters' connections are tasks of it.
    pub fn start() -> Result<Self, Failure> {
        global::set_text_map_propagator(TextMapCompositePropagator::new(vec![
            Box::new(TraceContextPropagator::new()),
            Box::new(BaggagePropagator::new()),
        ]));
        // The SDK for Rust leaves this variable to the program. What is instrumented stays so, and
        // calls the API's providers, which do nothing.
        if env::var("OTEL_SDK_DISABLED").is_ok_and(|text| text.eq_ignore_ascii_case("true")) {
            return Ok(Self::default());
        }
        let telemetry = Self {
            traces: traces()?,
            metrics: metrics()?,
            logs: logs()?,
        };
        if let Some(provider) = &telemetry.traces {
            global::set_tracer_provider(provider.clone());
        }
        if let Some(provider) = &telemetry.metrics {
            global::set_meter_provider(provider.clone());
        }
        let bridge = telemetry.logs.as_ref().map(|provider| {
            OpenTelemetryTracingBridge::new(provider)
                .with_filter(Targets::new().with_target(LOG_TARGET, LevelFilter::INFO))
        });
        // OpenTelemetry's crates tell of what they lose by events of their own.
        let losses = fmt::layer()
            .with_writer(std::io::stderr)
            .with_filter(Targets::new().with_target("opentelemetry", LevelFilter::WARN));
        registry().with(bridge).with(losses).try_init()?;
        Ok(telemetry)
    }

    /// Sends what is still queued, as far as that can be done in time. It blocks, so no worker of
    /// the runtime may call it: the exporters need one.
    pub fn stop(self) {
        let (ended, end) = mpsc::channel();
        // In a thread that may be left behind, as the reader of metrics heeds no time limit.
        thread::spawn(move || {
            let ends = [
                self.traces.map(|it| it.shutdown_with_timeout(FLUSH_GRACE)),
                self.logs.map(|it| it.shutdown_with_timeout(FLUSH_GRACE)),
                self.metrics.map(|it| it.shutdown_with_timeout(FLUSH_GRACE)),
            ];
            for failure in ends.into_iter().flatten().filter_map(Result::err) {
                // What is lost is said; the service itself has not failed.
                eprintln!("rust-axum: telemetry not sent: {failure}");
            }
            // Nobody waits any more if this came late.
            let _ = ended.send(());
        });
        if end.recv_timeout(FLUSH_GRACE).is_err() {
            eprintln!("rust-axum: not all telemetry was sent within {FLUSH_GRACE:?}");
        }
    }
}

/// Goes around routes that are complete, so that it sees the pattern that matched.
pub fn instrument(routes: Router) -> Router {
    routes.layer(HttpLayer::new())
}

/// Made for the first request, when the provider is set.
static HELLOS: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter(SERVICE_NAME)
        .u64_counter("hello.request.count")
        .with_description("Requests of the endpoint hello.")
        .with_unit("{request}")
        .build()
});

/// Counts a request to an endpoint, like the other services with a counter of their own.
pub fn count(endpoint: &'static str) {
    HELLOS.add(1, &[KeyValue::new("endpoint", endpoint)]);
}

/// Adds a line to the log that is sent, with the trace of the request that the task is serving.
pub fn export_log(line: &str) {
    tracing::info!(target: LOG_TARGET, "{line}");
}

/// Leaves the sampler to the SDK, which reads `OTEL_TRACES_SAMPLER` itself.
fn traces() -> Result<Option<SdkTracerProvider>, Failure> {
    let builder = SdkTracerProvider::builder().with_resource(resource());
    let builder = match destination("TRACES")? {
        Destination::Otlp => {
            builder.with_batch_exporter(SpanExporter::builder().with_tonic().build()?)
        }
        Destination::Discarded => builder.with_batch_exporter(DiscardSpans),
        Destination::Nowhere => builder,
    };
    Ok(Some(builder.build()))
}

fn metrics() -> Result<Option<SdkMeterProvider>, Failure> {
    let builder = SdkMeterProvider::builder().with_resource(resource());
    let builder = match destination("METRICS")? {
        Destination::Otlp => {
            builder.with_periodic_exporter(MetricExporter::builder().with_tonic().build()?)
        }
        Destination::Discarded => builder.with_periodic_exporter(DiscardMetrics),
        Destination::Nowhere => return Ok(None),
    };
    Ok(Some(builder.build()))
}

fn logs() -> Result<Option<SdkLoggerProvider>, Failure> {
    let builder = SdkLoggerProvider::builder().with_resource(resource());
    let builder = match destination("LOGS")? {
        Destination::Otlp => {
            builder.with_batch_exporter(LogExporter::builder().with_tonic().build()?)
        }
        Destination::Discarded => builder.with_batch_exporter(DiscardLogs),
        Destination::Nowhere => return Ok(None),
    };
    Ok(Some(builder.build()))
}

/// The environment, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, has the last word.
fn resource() -> Resource {
    let named = Resource::builder_empty()
        .with_service_name(SERVICE_NAME)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    match given("OTEL_SERVICE_NAME") {
        Some(name) => named.with_service_name(name).build(),
        None => named.build(),
    }
}

/// Where no exporter is named and no endpoint given, the specification would send to port 4317 of
/// this machine, where hardly anybody listens: there, nothing is sent.
fn destination(signal: &str) -> Result<Destination, Failure> {
    let exporter = format!("OTEL_{signal}_EXPORTER");
    let endpoint = given(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        .or_else(|| given("OTEL_EXPORTER_OTLP_ENDPOINT"));
    match (given(&exporter).as_deref(), endpoint) {
        (Some("none"), _) => Ok(Destination::Nowhere),
        (None, None) => Ok(Destination::Discarded),
        (Some("otlp") | None, _) => grpc(signal).map(|()| Destination::Otlp),
        (Some(other), _) => Err(format!("{exporter}={other:?} is neither otlp nor none").into()),
    }
}

/// This build speaks no other protocol, and gRPC to a port for HTTP would only fail later.
fn grpc(signal: &str) -> Result<(), Failure> {
    let protocol = given(&format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"))
        .or_else(|| given("OTEL_EXPORTER_OTLP_PROTOCOL"));
    match protocol.as_deref() {
        None | Some("grpc") => Ok(()),
        Some(other) => Err(format!("OTLP by {other:?}: this build has only grpc").into()),
    }
}

/// Empty is as good as absent, the specification says.
fn given(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}
