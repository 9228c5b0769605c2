package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// inProject writes the project's file into a user's folder and runs a command there, for real.
func inProject(t *testing.T, text string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	if err := os.WriteFile("prony.yaml", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return really(args...)
}

// projectOf returns the first project on a page.
func projectOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	return shown
}

const requests = "requests: [{request: GET /}]\n"

// Errors of a project are found before any measurement, reported with their line and a fix, and
// leave nothing.
func TestProjectRefuses(t *testing.T) {
	testsets.Once(t, "projects that are refused", testsets.Needs{})
	dir := ownFolder(t)
	check := func(exit int, says, text string, args ...string) {
		t.Helper()
		stdout, stderr, got := inProject(t, text, append([]string{"run"}, args...)...)
		if got != exit || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%s: exit %d, want %d; it says\n%s%swant %q", text, got, exit, stdout, stderr,
				says)
		}
	}
	check(1, `prony.yaml:2: unknown key "request"`, "targets: {a: {command: ./app}}\nrequest: []\n")
	check(1, "the target a has both command and url",
		"targets: {a: {command: ./app, url: 'http://127.0.0.1:1'}}\n"+requests)
	check(1, "the file has no requests", "targets: {a: {command: ./app}}\n")
	check(1, "target a: ./none: program ./none was not found",
		"targets: {a: {command: ./none}}\n"+requests)
	check(1, "dir ../x is not below", "targets: {a: {command: ./app, dir: ../x}}\n"+requests)
	check(1, "the service exited before it was ready", "targets: {a: {command: 'false'}}\n"+
		requests)
	check(1, "output of the service:\n  bye",
		"targets: {a: {command: 'echo bye; exit 3'}}\n"+requests)
	check(1, "must listen on 127.0.0.1 at the port in $PORT",
		"startup: 1s\ntargets: {a: {command: sleep 60}}\n"+requests)
	check(1, "must listen on 127.0.0.1 at the port in $PORT",
		"startup: 1s\ntargets: {a: {command: PORT=1 ./app}}\n"+requests)
	check(1, `a responds with body "hello", but b responds with body "bye"`,
		"targets: {a: {command: ./app}, b: {command: ./app, env: {SAYS: bye}}}\n"+requests)
	check(1, `a-SAYS-hello responds with body "hello", but a-SAYS-bye responds with body "bye"`,
		"targets: {a: {command: ./app, matrix: {env: {SAYS: [hello, bye]}}}}\n"+requests)
	check(1, `a-say-hello responds with body "hello", but a-say-bye responds with body "bye"`,
		"targets: {a: {command: 'SAYS={say} ./app', matrix: {args: {say: [hello, bye]}}}}\n"+
			requests)
	check(1, "prony.yaml:1: with the axis X, the matrix makes 0 targets",
		"targets: {a: {command: ./app, matrix: {env: {X: []}}}}\n"+requests)
	check(1, `a responds with status 200, but status 404 is expected: "hello"`,
		"targets: {a: {command: ./app}}\nrequests: [{request: GET /, expect: {status: 404}}]\n"+
			"ready: /\n")
	check(1, `a responds with body "hello", but body "bye" is expected`,
		"targets: {a: {command: ./app}}\nrequests: [{request: GET /, expect: {body: bye}}]\n")
	check(1, "connection refused; start the service first",
		"targets: {a: {url: 'http://127.0.0.1:1'}}\n"+requests)
	check(1, "revision nothing",
		"targets: {a: {command: ./app, git: nothing, build: x}}\n"+requests)
	check(1, "  broken\n", "targets: {a: {command: ./app, git: main, "+
		"build: echo broken; exit 7}}\n"+requests)
	_, stderr, _ := inProject(t, "targets: {a: {command: ./app, build: exit 7}}\n"+requests, "run")
	if !strings.Contains(stderr, "exit status 7") || strings.Contains(stderr, "listens at") {
		t.Errorf("a build that fails is told of ports: %s", stderr)
	}
	check(1, "needs no-such-tool: not found",
		"targets: {a: {command: ./app, needs: [{tool: no-such-tool}]}}\n"+requests)
	one := "targets: {a: {command: ./app}}\n" + requests
	check(2, `no target or service matches "b"; there are a`, one, "--targets", "b")
	check(2, `prony.yaml has no suites, so it has no suite "x"`, one, "x")
	check(1, `baseline "b" is not among the targets of this project`,
		"targets: {a: {command: ./app}, b: {command: ./app}}\n"+requests+
			"suites: {x: {targets: [a], baseline: b}}\n", "x")
	check(2, "--against needs a checkout", one, "--against", "..")
	if entries, err := os.ReadDir(filepath.Join(dir, ".prony", "run")); err == nil {
		t.Errorf("it left %v", entries)
	}
	if err := os.Remove("prony.yaml"); err != nil {
		t.Fatal(err)
	}
	_, stderr, exit := really("run")
	if exit != 1 || !strings.Contains(stderr, "or into a folder with a prony.yaml") {
		t.Errorf("without a project: exit %d, %s", exit, stderr)
	}
}

