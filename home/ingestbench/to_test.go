package ingestbench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony.example/bench"
	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/telemetry"
)

// receiver is a process that receives OTLP over gRPC.
type receiver struct {
	address string
	pid     int
	query   string // of Prony's collector; otherwise empty
	stop    func()
}

// taker starts a receiver on a core, with its data in a folder.
type taker struct {
	name  string
	start func(tb testing.TB, core int, dir string) *receiver
}

// takers returns Prony's collectors, and the OpenTelemetry Collector with each of its exporters.
func takers(homes []string, collector string) []taker {
	var all []taker
	for i, program := range homes {
		name := "home"
		if i > 0 {
			name = fmt.Sprintf("home %d", i+1)
		}
		all = append(all, taker{name, func(tb testing.TB, core int, dir string) *receiver {
			return startHome(tb, program, core, dir)
		}})
	}
	for _, exporter := range []string{"nop", "file"} {
		all = append(all, taker{"collector, " + exporter,
			func(tb testing.TB, core int, dir string) *receiver {
				return startCollector(tb, collector, exporter, core, dir)
			}})
	}
	return all
}

// startHome starts Prony's collector in a trial with an open window, without the lower priority
// that it has in runs.
func startHome(tb testing.TB, program string, core int, dir string) *receiver {
	tb.Helper()
	const free = "127.0.0.1:0"
	cmd := exec.Command(program, "telemetry", "serve", "--until-stdin-ends", "--dir", dir,
		"--grpc", free, "--http", free, "--zipkin", free, "--query", free)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := bench.StartOnCore(core, cmd); err != nil {
		tb.Fatal(err)
	}
	var at telemetry.Word
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&at); err != nil {
		tb.Fatal(err)
	}
	beginTrial(tb, at.Query, at.Token)
	return &receiver{address: at.GRPC, pid: cmd.Process.Pid, query: at.Query, stop: func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the home ended with %v", err)
		}
	}}
}

func beginTrial(tb testing.TB, query, token string) {
	tb.Helper()
	c := telemetry.NewClient(query, token)
	defer c.Close()
	const id = "bench/0"
	err := c.Begin(context.Background(), telemetry.Trial{Run: "bench", ID: id, Target: "bench"})
	if err != nil {
		tb.Fatal(err)
	}
	c.Mark(telemetry.Mark{Trial: id, Kind: telemetry.Open, Name: "load",
		WallNs: clock.Wall().UnixNano()})
}

// receivedBy returns the number of items of a signal that Prony's collector has received.
func receivedBy(tb testing.TB, query, signal string) int64 {
	tb.Helper()
	res, err := http.Get("http://" + query + "/prony/stats")
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	var s telemetry.Stats
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		tb.Fatal(err)
	}
	for _, of := range s.Telemetry.Signals {
		if of.Name == signal {
			return of.Received
		}
	}
	return 0
}

// collectorConfig has no processors, because Prony's collector has no queue either. Files are
// rotated, so that a run does not fill the disk.
const collectorConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q, max_recv_msg_size_mib: 16}}}}
exporters:
  nop:
  file: {path: %q, rotation: {max_megabytes: 128, max_backups: 1}}
service:
  telemetry: {metrics: {level: none}, logs: {level: warn}}
  pipelines:
    traces: {receivers: [otlp], exporters: [%[3]s]}
    metrics: {receivers: [otlp], exporters: [%[3]s]}
    logs: {receivers: [otlp], exporters: [%[3]s]}
`

func startCollector(tb testing.TB, program, exporter string, core int, dir string) *receiver {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	file := filepath.Join(dir, "collector.yaml")
	text := fmt.Sprintf(collectorConfig, address, filepath.Join(dir, "all.json"), exporter)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program, "--config", "file:"+file)
	cmd.Stderr = os.Stderr
	if err := bench.StartOnCore(core, cmd); err != nil {
		tb.Fatal(err)
	}
	return &receiver{address: address, pid: cmd.Process.Pid, stop: func() {
		if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
			tb.Errorf("end the collector: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the collector ended with %v", err)
		}
	}}
}

// usedBy returns the processor time of a process, in ns, including ended threads, by its clock,
// which other processes may read (clock_getcpuclockid(3)).
func usedBy(pid int) (int64, error) {
	const sched = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &t); err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return t.Nano(), nil
}

// peakOf returns the peak resident memory of a process, in bytes (proc_pid_status(5)).
func peakOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no VmHWM", pid)
}

// ingested is the result of one run.
type ingested struct {
	PerS      float64 // items accepted at saturation
	Busy      float64 // cores used meanwhile; below 1 the sender was the bottleneck
	FullNs    float64 // processor time an item at saturation
	RateNs    float64 // processor time an item at the fixed rate
	PeakBytes int64   // resident
	Refused   int64   // items in total
}

// ingestPhases are the durations of the parts of a run.
type ingestPhases struct{ warm, fixed, full time.Duration }

// ingest runs a receiver once: at full speed to warm up, at a rate, at full speed.
func ingest(tb testing.TB, by taker, signal string, core int, perS float64,
	phases ingestPhases) ingested {
	tb.Helper()
	dir, err := os.MkdirTemp("", "ingest")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s := &bench.Scope{TB: tb} // closes connections with the run
	defer s.End()
	r := by.start(tb, core, dir)
	defer r.stop()
	from := newSending(s, r.address, signal)
	part := func(d time.Duration, perS float64) (t taken, took, cpu int64) {
		began := clock.Mono()
		before, err1 := usedBy(r.pid)
		t = from.run(d, perS)
		after, err2 := usedBy(r.pid)
		if err1 != nil || err2 != nil {
			tb.Fatal(err1, err2)
		}
		return t, clock.Mono() - began, after - before
	}
	warm, _, _ := part(phases.warm, 0)
	if warm.accepted == 0 {
		tb.Fatalf("%s takes nothing: %v", by.name, warm.why)
	}
	rated, _, ratedCPU := part(phases.fixed, perS)
	full, took, fullCPU := part(phases.full, 0)
	out := ingested{
		PerS: float64(full.accepted) / float64(took) * 1e9, Busy: float64(fullCPU) / float64(took),
		FullNs: float64(fullCPU) / float64(full.accepted),
		RateNs: float64(ratedCPU) / float64(rated.accepted),
	}
	accepted := int64(0)
	for _, t := range []taken{warm, rated, full} {
		accepted += t.accepted
		out.Refused += t.refused
		if t.why != nil {
			tb.Logf("%s refused %d %s: %v", by.name, t.refused, signal, t.why)
		}
	}
	if out.PeakBytes, err = peakOf(r.pid); err != nil {
		tb.Fatal(err)
	}
	// Span metrics go to the same store, but are not received telemetry.
	if r.query != "" {
		if n := receivedBy(tb, r.query, signal); n != accepted {
			tb.Errorf("the home has %d %s, the sender %d", n, signal, accepted)
		}
	}
	return out
}

// homeProgram builds the program, unless PRONY_HOME names one or several to compare.
func homeProgram(tb testing.TB) []string {
	tb.Helper()
	if list := filepath.SplitList(os.Getenv("PRONY_HOME")); len(list) > 0 {
		return list
	}
	program := filepath.Join(tb.TempDir(), "prony-home")
	testsets.Build(tb, program, "prony.example/home/cmd/prony-home")
	return []string{program}
}
