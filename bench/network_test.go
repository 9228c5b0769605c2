package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"text/tabwriter"
	"time"

	"prony.example/load"
	"prony.example/load/network"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

// BenchmarkNetwork prints how precisely the generator delays the network, and what the delay costs:
// windows with and without it, in turns, against one null server on a core of its own. The excess
// is the difference of median service times beyond the delay. One iteration has PRONY_BENCH_ROUNDS
// rounds (default 9) of PRONY_BENCH_SECONDS each (default 1).
// docs/decisions/0061-network.md has the table.
func BenchmarkNetwork(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 9), Setting(b, "PRONY_BENCH_SECONDS", 1)
	server, core := TwoCores(b)
	prony := built(b)
	for range b.N {
		at, stop := null(b, prony, "http", server)
		b.Cleanup(stop)
		var text bytes.Buffer
		out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "delay\trequests/s\tconnections\texcess, µs\tadded beyond, µs: p50\tp99"+
			"\tCPU without, ns/request\twith")
		for _, row := range []struct {
			delay string
			perS  float64
			conns int
		}{
			{"delay 1ms", 20_000, 64}, {"delay 5ms", 20_000, 256}, {"delay 5ms ± 1ms", 20_000, 256},
			{"delay 5ms", 1_000, 64}, {"delay 50ms", 10_000, 1024},
		} {
			d, err := network.Parse(row.delay)
			if err != nil {
				b.Fatal(err)
			}
			var excess, p50, p99, bare, cost []float64
			for range rounds {
				window := time.Duration(seconds) * time.Second
				plain := networked(b, at, core, row.perS, row.conns, window, network.Delay{})
				r := networked(b, at, core, row.perS, row.conns, window, d)
				us := func(ns int64) float64 { return float64(ns) / 1e3 }
				excess = append(excess,
					us(r.ServiceTime.P50Ns-plain.ServiceTime.P50Ns-int64(d.RoundTrip)))
				p50 = append(p50, us(r.Network.Added.P50Ns-int64(d.RoundTrip)))
				p99 = append(p99, us(r.Network.Added.P99Ns-int64(d.RoundTrip)))
				bare = append(bare, plain.Generator.CPUPerRequestNs)
				cost = append(cost, r.Generator.CPUPerRequestNs)
			}
			e := stats.Summarize(excess, costConfidence)
			fmt.Fprintf(out, "%s\t%g\t%d\t%.0f (%.0f to %.0f)\t%.0f\t%.0f\t%.0f\t%.0f\n", row.delay,
				row.perS, row.conns, e.Center, e.Lo, e.Hi, stats.Median(p50), stats.Median(p99),
				stats.Median(bare), stats.Median(cost))
		}
		out.Flush()
		b.Logf("%d rounds of %d s\n%s", rounds, seconds, &text)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement has no meaning
}

// networked offers an open load over a network. A server may take ten seconds to start.
func networked(tb testing.TB, at netip.AddrPort, core int, perS float64, conns int,
	window time.Duration, d network.Delay) *load.Result {
	tb.Helper()
	s := load.Spec{Address: at, Model: record.Open, Connections: conns, Network: d,
		Schedule: pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(perS)}, Seed: 1,
		Lead: 200 * time.Millisecond, Window: window, Drain: time.Second, Timeout: 5 * time.Second,
		Cores: []int{core}, Ahead: true,
		Scenario: load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/", Want: "ok",
			HasWant: true}}}}
	if err := (load.Choice{}).Set(&s); err != nil {
		tb.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		r, err := load.Run(context.Background(), s)
		if err == nil && r.Errors.Total() == 0 && r.Answered > 0 {
			return r
		}
		if time.Since(began) > 10*time.Second {
			tb.Fatalf("%v: no load without errors, %v", d, err)
		}
	}
}
