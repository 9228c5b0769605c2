// Package bench measures the instrument itself. Its generator beside its peers: what a request
// costs and how late it leaves (`make bench-load`); what it cost at each commit that was measured
// is in cost.ndjson, to which `make bench-cost` adds. Its statistics on data whose truth is known:
// simulated (TestInferenceTables), and real runs of a server that is made slower by a known share
// (BenchmarkProof); docs/proof.md has what came
// out. Its home of telemetry is measured in
// home/ingestbench. BenchmarkSpeedTrace records the machine's speed, for stats' simulations of
// slices. Beside what these share it holds tests and benchmarks only. Speed is never
// asserted in a test, since machines differ and are shared; here it is read by people.
package bench
