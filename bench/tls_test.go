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
	"prony/internal/system"
)

// BenchmarkTLS prints what a request over TLS 1.3 costs each of our engines and wrk, by turns,
// against one null server on a core of its own, 64 connections: PRONY_BENCH_ROUNDS rounds, 7 unless
// it is set, of PRONY_BENCH_SECONDS each, 3 unless it is set. Of wrk it counts the handshakes, too,
// which are before our window: a few hundredths. docs/decisions/0036-tls.md has the table.
func BenchmarkTLS(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 7), Setting(b, "PRONY_BENCH_SECONDS", 3)
	if _, err := exec.LookPath("wrk"); err != nil {
		b.Skip("skipped: wrk is not installed")
	}
	serverCore, core := TwoCores(b)
	at := secureNull(b, serverCore)
	order := []string{driver.Uring, driver.Epoll, driver.Stack, "wrk"}
	costs := map[string][]float64{}
	for range rounds {
		for _, name := range order {
			costs[name] = append(costs[name], overTLS(b, name, at, core,
				time.Duration(seconds)*time.Second))
		}
		slices.Reverse(order)
	}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| generator\t| µs of CPU a request\t| × wrk\t|\n|---\t|---\t|---\t|\n")
	for _, name := range []string{driver.Uring, driver.Epoll, driver.Stack, "wrk"} {
		r := stats.PairedRatio(costs["wrk"], costs[name], costConfidence)
		fmt.Fprintf(w, "| %s\t| %.2f\t| %.2f (%.2f to %.2f)\t|\n", name,
			stats.Median(costs[name])/1e3, r.Center, r.Lo, r.Hi)
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement says nothing
	b.Log("\n" + text.String())
}

// secureNull starts the null server of https.
func secureNull(b *testing.B, core int) netip.AddrPort {
	b.Helper()
	prony := filepath.Join(b.TempDir(), "prony")
	build := exec.Command("go", "build", "-o", prony, "../cmd/prony")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	port, err := system.FreePort()
	if err != nil {
		b.Fatal(err)
	}
	null := exec.Command(prony, "null", "--protocol", "https", strconv.Itoa(port))
	if err := StartOnCore(core, null); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = null.Process.Signal(os.Interrupt) // it may have ended
		_ = null.Wait()
	})
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
}

// overTLS is what a request of a closed load over 64 connections costs, in ns of processor time.
func overTLS(b *testing.B, name string, at netip.AddrPort, core int, d time.Duration) float64 {
	b.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		cost, err := overTLSOnce(b, name, at, core, d)
		if err == nil {
			return cost
		}
		if time.Since(began) > 10*time.Second { // the server has had time to come up
			b.Fatalf("%s: %v", name, err)
		}
	}
}

func overTLSOnce(b *testing.B, name string, at netip.AddrPort, core int, d time.Duration) (float64,
	error) {
	if name == "wrk" {
		return wrkOver(b, "https", at, core, 64, d).cpuNsPerRequest, nil
	}
	speech := &stack.Config{Protocol: stack.H1TLS, Network: "tcp", Address: at.String(),
		Host: at.String(), Path: driver.NullPath, Streams: 1, Insecure: true}
	s := driver.Calibration(load.Spec{Name: name, Address: at, Host: at.String(), Connections: 64,
		Cores: []int{core}, Seed: 1}, speech)
	s.Window = d
	r, err := driver.Prony{Engine: name, Stack: speech}.Offer(context.Background(), s)
	if err != nil {
		return 0, err
	}
	if r.Errors.Total() > 0 || r.Done == 0 {
		return 0, fmt.Errorf("%d answered, %+v", r.Done, r.Errors)
	}
	return float64(r.Generator.CPUNs) / float64(r.Done), nil
}
