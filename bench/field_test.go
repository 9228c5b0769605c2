package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/stats"
)

// The field is every installed generator, against the same server, in alternating runs. Each runs
// as a separate process, pinned to the same core. The cost of other generators is the CPU time of
// the whole process (wait4(2)); that of Prony's is the load thread's in its window, because merging
// and encoding the histograms takes the same time for any number of requests. The history also
// contains the CPU time of the whole load.

// figures are the results of one run.
type figures struct {
	CPUNsPerRequest float64 `json:"cpuNsPerRequest"`
	ProcessCPUNs    int64   `json:"processCPUNs,omitempty"` // Prony's: of the whole load
	PerS            float64 `json:"perS"`
	MemoryBytes     int64   `json:"memoryBytes"`
	AllocsPerAnswer float64 `json:"allocsPerAnswer,omitempty"` // Prony's: of the whole load
	LagP50Ns        int64   `json:"lagP50Ns,omitempty"`
	LagP99Ns        int64   `json:"lagP99Ns,omitempty"`
}

// entry is a line of the history.
type entry struct {
	Time        time.Time `json:"time"`
	Commit      string    `json:"commit"`
	Kernel      string    `json:"kernel"`
	CPU         string    `json:"cpu"`
	Generator   string    `json:"generator"`
	Connections int       `json:"connections"`
	RatePerS    float64   `json:"ratePerS,omitempty"`
	Round       int       `json:"round"`
	figures
}

// historyFile stores every run on this machine; costFile is the committed history.
const historyFile = "history.ndjson"

// childLoad is the request for a run of Prony's generator.
type childLoad struct {
	Addr        string
	Core        int
	Connections int
	For         time.Duration
	RatePerS    float64
	Pacing      string
}

const childEnv = "PRONY_BENCH_LOAD"

// offerAsChild runs in the child process and prints the result.
func offerAsChild(text string) error {
	var c childLoad
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if _, err := load.RaiseFiles(); err != nil {
		return err
	}
	s := load.Spec{
		Name: "bench", Model: record.Closed, Connections: c.Connections, Cores: []int{c.Core},
		Address: netip.MustParseAddrPort(c.Addr), Window: c.For, Drain: time.Second,
		Timeout: 5 * time.Second, Pacing: c.Pacing, Seed: 1,
		Scenario: load.Scenario{KeyLo: 1, KeyHi: 50000, Requests: []load.Request{
			{Method: "GET", Path: "/hello?key={key}", Want: "ok", HasWant: true}}},
	}
	if c.RatePerS > 0 {
		s.Model = record.Open
		s.Schedule = pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(c.RatePerS)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took := processCPU()
	r, err := generator.Prony{Engine: load.Epoll}.Offer(context.Background(), s)
	if err != nil {
		return err
	}
	if n := r.Errors.Total(); n > 0 {
		return fmt.Errorf("%d errors: %s", n, r.Errors.Example)
	}
	took = processCPU() - took
	runtime.ReadMemStats(&after)
	return json.NewEncoder(os.Stdout).Encode(figures{
		PerS: r.ThroughputPerS, CPUNsPerRequest: r.Generator.CPUPerRequestNs, ProcessCPUNs: took,
		AllocsPerAnswer: float64(after.Mallocs-before.Mallocs) / float64(max(r.Answered, 1)),
		LagP50Ns:        r.Lag.P50Ns, LagP99Ns: r.Lag.P99Ns,
	})
}

// processCPU returns the CPU time of all threads of this process.
func processCPU() int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		panic("bench: getrusage of the own process cannot fail: " + err.Error())
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}

// runOurs runs Prony's generator once, in a process of its own.
func runOurs(tb testing.TB, c childLoad) figures {
	tb.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := onCore(c.Core, cmd)
	if err != nil {
		tb.Fatalf("%+v: %v: %s", c, err, stderr.Bytes())
	}
	var f figures
	if err := json.Unmarshal(out, &f); err != nil {
		tb.Fatal(err)
	}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.MemoryBytes = ru.Maxrss << 10 // getrusage(2) counts in KiB
	}
	return f
}

