package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// crowd counts the connections of a server: the maximum of each period with open connections.
type crowd struct {
	sync.Mutex
	open map[net.Conn]bool
	most int
	ever []int
}

func (c *crowd) state(of net.Conn, is http.ConnState) {
	c.Lock()
	defer c.Unlock()
	switch is {
	case http.StateNew:
		c.open[of] = true
		c.most = max(c.most, len(c.open))
	case http.StateClosed, http.StateHijacked:
		if delete(c.open, of); len(c.open) == 0 {
			c.ever = append(c.ever, c.most)
			c.most = 0
		}
	}
}

// Rows of a matrix that differ in connections are loaded with these numbers, as the service sees
// them, and the table does not show one number for all.
func TestMatrixOfConnections(t *testing.T) {
	testsets.Once(t, "a matrix of connections", testsets.Needs{})
	dir := ownFolder(t)
	seen := &crowd{open: map[net.Conn]bool{}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.Write([]byte("hello")) //nolint:errcheck // the load reports failures
	}))
	server.Config.ConnState = seen.state
	server.Start()
	defer server.Close()
	text := "targets: {app: {url: '" + server.URL + `', matrix: {connections: [3, 7]}}}
baseline: app
warmup: {min: 0s, max: 300ms}
blocks: 1
slices: 500ms
requests: [{request: GET /}]
loads: [{name: peak, model: closed, measure: 300ms}]
`
	stdout, stderr, exit := inProject(t, text, "plan")
	if exit != cli.Fine {
		t.Fatalf("the plan: exit %d, %s", exit, stderr)
	}
	has(t, "the plan", stdout, "app-connections-3", "app-connections-7")
	stdout, stderr, exit = inProject(t, text, "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the report", stdout, "peak (closed)\n")
	if exit == cli.Fine { // otherwise a row may have no trial: windows get stolen
		has(t, "the report", strings.Join(strings.Fields(stdout), " "), // footnotes are wrapped
			"Rows have different loads, as requested", "7 connections (app-connections-7)")
	}
	if strings.Contains(stdout, "Rows differ in") {
		t.Errorf("a sweep is told as a fault: %s", stdout)
	}
	runs, err := filepath.Glob(filepath.Join(dir, ".prony", "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	_, records, _, err := record.Read(runs[0])
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, error %v", len(records), err)
	}
	for _, r := range records {
		want := map[string]int{"app-connections-3": 3, "app-connections-7": 7}[r.Target.Name]
		if got := r.Loads[0].Connections; got != want {
			t.Errorf("%s has %d connections", r.Target.Name, got)
		}
	}
	server.Close()
	// Connections of the warm-up may be reported as closed only when those of the load are open.
	most := 0
	for _, n := range []int{3, 7} {
		most = 2 * n
		if !slices.ContainsFunc(seen.ever, func(at int) bool { return at >= n && at <= most }) {
			t.Errorf("the server saw %v connections at once, want %d to %d", seen.ever, n, most)
		}
	}
	if slices.Max(seen.ever) > most {
		t.Errorf("the server saw %v connections at once, want %d at most", seen.ever, most)
	}
}
