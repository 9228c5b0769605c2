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

// ghzModule is the rival, as Go's proxy has it; it is built for the benchmark alone.
const ghzModule = "github.com/bojand/ghz/cmd/ghz@v0.120.0"

// BenchmarkGRPC prints what a unary call of gRPC costs each of our engines and ghz, by turns,
// against one null server on a core of its own: PRONY_BENCH_ROUNDS rounds, 5 unless it is set, of
// PRONY_BENCH_SECONDS each, 2 unless it is set. Of ghz it counts the start, too, which is before
// our window. docs/decisions/0040-grpc.md has the table.
func BenchmarkGRPC(b *testing.B) {
	rounds, seconds := Setting(b, "PRONY_BENCH_ROUNDS", 5), Setting(b, "PRONY_BENCH_SECONDS", 2)
	if _, err := exec.LookPath("ghz"); err != nil {
		dir := filepath.Dir(testsets.Tool(b, ghzModule))
		b.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	beside(b, rounds, time.Duration(seconds)*time.Second, []rival{{"ghz", ghz}},
		shape{"grpc", 64, 1}, shape{"grpc", 8, 16}, shape{"grpcs", 64, 1})
}

// ghz is a rival's cost. Of the null server it must know the method, whose messages are empty.
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
	// What is under way at the end is given up.
	if good == 0 || all-good > float64(x.connections*x.streams) {
		tb.Fatalf("ghz had codes %v", r.Codes)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu) / good
}