// runForeign runs another generator once; it returns false if the generator does not support the
// load.
func runForeign(tb testing.TB, name string, addr netip.AddrPort, core, conns int,
	d time.Duration) (figures, bool) {
	tb.Helper()
	by, err := generator.Foreign(name)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := by.Offer(context.Background(), load.Spec{
		Name: "bench", Model: record.Closed, Connections: conns, Cores: []int{core}, Address: addr,
		Window: d, Drain: time.Second, Timeout: 5 * time.Second,
		Scenario: load.Scenario{KeyLo: 12345, KeyHi: 12345, Requests: []load.Request{
			{Method: "GET", Path: "/hello?key=12345", WantSize: -1}}},
	})
	if err != nil {
		tb.Logf("%s with %d connections: %v", name, conns, err)
		return figures{}, false
	}
	return figures{CPUNsPerRequest: r.Generator.CPUPerRequestNs, PerS: r.ThroughputPerS,
		MemoryBytes: r.Generator.MemoryBytes}, true
}

// loadTool is a generator of the field.
type loadTool struct {
	name string
	run  func(tb testing.TB, addr netip.AddrPort, core, conns int, d time.Duration) (figures, bool)
}

// field returns Prony's generator and the other installed ones.
func field() []loadTool {
	all := []loadTool{{"prony/" + load.Epoll, func(tb testing.TB, addr netip.AddrPort, core,
		conns int, d time.Duration) (figures, bool) {
		c := childLoad{Addr: addr.String(), Core: core, Connections: conns, For: d}
		return runOurs(tb, c), true
	}}}
	for _, name := range generator.Names() {
		if _, err := generator.Foreign(name); err != nil ||
			name == "wrk2" { // wrk2 has no closed model
			continue
		}
		all = append(all, loadTool{name, func(tb testing.TB, addr netip.AddrPort, core, conns int,
			d time.Duration) (figures, bool) {
			return runForeign(tb, name, addr, core, conns, d)
		}})
	}
	return all
}

// BenchmarkLoad compares the field at several numbers of connections, and reports how exactly
// Prony's generator keeps a schedule. One iteration is a whole comparison: PRONY_BENCH_ROUNDS
// rounds (default 5) of PRONY_BENCH_SECONDS each (default 2).
func BenchmarkLoad(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	serverCore, core := TwoCores(b)
	addr := server(b, serverCore)
	var out bytes.Buffer
	for range b.N {
		for _, conns := range []int{64, 256, 1000, 10_000} {
			contest(b, &out, addr, core, conns, rounds, time.Duration(seconds)*time.Second)
		}
		punctuality(b, &out, addr, core, rounds, time.Duration(seconds)*time.Second)
	}
	b.ReportMetric(0, "ns/op") // the time of a comparison has no meaning
	b.Log("\n" + out.String())
}

// contest runs all generators in every round, in a rotating order.
func contest(tb testing.TB, out *bytes.Buffer, addr netip.AddrPort, core, conns, rounds int,
	d time.Duration) {
	tb.Helper()
	all := field()
	runs := map[string][]figures{}
	for round := range rounds {
		order := slices.Clone(all)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, g := range order {
			f, ok := g.run(tb, addr, core, conns, d)
			if !ok {
				continue
			}
			runs[g.name] = append(runs[g.name], f)
			remember(tb, g.name, conns, 0, round, f)
		}
	}
	fmt.Fprintf(out, "%d connections, %d rounds of %v\n", conns, rounds, d)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "generator\tCPU µs/req\trange\tto wrk\trequests/s\tmemory MiB\t")
	for _, g := range all {
		if len(runs[g.name]) == rounds {
			row(w, g.name, runs[g.name], runs["wrk"])
		}
	}
	w.Flush()
	fmt.Fprintln(out)
}