// An empty key of how a target is obtained does not select another way.
func TestProjectHasNoEmptyTarget(t *testing.T) {
	ownFolder(t)
	for key, empty := range map[string]string{"git: '', build: x": "git", "git: , build: x": "git",
		"url: ' '": "url", "image: ''": "image", "build: ''": "build"} {
		_, stderr, exit := inProject(t, "targets: {a: {command: ./app, "+key+
			"}}\nrequests: [{request: GET /}]\n", "run")
		if exit != cli.Failed {
			t.Errorf("%s: exit %d, want %d", key, exit, cli.Failed)
		}
		has(t, "what is said", stderr, "prony.yaml:1: the key "+empty+" of target a is empty")
	}
}

// All rows of a matrix share one build.
func TestMatrixIsBuiltOnce(t *testing.T) {
	testsets.Once(t, "the build of a matrix", testsets.Needs{})
	ownFolder(t)
	count := filepath.Join(t.TempDir(), "count")
	t.Setenv("COUNT", count)
	_, stderr, exit := inProject(t, "targets: {a: {command: ./out, build: 'echo x >> $COUNT; "+
		"cp app out', matrix: {env: {SAYS: [hello, bye]}}}}\n"+requests, "run")
	if exit != cli.Failed {
		t.Errorf("exit %d", exit)
	}
	has(t, "what is said", stderr,
		`a-SAYS-hello responds with body "hello", but a-SAYS-bye responds with body "bye"`)
	if text, err := os.ReadFile(count); err != nil || string(text) != "x\n" {
		t.Errorf("it was built %d times, error %v", strings.Count(string(text), "x"), err)
	}
}

// Requests are sent with values of the environment, which stay out of the run.
func TestProjectAsksWithEnvironment(t *testing.T) {
	testsets.Whole(t, "whole comparisons")
	ownFolder(t)
	var asked []string
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, "for s3cret")
	}))
	defer server.Close()
	text := "targets: {a: {url: '" + server.URL + `'}}
ready: '-'
requests:
  - {request: POST /login, setup: run, headers: {Authorization: 'Bearer ${PRONY_TEST_TOKEN}'}}
  - {request: GET /me, headers: {Authorization: 'Bearer ${PRONY_TEST_TOKEN}'}}
warmup: {min: 0s, max: 100ms, connections: 1}
loads: [{name: peak, model: closed, connections: 1, measure: 200ms}]
blocks: 1
`
	_, stderr, exit := inProject(t, text, "run")
	if exit != cli.Failed || strings.Contains(stderr, "$PORT") || len(asked) > 0 {
		t.Errorf("without the variable: exit %d, asked %q, it says\n%s", exit, asked, stderr)
	}
	has(t, "what is said", stderr, "GET /me: the environment has no PRONY_TEST_TOKEN")
	t.Setenv("PRONY_TEST_TOKEN", "s3cret")
	stdout, stderr, exit := inProject(t, text, "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "what is said", stderr,
		"GET /me is checked against status and length (10 bytes), because "+
			"the body contains the value of ${PRONY_TEST_TOKEN} (status 200)")
	if mu.Lock(); len(asked) < 4 || !slices.Equal(asked[:3],
		slices.Repeat([]string{"GET /me Bearer s3cret"}, 3)) {
		t.Errorf("first it asks %q", asked[:min(len(asked), 4)])
	}
	mu.Unlock()
	out, err := exec.Command("grep", "-rl", "s3cret", ".prony").Output()
	if err == nil || len(out) > 0 {
		t.Errorf("the value is in %s", out)
	}
}

