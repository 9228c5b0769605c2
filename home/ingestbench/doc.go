// Package ingestbench measures the home of telemetry beside an OpenTelemetry collector on one
// stream (BenchmarkIngest); docs/decisions/0019-telemetry.md has what came out. It holds tests and
// benchmarks only, apart from those of the generator: it links what only the home does.
package ingestbench
