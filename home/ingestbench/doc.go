// Package ingestbench compares Prony's collector with an OpenTelemetry Collector on one stream
// (BenchmarkIngest); docs/decisions/0019-telemetry.md has the results. It contains only tests and
// benchmarks, separate from those of the load generator because it links the collector's
// dependencies.
package ingestbench
