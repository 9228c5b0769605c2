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

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/observe/host"
	"prony.example/load"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/uring"
	"prony.example/record"
	"prony.example/stats"
)

// contender is a generator. Without an engine it is wrk.
type contender struct {
	name   string
	engine func(netip.AddrPort, int) (load.Engine, error)
}

const short = 60 * time.Millisecond

// length returns the length of one run: wrk takes only whole seconds.
func (c *contender) length() time.Duration {
	if c.engine == nil {
		return time.Second
	}
	return short
}

func with(name string, o uring.Options) contender {
	return contender{name, func(a netip.AddrPort, n int) (load.Engine, error) {
		return uring.NewWith(a, n, o)
	}}
}

var asItIs = with("uring", uring.Options{})

// others are compared with the io_uring engine.
var others = []contender{
	{"epoll", func(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) }},
	{name: "wrk"},
}

// choices are variants of the io_uring engine with one different setting. The result of the first
// is noise.
var choices = []contender{
	with("same", uring.Options{}),
	with("direct-files", uring.Options{Direct: true}),
	with("told-sends", uring.Options{TellSends: true}),
	with("whole-4k", uring.Options{Whole: true, Buffers: 1024, BufferSize: 4 << 10}),
	with("whole-32k", uring.Options{Whole: true, Buffers: 256, BufferSize: 32 << 10}),
	with("bundles-4k", uring.Options{
		Whole: true, Bundle: true, Buffers: 1024, BufferSize: 4 << 10,
	}),
	with("buffers-2x256k", uring.Options{Buffers: 2, BufferSize: 256 << 10}),
	with("buffers-4x64k", uring.Options{Buffers: 4, BufferSize: 64 << 10}),
	with("buffers-8x64k", uring.Options{Buffers: 8, BufferSize: 64 << 10}),
	with("buffers-4x128k", uring.Options{Buffers: 4, BufferSize: 128 << 10}),
	with("buffers-32x256k", uring.Options{Buffers: 32, BufferSize: 256 << 10}),
	with("batch-8", uring.Options{Batch: 8}),
	with("batch-128", uring.Options{Batch: 128}),
	with("stamp-once", uring.Options{StampOnce: true}),
	with("relative", uring.Options{Relative: true}),
	with("gather-8", uring.Options{Gather: 8, GatherUs: 50}),
	with("gather-16", uring.Options{Gather: 16, GatherUs: 100}),
	with("gather-32", uring.Options{Gather: 32, GatherUs: 200}),
}

// BenchmarkEngines compares the io_uring engine with the other generators.
func BenchmarkEngines(b *testing.B) {
	for _, conns := range []int{1, 16, 64, 256, 1000} {
		for _, c := range others {
			b.Run(fmt.Sprintf("%s/connections=%d", c.name, conns), func(b *testing.B) {
				for range b.N {
					duel(b, c, conns, 2, c.length())
				}
			})
		}
	}
}

// BenchmarkChoices compares the io_uring engine with its variants.
func BenchmarkChoices(b *testing.B) {
	for _, conns := range []int{64, 256} {
		for _, c := range choices {
			b.Run(fmt.Sprintf("%s/connections=%d", c.name, conns), func(b *testing.B) {
				for range b.N {
					duel(b, c, conns, 2, short)
				}
			})
		}
	}
}

// BenchmarkLarge compares them with responses that do not fit into small buffers.
func BenchmarkLarge(b *testing.B) {
	for _, size := range []int{16 << 10, 64 << 10, 1 << 20} {
		for _, c := range slices.Concat(others, choices) {
			b.Run(fmt.Sprintf("%s/size=%d", c.name, size), func(b *testing.B) {
				for range b.N {
					duel(b, c, 16, size, max(c.length(), 300*time.Millisecond))
				}
			})
		}
	}
}

