// Package bench measures the instrument itself, beside its peers: what a request costs the
// generator, in alternating runs against the same server with the cores given. It holds benchmarks
// only; `make peers` runs them. Speed is never asserted in a test, since machines differ and are
// noisy: read the ratios.
package bench