// A plan starts nothing, in any folder below the file.
func TestProjectPlans(t *testing.T) {
	ownFolder(t)
	const text = `targets:
  a: {command: ./app}
  b: {command: ./none-yet, git: main, build: go build}
  c: {command: 'touch started; false'}
baseline: a
requests: [{request: GET /}]
suites:
  peak: {targets: [b], loads: [{name: all, model: closed}], blocks: 7}
`
	const swept = `targets: {a: {command: ./app, matrix: {env: {GOGC: [50, 100], X: [1, 2]}}}}
baseline: a
requests: [{request: GET /}]
`
	const mixed = `targets: {a: {command: ./app}}
scenarios:
  - {name: one, protocol: h3, tls: {insecure: true}, requests: [{request: GET /}]}
  - {name: two, requests: [{request: GET /}]}
`
	check := func(line string, wants ...string) {
		t.Helper()
		stdout, stderr, exit := inProject(t, text, strings.Fields(line)...)
		if exit != cli.Fine {
			t.Fatalf("%q: exit %d\n%s", line, exit, stderr)
		}
		has(t, "the plan", stdout, wants...)
	}
	check("plan", "project\nplan ", "9 trials in 3 starts", "peak (closed, 64 connections, 2s)",
		"half (open")
	check("plan --targets a,b --blocks 2", "4 trials in 2 starts")
	check("plan --quick", "9 trials in 3 starts", "1s)")
	check("plan peak", "peak\nplan ", "7 trials in 7 blocks", "all (closed")
	rows, stderr, exit := inProject(t, swept, "plan", "--blocks", "1")
	if exit != cli.Fine {
		t.Errorf("a matrix: exit %d, %s", exit, stderr)
	}
	has(t, "the plan of a matrix", rows, "4 trials in 1 start", "a-GOGC-50-X-1", "a-GOGC-50-X-2",
		"a-GOGC-100-X-1", "a-GOGC-100-X-2")
	if rows, stderr, exit = inProject(t, mixed, "plan", "--blocks", "1"); exit != cli.Fine {
		t.Errorf("two protocols: exit %d, %s", exit, stderr)
	}
	has(t, "the plan of two protocols", rows, " one in h3 ", " two ")
	// Targets that cannot be containers are in no plan of containers, which reports them.
	_, stderr, exit = inProject(t, text, "plan", "--launcher", "docker")
	if exit != cli.Misused {
		t.Errorf("nothing in containers: exit %d, %s", exit, stderr)
	}
	has(t, "what is said", stderr, "none of the targets can run as a container; a: it has no "+
		"Dockerfile", "add process to the launchers")
	some := strings.Replace(text, "c: {command: 'touch started; false'}", "c: {image: 'c:1'}", 1)
	_, stderr, exit = inProject(t, strings.Replace(some, "baseline: a", "", 1), "plan",
		"--launcher", "docker")
	if exit != cli.Fine {
		t.Errorf("one image: exit %d, %s", exit, stderr)
	}
	has(t, "what is said", stderr, "the container of target a is left out: it has no Dockerfile")
	if _, stderr, exit := inProject(t, text, "plan"); exit != cli.Fine {
		t.Errorf("back again: exit %d, %s", exit, stderr)
	}
	if exists("started") {
		t.Error("it started a target")
	}
	if err := os.Mkdir("below", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("below")
	stdout, _, _ := really("plan")
	has(t, "the plan from below", stdout, "9 trials")
}

// A URL may be https, and on another machine if a flag permits it.
func TestProjectElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "targets: {far: {url: 'https://192.0.2.1:8443'}}\nrequests: [{request: GET /}]\n"
	_, stderr, exit := inProject(t, text, "plan")
	if exit != cli.Failed {
		t.Errorf("another machine: exit %d", exit)
	}
	has(t, "what is said", stderr, "is another machine", "--remote 192.0.2.1")
	stdout, stderr, exit := inProject(t, text, "plan", "--remote", "192.0.2.1", "--blocks", "1")
	if exit != cli.Fine {
		t.Errorf("one that is named: exit %d, %s", exit, stderr)
	}
	has(t, "the plan", stdout, "1 trial in 1 block", "far")
}

