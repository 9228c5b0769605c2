package bench

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"prony.example/internal/suite"
	"prony.example/stats"
)

// BenchmarkProtocols prints the cost of a request with Prony's generator in each protocol beside
// HTTP/1.1 in the clear: in turns, against the null server of each, on a core of its own.
// PRONY_BENCH_ROUNDS rounds (default 5) of PRONY_BENCH_SECONDS each (default 2). docs/load.md has
// the ratios.
func BenchmarkProtocols(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	serverCore, core := TwoCores(b)
	prony := built(b)
	costs := map[string][]float64{}
	for round := range rounds {
		order := slices.Clone(suite.Protocols)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, protocol := range order {
			costs[protocol] = append(costs[protocol], spoken(b, prony, protocol, serverCore, core,
				time.Duration(seconds)*time.Second))
		}
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| protocol\t| µs of CPU a request\t| × HTTP/1.1\t|\n|---\t|---\t|---\t|\n")
	first := costs[suite.Protocols[0]]
	for _, protocol := range suite.Protocols {
		ratio := "1"
		if protocol != suite.Protocols[0] {
			r := stats.PairedRatio(first, costs[protocol], costConfidence)
			ratio = fmt.Sprintf("%.1f (%.1f to %.1f)", r.Center, r.Lo, r.Hi)
		}
		fmt.Fprintf(w, "| %s\t| %.1f\t| %s\t|\n", protocol, stats.Median(costs[protocol])/1e3,
			ratio)
	}
	show(b, w, &text)
}

// spoken returns the cost of a request of a closed load over 64 connections, in ns of CPU time.
func spoken(tb testing.TB, prony, protocol string, serverCore, core int, d time.Duration) float64 {
	tb.Helper()
	at, stop := null(tb, prony, protocol, serverCore)
	defer stop()
	return offered(tb, "", shape{protocol, 64, 1}, at, core, d)
}
