//go:build linux && !portable

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-yaml"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/capacity"
	"prony.example/record"
)

// traced reports whether a request has a trace id, as a suite's loads have and its warm-up has not.
func traced(r *http.Request) bool { return r.Header.Get("Traceparent") != "" }

const togetherSuite = `targets: {shop: {url: '%s'}}
blocks: 1
seed: 5
warmup: {min: 200ms, max: 300ms, connections: 4}
observe: {traces: 100%%}
requests: [{request: GET /}]
loads:
  - {name: steady, model: open, rate: 300/s, connections: 8, leadIn: 100ms, measure: 400ms%s}
  - {name: peak, model: closed, connections: 5, leadIn: 100ms, measure: 300ms%s}
`

// Several processes offer a suite's loads: the schedule is that of one process, their counts add up
// to the server's, each load is judged separately, and no process remains.
func TestSuiteTogether(t *testing.T) {
	testsets.Once(t, "a suite by several generators", testsets.Needs{})
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	hashes := map[string]bool{}
	for _, row := range []struct{ key, flag string }{{}, {key: ", generators: 2"}, {flag: "2"}} {
		url, asked := countingSome(t, traced)
		t.Chdir(t.TempDir())
		text := fmt.Sprintf(togetherSuite, url, row.key, row.key)
		if err := os.WriteFile("prony.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"run", "--out", "r"}
		if row.flag != "" {
			args = append(args, "--generators", row.flag)
		}
		stdout, stderr, exit := really(args...)
		if unspoilt(exit) != cli.Fine {
			t.Fatalf("%+v: exit %d: %s%s", row, exit, stdout, stderr)
		}
		r := one(t, stderr)
		if len(r.Loads) != 2 {
			t.Fatalf("%+v: %d loads", row, len(r.Loads))
		}
		want, sent := 2, int64(0)
		if row.key+row.flag == "" {
			want = 0
		}
		for i := range r.Loads {
			l := &r.Loads[i]
			for _, g := range l.Generators {
				if sent += g.Sent; g.Fault != "" || g.Clock.ErrorNs <= 0 || g.Sent == 0 {
					t.Errorf("%+v: %s: %+v", row, l.Name, g)
				}
			}
			if len(l.Generators) != want || l.Answered == 0 || l.WindowOpenedMonotonicNs == 0 ||
				l.Model == record.Open && l.Scheduled != l.Answered ||
				l.Model == record.Closed && l.CeilingPerS == 0 {
				t.Errorf("%+v: %s: %d generators, %d due, %d answered, opened at %d, ceiling %g",
					row, l.Name, len(l.Generators), l.Scheduled, l.Answered,
					l.WindowOpenedMonotonicNs,
					l.CeilingPerS)
			}
		}
		hashes[r.Loads[0].TraceHash] = true
		if want > 0 && sent != asked.Load() {
			t.Errorf("%+v: they sent %d requests, the server had %d", row, sent, asked.Load())
		}
	}
	if len(hashes) != 1 || hashes[""] {
		t.Errorf("one seed, and schedules with the hashes %v", hashes)
	}
}

// The steps of a search work in the same way.
func TestCapacityTogether(t *testing.T) {
	testsets.Once(t, "a search by several generators", testsets.Needs{})
	url, asked := counting(t)
	stdout, stderr, exit := really("capacity", url, "--stress", "100,200", "--window", "300ms",
		"-c", "8", "--generators", "2", "--json", "-x")
	if exit != cli.Fine {
		t.Fatalf("exit %d: %s%s", exit, stdout, stderr)
	}
	var out struct{ Stress []capacity.Tried }
	if err := json.Unmarshal([]byte(stdout), &out); err != nil || len(out.Stress) == 0 {
		t.Fatalf("%v: %s", err, stdout)
	}
	for _, step := range out.Stress {
		if step.ThroughputPerS <= 0 {
			t.Errorf("nothing came of the step %+v", step)
		}
	}
	if n := strings.Count(stderr, " --index 1\n"); n < len(out.Stress) || asked.Load() == 0 {
		t.Errorf("%d second generators, %d requests: %s", n, asked.Load(), stderr)
	}
}

// containers returns the arguments of the containers in the lab's pod, one after another, as the
// chart defines them.
func containers(t *testing.T, values string) (all [][]string) {
	t.Helper()
	if _, err := exec.LookPath("helm"); err != nil {
		t.Skip("no helm here")
	}
	out, err := exec.Command("helm", "template", "x", "../../deploy/helm/prony", "--kube-version",
		"1.34.0", "--values", values, "--show-only", "templates/job.yaml").Output()
	if err != nil {
		t.Fatal(err)
	}
	type container struct{ Args []string }
	var job struct {
		Spec struct {
			Template struct {
				Spec struct{ InitContainers, Containers []container }
			}
		}
	}
	for part := range strings.SplitSeq(string(out), "\n---\n") {
		if !strings.Contains(part, "kind: Job\n") {
			continue
		}
		var plain any
		err := yaml.Unmarshal([]byte(part), &plain)
		if err == nil {
			out, err = json.Marshal(plain)
		}
		if err == nil {
			err = json.Unmarshal(out, &job)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, part)
		}
	}
	for _, c := range slices.Concat(job.Spec.Template.Spec.InitContainers,
		job.Spec.Template.Spec.Containers) {
		all = append(all, c.Args)
	}
	return all
}

