package main

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
	"prony.example/record/metric"
)

// asking is a service that calls a backend at $STOCK a number of times for each response, or,
// without one, that backend, which counts.
func asking(times, addr string) {
	n, _ := strconv.Atoi(times)
	var asked atomic.Int64
	stock := os.Getenv("STOCK")
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "asked_total{by=\"shop\"} %d\nup 1\n", asked.Load())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		for range n {
			res, err := http.Get("http://127.0.0.1:" + stock)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			res.Body.Close()
		}
		fmt.Fprint(w, "3 left")
	})
	fmt.Println(http.ListenAndServe(addr, mux))
	os.Exit(1)
}

// shops are targets that differ in their number of backend calls, although all declare one; one has
// a counter that does not exist.
const shops = `limits: {cpus: 1, memory: 512M}
warmup: {min: 0s, max: 300ms, connections: 1}
blocks: 1
slices: 500ms
requests: [{request: GET /, backendCalls: {stock: 1}}]
loads: [{name: peak, model: closed, connections: 1, measure: 2s}]
columns: [backendCalls]
targets:
`

// shop is one of these targets.
func shop(name string, asks int, series string) string {
	return fmt.Sprintf(`  %s:
    command: ./app
    env: {STOCK: '{stock.port}', ASKS: "%d"}
    processes: [{name: stock, command: ./app, env: {ASKS: "0"}}]
    counters: {stock: {metrics: 'http://127.0.0.1:{stock.port}/metrics', series: '%s'}}
`, name, asks, series)
}

// A service that responds from a cache, which no response shows, is INVALID by its backend's
// counter. A service that makes one call is valid, and so is one that makes two, which the table
// shows. An unreadable counter is reported and makes no trial INVALID.
func TestUnmasksWhoDoesNotAsk(t *testing.T) {
	testsets.Once(t, "services that do and do not ask", testsets.Needs{})
	ownFolder(t)
	stdout, stderr, exit := inProject(t, shops+shop("asks", 1, "asked_total")+
		shop("cheats", 0, `asked_total{by="shop"}`)+shop("twice", 2, "asked_total")+
		shop("blind", 0, "none_total"), "run")
	if exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the report", strings.Join(strings.Fields(stdout), " "), "calls/response",
		"stock: 0.00 asked_total per response",
		"the call counter of stock cannot be read: read the counter none_total of "+
			"http://127.0.0.1:")
	runs, err := filepath.Glob(filepath.Join(record.Kept, "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	_, records, bad, err := record.Read(runs[0])
	if err != nil || len(bad) > 0 || len(records) != 4 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		name := r.Target.Name
		want := map[string]float64{"asks": 1, "cheats": 0, "twice": 2, "blind": math.NaN()}[name]
		grades := map[string]string{"cheats": record.Invalid, "blind": record.Valid}
		if r.Outcome != record.Measured || len(r.Loads) != 1 || len(r.Loads[0].BackendCalls) != 1 {
			t.Fatalf("%s is %s: %+v", name, r.Outcome, r.Failure)
		}
		l := &r.Loads[0]
		// The first reading is in the lead-in, 50 ms before the window, whose rate may differ.
		if got := metric.AsksEach(l.BackendCalls[0], l); math.Abs(got-want) > 0.1 ||
			math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s asks %v times an answer, want %v: %+v", name, got, want, l.BackendCalls)
		}
		var found []string
		for _, f := range r.Verdict.Findings {
			if f.Rule == "backend calls" {
				found = append(found, f.Grade)
			}
		}
		if got := strings.Join(found, " "); got != grades[name] {
			t.Errorf("%s: unasked is %q, want %q", name, got, grades[name])
		}
	}
}
