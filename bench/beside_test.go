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

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/stats"
)

// built builds prony, which runs the null servers.
func built(tb testing.TB) string {
	tb.Helper()
	prony := filepath.Join(tb.TempDir(), "prony")
	testsets.Build(tb, prony, "prony.example/cmd/prony")
	return prony
}

// null starts the null server of a protocol on a core; stop ends it.
func null(tb testing.TB, prony, protocol string, core int) (at netip.AddrPort, stop func()) {
	tb.Helper()
	port, err := processes.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(prony, "null", "--protocol", protocol, strconv.Itoa(port))
	if err := StartOnCore(core, cmd); err != nil {
		tb.Fatal(err)
	}
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()
	}
}

// shape is the shape of a closed load: a protocol, connections, and streams on each.
type shape struct {
	protocol             string
	connections, streams int
}

// offered returns the cost of a request of a load by Prony's generator, in ns of CPU time. A server
// may take ten seconds to start.
func offered(tb testing.TB, engine string, x shape, at netip.AddrPort, core int,
	d time.Duration) float64 {
	tb.Helper()
	var speech *nethttp.Config
	if scheme := nethttp.Schemes[x.protocol]; scheme != "" {
		speech = &nethttp.Config{Protocol: scheme, Network: "tcp", Address: at.String(),
			Host: at.String(), Path: generator.NullPath, Streams: x.streams, Insecure: true}
	}
	s := generator.Calibration(load.Spec{Name: x.protocol, Address: at, Host: at.String(),
		Connections: x.connections * x.streams, Cores: []int{core}, Seed: 1}, speech)
	s.Window = d
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		r, err := generator.Prony{Engine: engine, Stack: speech}.Offer(context.Background(), s)
		if err == nil && r.Errors.Total() == 0 && r.Done > 0 && r.Connections == x.connections {
			return float64(r.Generator.CPUNs) / float64(r.Done)
		}
		if time.Since(began) > 10*time.Second {
			tb.Fatalf("%s by %s: %v, %+v", x.protocol, engine, err, r)
		}
	}
}

// costing measures the cost of a request with a generator, in ns of CPU time.
type costing func(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64

// rival is another generator, by the name of its program.
type rival struct {
	name string
	cost costing
}

// beside prints the cost of a request with each of Prony's engines and rivals, in turns, against
// one null server per protocol on a core of its own. The first rival must be installed; the others
// are compared with it.
func beside(b *testing.B, rounds int, d time.Duration, rivals []rival, shapes ...shape) {
	b.Helper()
	asks, first := map[string]costing{}, rivals[0].name
	var names []string
	for _, name := range []string{load.Epoll, load.NetHTTP} {
		names = append(names, name)
		asks[name] = func(tb testing.TB, x shape, at netip.AddrPort, core int,
			d time.Duration) float64 {
			return offered(tb, name, x, at, core, d)
		}
	}
	for _, r := range rivals {
		if _, err := exec.LookPath(r.name); err != nil && r.name == first {
			b.Skipf("skipped: %s is not installed", first)
		} else if err != nil {
			b.Logf("without %s, which is not installed", r.name)
			continue
		}
		names, asks[r.name] = append(names, r.name), r.cost
	}
	serverCore, core := TwoCores(b)
	prony, servers := built(b), map[string]netip.AddrPort{}
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "| load\t| generator\t| µs of CPU a request\t| × %s\t|\n|---\t|---\t|---\t|---"+
		"\t|\n", first)
	for _, x := range shapes {
		if !servers[x.protocol].IsValid() {
			at, stop := null(b, prony, x.protocol, serverCore)
			b.Cleanup(stop)
			servers[x.protocol] = at
			offered(b, load.Epoll, x, at, core, 100*time.Millisecond) // until it listens
		}
		costs, order := map[string][]float64{}, slices.Clone(names)
		for range rounds {
			for _, name := range order {
				costs[name] = append(costs[name], asks[name](b, x, servers[x.protocol], core, d))
			}
			slices.Reverse(order)
		}
		for _, name := range names {
			r := stats.PairedRatio(costs[first], costs[name], costConfidence)
			fmt.Fprintf(w, "| %s, %d × %d\t| %s\t| %.2f\t| %.2f (%.2f to %.2f)\t|\n", x.protocol,
				x.connections, x.streams, name, stats.Median(costs[name])/1e3, r.Center, r.Lo, r.Hi)
		}
	}
	show(b, w, &text)
}

// show logs a table.
func show(b *testing.B, w *tabwriter.Writer, text *bytes.Buffer) {
	b.Helper()
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op") // the time of a measurement has no meaning
	b.Log("\n" + text.String())
}