// A real run of a file: a command and a revision that is built, one that lacks a tool, a mix of
// requests with expectations from the file and from responses; and then the rest of it.
func TestProjectMeasures(t *testing.T) {
	testsets.Once(t, "a project that is measured", testsets.Needs{})
	dir := ownFolder(t)
	if err := os.WriteFile("body.json", []byte(`{"a":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const text = `targets:
  here: {command: ./app, env: {SAYS: hello}, needs: [{tool: git, version: git --version}]}
  main: {command: ./app, git: main, build: go build -o app .}
  lacks: {command: ./app, needs: [{tool: no-such-tool}]}
baseline: main
limits: {cpus: 1, memory: 512M}
warmup: {min: 0s, max: 300ms, connections: 4}
blocks: 1
slices: 500ms
requests:
  - request: GET /
    weight: 3
  - {request: POST /x, bodyFile: body.json, type: application/json, expect: {body: hello}}
loads: [{name: peak, model: closed, connections: 4, measure: 300ms}]
`
	stdout, stderr, exit := inProject(t, text, "run")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "what is said", stderr, "service lacks is left out: it needs no-such-tool: not found",
		"GET / is checked against status 200 and every byte of the body")
	has(t, "the report", stdout, "project · 2 targets × 1 start", "reproduce  prony run",
		"lacks", "needs no-such-tool")
	runs, err := filepath.Glob(filepath.Join(dir, ".prony", "run", "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, error %v", runs, err)
	}
	head, records, bad, err := record.Read(runs[0])
	if err != nil || len(bad) > 0 || len(records) != 2 || head.Baseline != "main" {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		needs := r.Target.Name == "here"
		if r.Outcome != record.Measured || len(r.Artifact.SHA256) != 64 ||
			r.Loads[0].Errors.Total() != 0 || (r.Provenance.Tools["git"] != "") != needs {
			t.Errorf("%s: %s, artifact %q, errors %+v, tools %v", r.Target.Name, r.Outcome,
				r.Artifact.SHA256, r.Loads[0].Errors, r.Provenance.Tools)
		}
	}
	trials := filepath.Join(runs[0], record.TrialsFile)
	all, err := os.ReadFile(trials)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(all), "\n")
	if err := os.WriteFile(trials, []byte(first+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, stderr, _ = inProject(t, text, "run", "--resume", runs[0])
	// A start counts as a whole.
	has(t, "going on", stderr, "0 of 2 trials are complete: the others run now")
	if _, records, _, err := record.Read(runs[0]); err != nil || len(records) != 2 {
		t.Errorf("after going on there are %d records, error %v", len(records), err)
	}
	if out, err := exec.Command("git", "status", "--porcelain", ".prony").Output(); err != nil ||
		len(out) > 0 {
		t.Errorf("git sees %q, error %v", out, err)
	}
}
