// Package bench measures Prony itself. It compares the cost per request and the lateness of the
// generator with its peers (`make bench-load`), and stores the cost at each measured commit in
// cost.ndjson (`make bench-cost`). It tests the statistics on data with a known truth: simulations
// (TestInferenceTables), and real runs of a server that is slower by a known share (BenchmarkProof,
// docs/proof.md). home/ingestbench measures the collector. BenchmarkSpeedTrace records the
// machine's speed for stats' simulations of slices. Apart from shared helpers, the package has only
// tests and benchmarks. Tests never assert speed, because machines differ and are shared; people
// read it here.
package bench
