package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// bodySizes serves all paths and counts requests by their line and the size of their bodies. The
// counts may be read once the server is closed.
func bodySizes() (server *httptest.Server, seen map[string]map[int]int) {
	var lock sync.Mutex
	seen = map[string]map[int]int{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off at the end of a load
		}
		lock.Lock()
		defer lock.Unlock()
		line := r.Method + " " + r.URL.Path
		if seen[line] == nil {
			seen[line] = map[int]int{}
		}
		seen[line][len(body)]++
		w.Write([]byte("taken")) //nolint:errcheck // the load reports failures
	}))
	return server, seen
}

// Rows of a matrix that differ in body send that many bytes with each request that has a body, as
// the service sees them, while its responses are collected and under load. Other requests send
// none, and a setup its own.
func TestMatrixOfBodies(t *testing.T) {
	testsets.Once(t, "a matrix of bodies", testsets.Needs{})
	dir := ownFolder(t)
	server, seen := bodySizes()
	defer server.Close()
	text := "targets: {app: {url: '" + server.URL +
		`', matrix: {body: [1000B, 64KiB], connections: [2, 3]}}}
baseline: app
warmup: {min: 0s, max: 300ms}
blocks: 1
slices: 500ms
requests:
  - {request: POST /login, body: me, setup: run, expect: {status: 200}}
  - {request: GET /}
  - {request: PUT /put, body: a b, expect: {status: 200}}
  - {request: POST /post, body: x}
loads: [{name: peak, model: closed, measure: 300ms}]
`
	stdout, stderr, exit := inProject(t, text, "plan")
	if exit != cli.Fine {
		t.Fatalf("the plan: exit %d, %s", exit, stderr)
	}
	has(t, "the plan", stdout, "app-connections-2-body-1000B", "bodies of 1000B",
		"app-connections-3-body-64KiB", "bodies of 64KiB")
	stdout, stderr, exit = inProject(t, text, "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	runs, err := filepath.Glob(filepath.Join(dir, ".prony", "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	_, records, _, err := record.Read(runs[0])
	if err != nil || len(records) != 4 {
		t.Fatalf("%d records, error %v", len(records), err)
	}
	scenes := map[string]bool{}
	for _, r := range records {
		if r.Outcome != record.Measured || r.Loads[0].Errors.Total() > 0 {
			t.Errorf("%s: %s, %+v", r.Trial, r.Outcome, r.Failure)
		}
		scenes[r.Provenance.ScenarioHash] = true
	}
	if len(scenes) != 4 {
		t.Errorf("%d scenes of four rows: runs of unlike bodies could be paired", len(scenes))
	}
	server.Close()
	sizes := map[string][]int{"POST /login": {2}, "GET /": {0}, "PUT /put": {1000, 64 << 10},
		"POST /post": {1000, 64 << 10}}
	for line, want := range sizes {
		for _, n := range want {
			if seen[line][n] == 0 {
				t.Errorf("%s came with bodies of %v bytes, never %d", line, seen[line], n)
			}
		}
		if len(seen[line]) != len(want) {
			t.Errorf("%s came with bodies of %v bytes, want %v alone", line, seen[line], want)
		}
	}
}
