package load_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
	_ "prony.example/stats" // so that its changes run this test again
)

// strange is a program of a user who imports the public packages and uses no engine.
const strange = `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"MODULE/load"
	"MODULE/record"
	"MODULE/stats"
)

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	var rates []float64
	for range 3 {
		r, err := load.Run(context.Background(), load.Spec{
			Address: netip.MustParseAddrPort(server.Listener.Addr().String()),
			Model: record.Closed, Connections: 2, Requests: 100, Window: time.Minute,
			Timeout: 10 * time.Second,
			Every: time.Millisecond,
			Observer: load.ProgressFunc(func(p load.Progress) bool { return p.Failed == 0 }),
			Scenario: load.Scenario{Requests: []load.Request{
				{Method: "GET", Path: "/", Want: "hello", HasWant: true}}},
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Answered, "answered,", r.Errors.Total(), "failed")
		rates = append(rates, float64(r.Answered)/r.ResponseTime.MeanNs)
	}
	fmt.Println("an interval of the rate:", stats.Summarize(rates, 0.95).HasInterval())
}
`

// A separate module builds against load, stats and record, and runs a load. Nothing is downloaded:
// the dependencies are in the cache.
func TestStrangersModule(t *testing.T) {
	testsets.Whole(t, "a module of its own")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := ""
	for line := range strings.Lines(string(own)) {
		if v, ok := strings.CutPrefix(line, "go "); ok {
			version = strings.TrimSpace(v)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.go": strings.ReplaceAll(strange, "MODULE", buildflags.Module),
		"go.sum":  string(sums),
		"go.mod": fmt.Sprintf("module stranger.example\n\ngo %s\n\nrequire %s v0.0.0\n\n"+
			"replace %[2]s => %s\n", version, buildflags.Module, root),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// With the flags of all our programs, common packages are compiled once.
	cmd := exec.CommandContext(t.Context(), "go",
		slices.Concat([]string{"run", buildflags.Link}, buildflags.Flags, []string{"."})...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"), "GOPROXY=off",
		"GOWORK=off")
	out, err := cmd.CombinedOutput()
	want := strings.Repeat("100 answered, 0 failed\n", 3) + "an interval of the rate: true\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}
