//go:build linux && !portable

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/telemetry/boards"
)

// A server that answers as Grafana does: all dashboards of the checkout, and data for each query of
// a dashboard. home/dashboardtest puts the same telemetry and queries to the real collector.
func TestStackCheck(t *testing.T) {
	testsets.Whole(t, "every stack")
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := boards.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	check := func(lack string, wantExit int, want ...string) {
		t.Helper()
		var sent atomic.Int64
		fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/v1/") {
				sent.Add(1)
				return
			}
			pretend(t, w, r, all, lack)
		}))
		defer fake.Close()
		p := exec.Command(os.Args[0], "stack", "check", "--root", root, "--grafana", fake.URL,
			"--otlp", fake.URL, "--wait", "1s")
		p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
		out, err := p.CombinedOutput()
		if exit := p.ProcessState.ExitCode(); exit != wantExit {
			t.Errorf("lacking %q: exit %d (%v), want %d\n%s", lack, exit, err, wantExit, out)
		}
		for _, w := range want {
			has(t, "the panels", string(out), w)
		}
		if sent.Load() < 3 {
			t.Errorf("it sent telemetry %d times, want metrics, spans and logs", sent.Load())
		}
	}
	check("", cli.Fine, "ok  Live load", "Run overview", "queries found data")
	check("prony_load_due_total", cli.Failed, "FAIL  Live load", "3 of 4 queries found data")
	check("prony-jvm", cli.Failed, "Grafana does not have this dashboard")
}

// pretend answers one request to Grafana; lack is a dashboard that it has not, or a metric.
func pretend(t *testing.T, w http.ResponseWriter, r *http.Request, all []boards.Board,
	lack string) {
	var answer any
	switch {
	case r.URL.Path == "/api/search":
		var found []map[string]string
		for _, b := range all {
			if b.UID != lack && strings.HasPrefix(b.File, "deploy/helm/") {
				found = append(found, map[string]string{"uid": b.UID})
			}
		}
		answer = found
	case strings.HasPrefix(r.URL.Path, "/api/dashboards/uid/"):
		for _, b := range all {
			if strings.HasSuffix(r.URL.Path, "/"+b.UID) {
				answer = map[string]any{"dashboard": json.RawMessage(b.Raw)}
			}
		}
	case strings.HasPrefix(r.URL.Path, "/api/datasources/uid/"):
		answer = map[string]any{"data": []string{"one", "two"}}
	default:
		var asked struct{ Queries []map[string]any }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		q := asked.Queries[0]
		frames := []any{map[string]any{"data": map[string]any{"values": [][]int{{1}}}}}
		if lack != "" && strings.Contains(fmt.Sprint(q["expr"]), lack) {
			frames = nil
		}
		answer = map[string]any{"results": map[string]any{q["refId"].(string): map[string]any{
			"frames": frames}}}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		t.Error(err)
	}
}
