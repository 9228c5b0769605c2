package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony/internal/host"
	"prony/internal/load"
	"prony/internal/load/epoll"
	"prony/internal/load/uring"
	"prony/internal/stats"
	"prony/internal/truth"
)

// contender is a generator that is held against the io_uring engine as it is. No engine: wrk.
type contender struct {
	name   string
	engine func(netip.AddrPort, int) (load.Engine, error)
}

func ring(name string, o uring.Options) contender {
	return contender{name, func(a netip.AddrPort, n int) (load.Engine, error) {
		return uring.NewWith(a, n, o)
	}}
}

var (
	asItIs   = ring("uring", uring.Options{})
	byEpoll  = contender{"epoll", func(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) }}
	byWrk    = contender{name: "wrk"}
	variants = []contender{
		ring("same", uring.Options{}), // what the noise is
		ring("direct-files", uring.Options{Direct: true}),
		ring("sends-told", uring.Options{TellSends: true}),
		ring("whole-4k", uring.Options{Whole: true, Buffers: 1024, BufferSize: 4 << 10}),
		ring("whole-32k", uring.Options{Whole: true, Buffers: 256, BufferSize: 32 << 10}),
		ring("bundles-4k", uring.Options{Whole: true, Bundle: true, Buffers: 1024, BufferSize: 4 << 10}),
		ring("buffers-2x256k", uring.Options{Buffers: 2, BufferSize: 256 << 10}),
		ring("buffers-4x64k", uring.Options{Buffers: 4, BufferSize: 64 << 10}),
		ring("buffers-16x64k", uring.Options{Buffers: 16, BufferSize: 64 << 10}),
		ring("buffers-32x256k", uring.Options{Buffers: 32, BufferSize: 256 << 10}),
		ring("batch-8", uring.Options{Batch: 8}),
		ring("batch-128", uring.Options{Batch: 128}),
		ring("stamp-once", uring.Options{StampOnce: true}),
		ring("relative", uring.Options{Relative: true}),
		ring("gather-8", uring.Options{Gather: 8, GatherUs: 50}),
		ring("gather-16", uring.Options{Gather: 16, GatherUs: 100}),
		ring("gather-32", uring.Options{Gather: 32, GatherUs: 200}),
		ring("reno", uring.Options{Congestion: "reno"}),
	}
)

// BenchmarkEngines holds the io_uring engine against the other generators.
func BenchmarkEngines(b *testing.B) {
	for _, conns := range []int{1, 16, 64, 256, 1000} {
		for _, c := range []contender{byEpoll, byWrk} {
			b.Run(fmt.Sprintf("%s/connections=%d", c.name, conns), func(b *testing.B) {
				for range b.N {
					duel(b, asItIs, c, conns, 2, time.Second)
				}
			})
		}
	}
}

// BenchmarkChoices holds it against itself with one choice made otherwise.
func BenchmarkChoices(b *testing.B) {
	for _, conns := range []int{64, 256} {
		for _, c := range variants {
			b.Run(fmt.Sprintf("%s/connections=%d", c.name, conns), func(b *testing.B) {
				for range b.N {
					duel(b, asItIs, c, conns, 2, 400*time.Millisecond)
				}
			})
		}
	}
}

// BenchmarkLarge is about answers that do not fit into small buffers.
func BenchmarkLarge(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10, 1 << 20} {
		for _, c := range append([]contender{byEpoll, byWrk}, variants...) {
			b.Run(fmt.Sprintf("%s/size=%d", c.name, size), func(b *testing.B) {
				for range b.N {
					duel(b, asItIs, c, 16, size, time.Second)
				}
			})
		}
	}
}

// engineRounds is odd, so that there is a median, and large, since runs are short.
const engineRounds = 15

