package bench

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator"
)

// ghzModule is the rival as a Go module, built only for the benchmark.
const ghzModule = "github.com/bojand/ghz/cmd/ghz@v0.120.0"

// BenchmarkGRPC prints the cost of a unary gRPC call with each of Prony's engines and ghz, in
// turns, against one null server on a core of its own: PRONY_BENCH_ROUNDS rounds (default 5) of
// PRONY_BENCH_SECONDS each (default 2). The cost of ghz includes its start, which is before Prony's
// window. docs/decisions/0040-grpc.md has the table.
func BenchmarkGRPC(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	if _, err := exec.LookPath("ghz"); err != nil {
		dir := filepath.Dir(testsets.Tool(b, ghzModule))
		b.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	beside(b, rounds, time.Duration(seconds)*time.Second, []rival{{"ghz", ghz}},
		shape{"grpc", 64, 1}, shape{"grpc", 8, 16}, shape{"grpcs", 64, 1})
}

// ghz measures the cost of a call with ghz. It needs the null server's method, whose messages are
// empty.
func ghz(tb testing.TB, x shape, at netip.AddrPort, core int, d time.Duration) float64 {
	tb.Helper()
	service, method, _ := strings.Cut(strings.TrimPrefix(generator.NullPath, "/"), "/")
	proto := filepath.Join(tb.TempDir(), "null.proto")
	text := fmt.Sprintf("syntax = \"proto3\";\nmessage Nothing {}\nservice %s {\n  rpc %s"+
		"(Nothing) returns (Nothing);\n}\n", service, method)
	if err := os.WriteFile(proto, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	secure := map[string]string{"grpc": "--insecure", "grpcs": "--skipTLS"}[x.protocol]
	cmd := exec.Command("ghz", secure, "--proto", proto, "--call", service+"."+method, "-d", "{}",
		"-c", fmt.Sprint(x.connections*x.streams), "--connections", fmt.Sprint(x.connections),
		"--cpus", "1", "-z", d.String(), "-O", "json", at.String())
	out, err := onCore(core, cmd)
	if err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	var r struct {
		Codes map[string]float64 `json:"statusCodeDistribution"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		tb.Fatalf("ghz said %s: %v", out, err)
	}
	good, all := r.Codes["OK"], 0.0
	for _, n := range r.Codes {
		all += n
	}
	// Requests that are running at the end are dropped.
	if good == 0 || all-good > float64(x.connections*x.streams) {
		tb.Fatalf("ghz had codes %v", r.Codes)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / good
}
