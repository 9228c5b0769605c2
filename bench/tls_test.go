package bench

import (
	"net/netip"
	"testing"
	"time"
)

// BenchmarkTLS prints what a request over TLS 1.3 costs each of our engines, wrk and, where it is
// installed, oha, by turns, against one null server on a core of its own, 64 connections:
// PRONY_BENCH_ROUNDS rounds, 7 unless it is set, of PRONY_BENCH_SECONDS each, 3 unless it is set.
// Of the others it counts start and handshakes, too, which are before our window: a few hundredths.
// docs/decisions/0036-tls.md has the table.
func BenchmarkTLS(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 7), Setting(b, "PRONY_BENCH_SECONDS", 3)
	wrk := func(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64 {
		return wrkOver(tb, x.protocol, at, core, x.connections, d).cpuNsPerRequest
	}
	beside(b, rounds, time.Duration(seconds)*time.Second, []rival{{"wrk", wrk}, {"oha", oha}},
		shape{"https", 64, 1})
}
