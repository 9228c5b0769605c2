package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/host"
	"prony/internal/launch/process"
	"prony/internal/load"
	"prony/internal/load/epoll"
	"prony/internal/stats"
	"prony/internal/tests"
	"prony/internal/truth"
)

// answer is what the server under both generators sends.
const answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"

// TestMain also is the server, as a process of its own on a core of its own.
func TestMain(m *testing.M) {
	process.Enter()
	if text := os.Getenv(burnEnv); text != "" {
		if err := burnAsChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if core := os.Getenv("PRONY_BENCH_SERVER"); core != "" {
		if err := serve(core); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(childEnv); text != "" {
		if err := offerAsChild(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(core string) error {
	n, err := strconv.Atoi(core)
	if err != nil {
		return err
	}
	if err := host.Confine([]int{n}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin) //nolint:errcheck // any end of it will do
		cancel()
	}()
	return truth.Null(ctx, l.(*net.TCPListener), []byte(answer))
}

// server starts it and returns its address.
func server(tb testing.TB, core int) netip.AddrPort {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("PRONY_BENCH_SERVER=%d", core))
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
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	addr, err := netip.ParseAddrPort(strings.TrimSpace(line))
	if err != nil {
		tb.Fatal(err)
	}
	return addr
}

// twoCores gives a core to the server and one to the generators, or skips.
func twoCores(tb testing.TB) (server, generator int) {
	tb.Helper()
	cores, err := host.Cores()
	if err != nil {
		tb.Fatal(err)
	}
	if len(cores) < 2 {
		tb.Skip("skipped: needs two cores")
	}
	return cores[1], cores[0]
}

// cost is what one run of a generator came to.
type cost struct{ cpuNsPerRequest, perS float64 }

func prony(tb testing.TB, addr netip.AddrPort, core, conns int, d time.Duration) cost {
	tb.Helper()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "bench", Address: addr, Model: load.Closed, Connections: conns, Cores: []int{core},
		Lead: d / 10, Window: d, Drain: time.Second, Timeout: 2 * time.Second,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 50000, Requests: []load.Request{
			{Method: "GET", Path: "/hello?key={key}", Want: "ok", HasWant: true}}},
		Engine: func(a netip.AddrPort, n int) (load.Engine, error) { return epoll.New(a, n) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	if n := r.Errors.Total(); n > 0 {
		tb.Fatalf("%d errors: %s", n, r.Errors.Example)
	}
	return cost{r.Generator.CPUPerRequestNs, r.ThroughputPerS}
}

var requestsIn = regexp.MustCompile(`(\d+) requests in ([0-9.]+)s`)

// wrk is one thread on the same core; its processor time is what wait4 says of the whole process.
func wrk(tb testing.TB, addr netip.AddrPort, core, conns int, d time.Duration) cost {
	tb.Helper()
	seconds := max(int(d.Seconds()), 1)
	cmd := exec.Command("wrk", "-t1", fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%ds", seconds),
		fmt.Sprintf("http://%s/hello?key=12345", addr))
	out, err := onCore(core, cmd)
	if err != nil {
		tb.Fatal(err)
	}
	m := requestsIn.FindStringSubmatch(string(out))
	if m == nil {
		tb.Fatalf("wrk said %s", out)
	}
	requests, _ := strconv.ParseFloat(m[1], 64) // digits, by the pattern
	took, _ := strconv.ParseFloat(m[2], 64)     // likewise
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return cost{float64(cpu) / requests, requests / took}
}

// onCore runs a command with the affinity that its parent has for as long as it takes to fork.
func onCore(core int, cmd *exec.Cmd) ([]byte, error) {
	var set unix.CPUSet
	set.Set(core)
	type output struct {
		text []byte
		err  error
	}
	done := make(chan output)
	go func() { // a thread of its own, ended with the goroutine, so that no other inherits the core
		runtime.LockOSThread()
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- output{nil, err}
			return
		}
		text, err := cmd.Output()
		done <- output{text, err}
	}()
	o := <-done
	return o.text, o.err
}

// BenchmarkPeers alternates the two and reports medians and the median of the paired ratios. One
// iteration is a whole comparison.
func BenchmarkPeers(b *testing.B) {
	if _, err := exec.LookPath("wrk"); err != nil {
		b.Skip("skipped: wrk is not installed")
	}
	for _, conns := range []int{64, 256} {
		b.Run(fmt.Sprintf("connections=%d", conns), func(b *testing.B) {
			for range b.N {
				compare(b, conns, rounds, 3*time.Second)
			}
		})
	}
}

// rounds of a comparison: an odd number has a median of its own.
const rounds = 9

func compare(b *testing.B, conns, rounds int, d time.Duration) {
	b.Helper()
	serverCore, core := twoCores(b)
	addr := server(b, serverCore)
	var ours, theirs, ratios, rates []float64
	for i := range rounds {
		var p, w cost
		if i%2 == 0 {
			p, w = prony(b, addr, core, conns, d), wrk(b, addr, core, conns, d)
		} else {
			w, p = wrk(b, addr, core, conns, d), prony(b, addr, core, conns, d)
		}
		b.Logf("round %d: prony %.2f µs %.0f/s, wrk %.2f µs %.0f/s", i+1, p.cpuNsPerRequest/1e3,
			p.perS, w.cpuNsPerRequest/1e3, w.perS)
		ours = append(ours, p.cpuNsPerRequest)
		theirs = append(theirs, w.cpuNsPerRequest)
		ratios = append(ratios, p.cpuNsPerRequest/w.cpuNsPerRequest)
		rates = append(rates, p.perS/w.perS)
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op") // the time of a comparison says nothing
	b.ReportMetric(stats.Median(ours)/1e3, "prony-cpu-µs/req")
	b.ReportMetric(stats.Median(theirs)/1e3, "wrk-cpu-µs/req")
	b.ReportMetric(stats.Median(ratios), "cpu-ratio")
	b.ReportMetric(ratios[0], "cpu-ratio-min")
	b.ReportMetric(ratios[len(ratios)-1], "cpu-ratio-max")
	b.ReportMetric(stats.Median(rates), "rate-ratio")
}

// The benchmark's parts work, in small: a benchmark that nobody runs rots.
func TestPeersInSmall(t *testing.T) {
	tests.Cores(t)
	serverCore, core := twoCores(t)
	addr := server(t, serverCore)
	if c := prony(t, addr, core, 4, 200*time.Millisecond); c.cpuNsPerRequest <= 0 || c.perS <= 0 {
		t.Errorf("prony came to %+v", c)
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Skip("skipped: wrk is not installed")
	}
	if c := wrk(t, addr, core, 4, time.Second); c.cpuNsPerRequest <= 0 || c.perS <= 0 {
		t.Errorf("wrk came to %+v", c)
	}
}