// row prints medians, the range, and the median of the ratios to wrk's run of the same round.
func row(w *tabwriter.Writer, name string, runs, wrk []figures) {
	cpu := func(f figures) float64 { return f.CPUNsPerRequest / 1e3 }
	ratio := "–"
	if len(wrk) == len(runs) {
		var ratios []float64
		for i := range runs {
			ratios = append(ratios, cpu(runs[i])/cpu(wrk[i]))
		}
		ratio = fmt.Sprintf("%.3f", stats.Median(ratios))
	}
	costs := values(runs, cpu)
	fmt.Fprintf(w, "%s\t%.2f\t%.2f–%.2f\t%s\t%.0f\t%.0f\t\n", name, stats.Median(costs),
		slices.Min(costs), slices.Max(costs), ratio,
		stats.Median(values(runs, func(f figures) float64 { return f.PerS })),
		stats.Median(values(runs, func(f figures) float64 {
			return float64(f.MemoryBytes) / (1 << 20)
		})))
}

func values(runs []figures, of func(figures) float64) (out []float64) {
	for _, f := range runs {
		out = append(out, of(f))
	}
	return out
}

// punctuality reports the send delay by rate and pacing.
func punctuality(tb testing.TB, out *bytes.Buffer, addr netip.AddrPort, core, rounds int,
	d time.Duration) {
	tb.Helper()
	fmt.Fprintf(out, "lag (sent − due), constant arrivals, 64 connections, medians of %d\n", rounds)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "generator\trequests/s\tp50 µs\tp99 µs\tCPU of a core\t")
	for _, pacing := range []string{load.Frugal, load.Precise} {
		for _, perS := range []float64{1000, 20_000, 50_000} {
			var runs []figures
			for round := range rounds {
				f := runOurs(tb, childLoad{Addr: addr.String(), Core: core, Connections: 64,
					For: d, RatePerS: perS, Pacing: pacing})
				runs = append(runs, f)
				remember(tb, "prony/"+load.Epoll+"/"+pacing, 64, perS, round, f)
			}
			us := func(of func(figures) int64) float64 {
				return stats.Median(values(runs, func(f figures) float64 {
					return float64(of(f)) / 1e3
				}))
			}
			fmt.Fprintf(w, "%s/%s\t%.0f\t%.1f\t%.1f\t%.0f %%\t\n", load.Epoll, pacing, perS,
				us(func(f figures) int64 { return f.LagP50Ns }),
				us(func(f figures) int64 { return f.LagP99Ns }),
				100*stats.Median(values(runs, func(f figures) float64 {
					return f.CPUNsPerRequest * f.PerS / 1e9
				})))
		}
	}
	w.Flush()
}

// remember appends a run to the history.
func remember(tb testing.TB, name string, conns int, perS float64, round int, f figures) {
	tb.Helper()
	appendTo(tb, historyFile, entry{
		Time: clock.Wall(), Commit: commit(), Kernel: kernel(tb), CPU: model(), Generator: name,
		Connections: conns, RatePerS: perS, Round: round, figures: f,
	})
}

func kernel(tb testing.TB) string {
	tb.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		tb.Fatal(err)
	}
	return unix.ByteSliceToString(u.Release[:])
}

// appendTo adds a line of JSON to a file.
func appendTo(tb testing.TB, name string, value any) {
	tb.Helper()
	line, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		tb.Fatal(err)
	}
}

func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	out, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// model returns the processor's name.
func model() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok &&
			strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// A short run of the benchmark's parts, with every installed generator.
func TestFieldInSmall(t *testing.T) {
	testsets.Whole(t, "a small comparison")
	testsets.Measured(t)
	serverCore, core := TwoCores(t)
	addr := server(t, serverCore)
	for _, g := range field() {
		f, ok := g.run(t, addr, core, 4, 200*time.Millisecond)
		if !ok || f.CPUNsPerRequest <= 0 || f.PerS <= 0 {
			t.Errorf("%s: %+v", g.name, f)
		}
	}
}