// duel alternates the io_uring engine with another generator against one server, whose responses
// have size bytes. It reports the medians of both costs, and the median and quartiles of the ratios
// of adjacent runs. It uses many short runs, because adjacent ones have the same noise.
func duel(b *testing.B, other contender, conns, size int, d time.Duration) {
	b.Helper()
	serverCore, core := TwoCores(b)
	if _, err := exec.LookPath("wrk"); err != nil && other.engine == nil {
		b.Skip("skipped: wrk is not installed")
	}
	addr := sized(b, serverCore, size)
	var ours, theirs, cpu, rate []float64
	rounds := int(8*time.Second/d) | 1 // odd, so that there is a median
	for i := range rounds {
		var of [2]cost
		for _, k := range [2]int{i % 2, 1 - i%2} {
			of[k] = engage(b, [2]contender{asItIs, other}[k], addr, core, conns, size, d)
		}
		if of[0].perS == 0 || of[1].perS == 0 {
			continue // the machine stalled for a whole run
		}
		ours = append(ours, of[0].cpuNsPerRequest)
		theirs = append(theirs, of[1].cpuNsPerRequest)
		cpu = append(cpu, of[0].cpuNsPerRequest/of[1].cpuNsPerRequest)
		rate = append(rate, of[0].perS/of[1].perS)
	}
	slices.Sort(cpu)
	b.ReportMetric(0, "ns/op") // the time of a comparison has no meaning
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
	r := offer(tb, load.Spec{Lead: d / 10, Window: d, Connections: conns}, c, addr, core, size)
	return cost{r.Generator.CPUPerRequestNs, r.ThroughputPerS}
}

// offer offers a closed load with responses of a size, none of which may fail.
func offer(tb testing.TB, s load.Spec, c contender, addr netip.AddrPort, core,
	size int) *load.Result {
	tb.Helper()
	s.Name, s.Address, s.Model, s.Cores, s.Engine = "bench", addr, record.Closed, []int{core},
		c.engine
	s.Drain, s.Timeout = time.Second, 5*time.Second
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 50000, Requests: []load.Request{{
		Method: "GET", Path: "/hello?key={key}", HasWant: true, Want: strings.Repeat("x", size),
	}}}
	r, err := load.Run(context.Background(), s)
	if err != nil {
		tb.Fatal(err)
	}
	if n := r.Errors.Total(); n > 0 {
		tb.Fatalf("%d errors: %s", n, r.Errors.Example)
	}
	return r
}

// A short run of the parts, because benchmarks that nobody runs break.
func TestEnginesInSmall(t *testing.T) {
	testsets.Cores(t)
	serverCore, core := TwoCores(t)
	small, large := sized(t, serverCore, 2), sized(t, serverCore, 1<<20)
	all := slices.Concat(others[:1], choices)
	if err := uring.Probe(); err != nil {
		all = others[:1]
	}
	for _, c := range all {
		for size, addr := range map[int]netip.AddrPort{2: small, 1 << 20: large} {
			s := load.Spec{Requests: 40, Window: time.Minute, Connections: 4}
			if r := offer(t, s, c, addr, core, size); r.Answered != 40 {
				t.Errorf("%s: %d of 40 answers of %d bytes", c.name, r.Answered, size)
			}
		}
	}
}

const sizedEnv = "PRONY_BENCH_SIZED"

// sized starts a server in its own process on a core, whose responses have this many bytes.
func sized(tb testing.TB, core, size int) netip.AddrPort {
	tb.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestSizedServer$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", sizedEnv, core, size))
	in, err := cmd.StdinPipe() // the server ends when this pipe closes for any reason
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
		cmd.Wait() //nolint:errcheck // it ends because its input does
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			addr, err := netip.ParseAddrPort(text)
			if err != nil {
				tb.Fatal(err)
			}
			return addr
		}
	}
	tb.Fatal("the server did not begin")
	return netip.AddrPort{}
}

// TestSizedServer runs that server if the process was started for it.
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
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end of the input
		cancel()
		l.Close()
	}()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " +
		strconv.Itoa(size) + "\r\n\r\n" + strings.Repeat("x", size))
	if size < 4<<10 {
		if err := truth.Null(ctx, l.(*net.TCPListener), answer); err != nil {
			t.Fatal(err)
		}
		return
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go repeat(c, answer)
	}
}

// repeat answers as truth.Null does, with responses larger than a socket's buffer. It is slower,
// but the same for all generators.
func repeat(c net.Conn, answer []byte) {
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
}
