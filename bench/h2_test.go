package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// h2Shapes are what loads of HTTP/2 are compared in: connections, and streams of each.
var h2Shapes = []struct {
	protocol             string
	connections, streams int
}{{"h2c", 64, 1}, {"h2c", 8, 16}, {"h2", 64, 1}, {"h2", 8, 16}}

// BenchmarkH2 prints what a request over HTTP/2 costs each of our engines and h2load, by turns,
// against one null server on a core of its own: PRONY_BENCH_ROUNDS rounds, 5 unless it is set, of
// PRONY_BENCH_SECONDS each, 2 unless it is set. Of h2load it counts the handshakes, too, which are
// before our window. docs/decisions/0038-http2.md has the table.
func BenchmarkH2(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	if _, err := exec.LookPath("h2load"); err != nil {
		b.Skip("skipped: h2load is not installed")
	}
	serverCore, core := TwoCores(b)
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| load\t| generator\t| µs of CPU a request\t| × h2load\t|\n|---\t|---\t|---\t"+
		"|---\t|\n")
	at := map[string]netip.AddrPort{}
	for _, protocol := range []string{"h2c", "h2"} {
		at[protocol] = null(b, serverCore, protocol)
	}
	for _, x := range h2Shapes {
		order := []string{driver.Uring, driver.Epoll, driver.Stack, "h2load"}
		costs := map[string][]float64{}
		for range rounds {
			for _, name := range order {
				costs[name] = append(costs[name], overH2(b, name, x.protocol, at[x.protocol], core,
					x.connections, x.streams, time.Duration(seconds)*time.Second))
			}
			slices.Reverse(order)
		}
		for _, name := range []string{driver.Uring, driver.Epoll, driver.Stack, "h2load"} {
			r := stats.PairedRatio(costs["h2load"], costs[name], costConfidence)
			fmt.Fprintf(w, "| %s, %d × %d\t| %s\t| %.2f\t| %.2f (%.2f to %.2f)\t|\n", x.protocol,
				x.connections, x.streams, name, stats.Median(costs[name])/1e3, r.Center, r.Lo, r.Hi)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement says nothing
	b.Log("\n" + text.String())
}

// null starts the null server of a protocol.
func null(b *testing.B, core int, protocol string) netip.AddrPort {
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
	null := exec.Command(prony, "null", "--protocol", protocol, strconv.Itoa(port))
	if err := StartOnCore(core, null); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = null.Process.Signal(os.Interrupt) // it may have ended
		_ = null.Wait()
	})
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port))
}

// overH2 is what a request of a closed load costs, in ns of processor time.
func overH2(b *testing.B, name, protocol string, at netip.AddrPort, core, connections, streams int,
	d time.Duration) float64 {
	b.Helper()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		cost, err := overH2Once(name, protocol, at, core, connections, streams, d)
		if err == nil {
			return cost
		}
		if time.Since(began) > 10*time.Second { // the server has had time to come up
			b.Fatalf("%s: %v", name, err)
		}
	}
}

func overH2Once(name, protocol string, at netip.AddrPort, core, connections, streams int,
	d time.Duration) (float64, error) {
	if name == "h2load" {
		return h2loadOnce(protocol, at, core, connections, streams, d)
	}
	speech := &stack.Config{Protocol: stack.Schemes[protocol], Network: "tcp",
		Address: at.String(), Host: at.String(), Path: driver.NullPath, Streams: streams,
		Insecure: true}
	s := driver.Calibration(load.Spec{Name: name, Address: at, Host: at.String(),
		Connections: connections * streams, Cores: []int{core}, Seed: 1}, speech)
	s.Window = d
	r, err := driver.Prony{Engine: name, Stack: speech}.Offer(context.Background(), s)
	if err != nil {
		return 0, err
	}
	if r.Errors.Total() > 0 || r.Done == 0 || r.Connections != connections {
		return 0, fmt.Errorf("%d answered over %d, %+v", r.Done, r.Connections, r.Errors)
	}
	return float64(r.Generator.CPUNs) / float64(r.Done), nil
}

var succeededIn = regexp.MustCompile(`(\d+) succeeded, 0 failed`)

func h2loadOnce(protocol string, at netip.AddrPort, core, connections, streams int,
	d time.Duration) (float64, error) {
	scheme := map[string]string{"h2c": "http", "h2": "https"}[protocol]
	cmd := exec.Command("h2load", "-t1", fmt.Sprintf("-c%d", connections),
		fmt.Sprintf("-m%d", streams), "-D", strconv.Itoa(max(int(d.Seconds()), 1)),
		fmt.Sprintf("%s://%s%s", scheme, at, driver.NullPath))
	out, err := onCore(core, cmd)
	if err != nil {
		return 0, err
	}
	m := succeededIn.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("h2load said %s", out)
	}
	requests, _ := strconv.ParseFloat(string(m[1]), 64) // digits, by the pattern
	if requests == 0 {
		return 0, fmt.Errorf("h2load had no answer")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / requests, nil
}
