package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"text/tabwriter"
	"time"

	"prony/internal/driver"
	"prony/internal/load"
	"prony/internal/load/stack"
	"prony/internal/stats"
	"prony/internal/suite"
	"prony/internal/system"
)

// BenchmarkProtocols prints what a request costs our generator in each protocol beside HTTP/1.1 in
// the clear, which the raw engines speak: by turns, against the null server of each, on a core of
// its own. PRONY_BENCH_ROUNDS rounds, 5 unless it is set, of PRONY_BENCH_SECONDS each, 2 unless it
// is set. docs/load.md has the table.
func BenchmarkProtocols(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	serverCore, core := TwoCores(b)
	prony := filepath.Join(b.TempDir(), "prony")
	build := exec.Command("go", "build", "-o", prony, "../cmd/prony")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
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
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement says nothing
	b.Log("\n" + text.String())
}

// spoken is what a request of a closed load over 64 connections costs, in ns of processor time.
func spoken(tb testing.TB, prony, protocol string, serverCore, core int, d time.Duration) float64 {
	tb.Helper()
	port, err := system.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	null := exec.Command(prony, "null", "--protocol", protocol, strconv.Itoa(port))
	if err := StartOnCore(serverCore, null); err != nil {
		tb.Fatal(err)
	}
	defer func() {
		_ = null.Process.Signal(os.Interrupt) // it may have ended
		_ = null.Wait()
	}()
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
	var speech *stack.Config
	if scheme := stack.Schemes[protocol]; scheme != "" {
		speech = &stack.Config{Protocol: scheme, Network: "tcp", Address: at.String(),
			Host: at.String(), Path: driver.NullPath, Streams: 1, Insecure: true}
	}
	s := driver.Calibration(load.Spec{Name: protocol, Address: at, Host: at.String(),
		Connections: 64, Cores: []int{core}, Seed: 1}, speech)
	s.Window = d
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		r, err := driver.Prony{Stack: speech}.Offer(context.Background(), s)
		if err == nil && r.Errors.Total() == 0 && r.Answered > 0 {
			return float64(r.Generator.CPUNs) / float64(r.Done)
		}
		if time.Since(began) > 10*time.Second {
			tb.Fatalf("%s: %v, %+v", protocol, err, r)
		}
	}
}
