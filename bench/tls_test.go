package bench

import (
	"testing"
	"time"
)

// BenchmarkTLS prints the cost of a request over TLS 1.3 with each of Prony's engines, wrk and, if
// installed, oha, in turns, against one null server on a core of its own, 64 connections:
// PRONY_BENCH_ROUNDS rounds (default 7) of PRONY_BENCH_SECONDS each (default 3). The cost of the
// others includes start and handshakes, which are before Prony's window: a few percent.
// docs/decisions/0036-tls.md has the table.
func BenchmarkTLS(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 7), Setting(b, "PRONY_BENCH_SECONDS", 3)
	beside(b, rounds, time.Duration(seconds)*time.Second, []rival{{"wrk", wrk}, {"oha", oha}},
		shape{"https", 64, 1})
}
