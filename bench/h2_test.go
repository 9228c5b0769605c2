package bench

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"prony.example/internal/generator"
)

// BenchmarkH2 prints the cost of a request over HTTP/2 with each of Prony's engines, h2load and, if
// installed, oha, in turns, against one null server on a core of its own: PRONY_BENCH_ROUNDS rounds
// (default 5) of PRONY_BENCH_SECONDS each (default 2). The cost of the others includes start and
// handshakes, which are before Prony's window. docs/decisions/0038-http2.md has the table.
func BenchmarkH2(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	beside(b, rounds, time.Duration(seconds)*time.Second, []rival{{"h2load", h2load}, {"oha", oha}},
		shape{"h2c", 64, 1}, shape{"h2c", 8, 16}, shape{"h2", 64, 1}, shape{"h2", 8, 16})
}

var succeededIn = regexp.MustCompile(`(\d+) succeeded, 0 failed`)

// h2load measures the cost of a request with h2load.
func h2load(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64 {
	tb.Helper()
	scheme := map[string]string{"h2c": "http", "h2": "https"}[x.protocol]
	cmd := exec.Command("h2load", "-t1", fmt.Sprintf("-c%d", x.connections),
		fmt.Sprintf("-m%d", x.streams), "-D", strconv.Itoa(max(int(d.Seconds()), 1)),
		fmt.Sprintf("%s://%s%s", scheme, at, generator.NullPath))
	out, err := onCore(core, cmd)
	if err != nil {
		tb.Fatal(err)
	}
	m := succeededIn.FindSubmatch(out)
	if m == nil {
		tb.Fatalf("h2load said %s", out)
	}
	requests, _ := strconv.ParseFloat(string(m[1]), 64) // digits, by the pattern
	if requests == 0 {
		tb.Fatal("h2load had no answer")
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / requests
}

// oha measures the cost of a request with oha.
func oha(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64 {
	tb.Helper()
	args := []string{"--no-tui", "--output-format", "json", "-z", d.String(),
		"-c", fmt.Sprint(x.connections)}
	scheme := "http"
	if x.protocol != "h2c" {
		scheme, args = "https", append(args, "--insecure")
	}
	if x.protocol != "https" {
		args = append(args, "--http2", "-p", fmt.Sprint(x.streams))
	}
	cmd := exec.Command("oha", append(args, fmt.Sprintf("%s://%s%s", scheme, at,
		generator.NullPath))...)
	cmd.Env = append(os.Environ(), "TOKIO_WORKER_THREADS=1")
	out, err := onCore(core, cmd)
	if err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	var r struct {
		StatusCodeDistribution, ErrorDistribution map[string]float64
	}
	if err := json.Unmarshal(out, &r); err != nil {
		tb.Fatalf("oha said %s: %v", out, err)
	}
	good := r.StatusCodeDistribution["200"]
	delete(r.ErrorDistribution, "aborted due to deadline") // requests that were running at the end
	if good == 0 || len(r.StatusCodeDistribution) > 1 || len(r.ErrorDistribution) > 0 {
		tb.Fatalf("oha had status %v, errors %v", r.StatusCodeDistribution, r.ErrorDistribution)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / good
}