const nightlySuite = `run: suite
gate: {enabled: true, maxRegression: 90%%}
suite:
  project: |
    targets: {shop: {url: '%s'}}
    blocks: 2
    warmup: {min: 200ms, max: 300ms, connections: 2}
    observe: {traces: 100%%}
    requests: [{request: GET /}]
    loads: [{name: peak, model: closed, connections: 2, measure: 300ms}]
results: `

// This program runs a night of the chart: a night with INVALID trials reaches its gate, which
// reports them and keeps the last good run.
func TestChartGates(t *testing.T) {
	testsets.Once(t, "a night whose trials are INVALID", testsets.Needs{
		Files: []string{"deploy/helm/prony"}})
	dir := nights(t, "{persistent: true}", func(string) {})
	good, err := os.ReadFile(filepath.Join(dir, "good"))
	if err != nil || !strings.HasSuffix(string(good), "n1\n") {
		t.Errorf("the last good run is %q, %v", good, err)
	}
}

// Nights without permanent storage work in the same way with a bucket of a real server.
func TestChartGatesInBucket(t *testing.T) {
	testsets.Long(t, "nights whose runs are in a bucket", testsets.Needs{
		Files: append([]string{"deploy/helm/prony"}, homeSources...)})
	onPath(t)
	env, kept := testsets.S3(t)
	for key, value := range env {
		t.Setenv(key, value)
	}
	if err := os.Mkdir(filepath.Join(kept, "bench"), 0o755); err != nil {
		t.Fatal(err)
	}
	const place = "s3://bench/nightly"
	dir := nights(t, "{bucket: {place: '"+place+"', secret: x}}", func(dir string) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	})
	pull := exec.Command("prony-home", "store", "pull", place, dir)
	if out, err := pull.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	good, err := os.ReadFile(filepath.Join(dir, "good"))
	if err != nil || !strings.HasSuffix(string(good), "n1\n") {
		t.Errorf("the last good run is %q, %v", good, err)
	}
	for _, run := range []string{"n0", "n1", "n2"} {
		if _, records, bad, err := record.Read(filepath.Join(dir, run)); err != nil ||
			len(bad) > 0 || len(records) != 2 {
			t.Errorf("%s came back with %d records, %v, %v", run, len(records), bad, err)
		}
	}
}

// nights runs three nights of the chart: a bad one, a good one, a bad one. It calls after with the
// folder of results after each, and returns the folder.
func nights(t *testing.T, results string, after func(dir string)) (folder string) {
	t.Helper()
	testsets.Measured(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var bad atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bad.Load() > 0 && traced(r) { // it is ready, and verified
			w.WriteHeader(http.StatusTeapot)
		}
		io.WriteString(w, "ok") //nolint:errcheck // who asks sees it
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	folder = filepath.Join(dir, "results")
	values := filepath.Join(dir, "values.yaml")
	text := fmt.Sprintf(nightlySuite, s.URL) + results + "\n"
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, project, _ := strings.Cut(text, "  project: |\n")
	project, _, _ = strings.Cut(project, "results:")
	project = strings.ReplaceAll(project, "\n    ", "\n")[4:]
	if err := os.WriteFile(filepath.Join(dir, "prony.yaml"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	steps := containers(t, values)
	if len(steps) != 1 { // kubectl logs shows only one
		t.Fatalf("the pod has the containers %q", steps)
	}
	t.Chdir(dir)
	for night, row := range []struct {
		bad  int64
		exit int
		want string
	}{{1, cli.Invalid,
		"INSUFFICIENT DATA: 2 trials were INVALID or failed, so this run is no base"},
		{0, cli.Fine, "PASS"},
		{1, cli.Invalid, "INSUFFICIENT DATA"}} {
		bad.Store(row.bad)
		line := strings.NewReplacer("$(POD_NAME)", fmt.Sprint("n", night), "/results",
			folder).Replace(strings.Join(steps[0], "\x00"))
		stdout, stderr, exit := really(strings.Split(line, "\x00")...)
		if night == 1 && strings.Contains(stdout, "INSUFFICIENT DATA") {
			t.Skipf("the machine is too busy for a good night: %s", stdout)
		}
		if exit != row.exit || !strings.Contains(stdout+stderr, row.want) {
			t.Fatalf("night %d: %q: exit %d: %s%s", night, steps[0], exit, stdout, stderr)
		}
		after(folder)
	}
	return folder
}