// duel alternates two generators against one server that answers with size bytes, and reports the
// median of what each cost and of the ratios of neighbouring runs.
func duel(b *testing.B, one, other contender, conns, size int, d time.Duration) {
	b.Helper()
	serverCore, core := twoCores(b)
	if other.engine == nil {
		if _, err := exec.LookPath("wrk"); err != nil {
			b.Skip("skipped: wrk is not installed")
		}
	}
	addr := sizedServer(b, serverCore, size)
	var ours, theirs, cpu, rate []float64
	for i := range engineRounds {
		var p, q cost
		if i%2 == 0 {
			p, q = engage(b, one, addr, core, conns, size, d), engage(b, other, addr, core, conns, size, d)
		} else {
			q, p = engage(b, other, addr, core, conns, size, d), engage(b, one, addr, core, conns, size, d)
		}
		ours, theirs = append(ours, p.cpuNsPerRequest), append(theirs, q.cpuNsPerRequest)
		cpu = append(cpu, p.cpuNsPerRequest/q.cpuNsPerRequest)
		rate = append(rate, p.perS/q.perS)
	}
	slices.Sort(cpu)
	b.ReportMetric(0, "ns/op") // the time of a comparison says nothing
	b.ReportMetric(stats.Median(ours)/1e3, "cpu-µs/req")
	b.ReportMetric(stats.Median(theirs)/1e3, "other-cpu-µs/req")
	b.ReportMetric(stats.Median(cpu), "cpu-ratio")
	b.ReportMetric(cpu[len(cpu)/4], "cpu-ratio-q1")
	b.ReportMetric(cpu[len(cpu)*3/4], "cpu-ratio-q3")
	b.ReportMetric(stats.Median(rate), "rate-ratio")
}

func engage(tb testing.TB, c contender, addr netip.AddrPort, core, conns, size int,
	d time.Duration) cost {
	tb.Helper()
	if c.engine == nil {
		return wrk(tb, addr, core, conns, d)
	}
	r, err := load.Run(context.Background(), load.Spec{
		Name: "bench", Address: addr, Model: load.Closed, Connections: conns, Cores: []int{core},
		Lead: d / 10, Window: d, Drain: time.Second, Timeout: 2 * time.Second,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 50000, Requests: []load.Request{{
			Method: "GET", Path: "/hello?key={key}", HasWant: true,
			Want: strings.Repeat("x", size),
		}}},
		Engine: c.engine,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if n := r.Errors.Total(); n > 0 {
		tb.Fatalf("%d errors: %s", n, r.Errors.Example)
	}
	if r.Generator.CPUPerRequestNs == 0 {
		tb.Fatalf("no CPU: %+v", r.Generator)
	}
	return cost{r.Generator.CPUPerRequestNs, r.ThroughputPerS}
}

const sizedEnv = "PRONY_BENCH_SIZED"

// sizedServer is a process of its own on a core, and answers each request with as many bytes.
func sizedServer(tb testing.TB, core, size int) netip.AddrPort {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSizedServer$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", sizedEnv, core, size))
	in, err := cmd.StdinPipe() // its end, for whatever reason, ends the server
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		cmd.Wait() //nolint:errcheck // it ends as it is told to
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			addr, err := netip.ParseAddrPort(text)
			if err != nil {
				tb.Fatal(err)
			}
			go io.Copy(io.Discard, out) //nolint:errcheck // until the server ends
			return addr
		}
	}
	tb.Fatal("the server did not begin")
	return netip.AddrPort{}
}

// TestSizedServer is the server when it is started as one.
func TestSizedServer(t *testing.T) {
	var core, size int
	if _, err := fmt.Sscan(os.Getenv(sizedEnv), &core, &size); err != nil {
		t.Skip("skipped: it is not started as a server")
	}
	if err := host.Confine([]int{core}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("at", l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end of it will do
		cancel()
	}()
	answer := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
		strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size)
	if size <= 1<<10 {
		err = truth.Null(ctx, l.(*net.TCPListener), []byte(answer))
	} else {
		repeat(ctx, l, []byte(answer))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// repeat is like truth.Null for answers that a socket does not take at once: slower, but it only
// has to be the same for all generators.
func repeat(ctx context.Context, l net.Listener, answer []byte) {
	go func() {
		<-ctx.Done()
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			b := make([]byte, 4<<10)
			for {
				n, err := c.Read(b)
				if err != nil {
					return
				}
				for range bytes.Count(b[:n], []byte("\r\n\r\n")) {
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			}
		}()
	}
}
