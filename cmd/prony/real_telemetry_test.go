package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/dev/tidy"
	"prony.example/internal/observe/profile"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/locate"
	"prony.example/internal/telemetry/logs"
	"prony.example/internal/telemetry/traces"
	"prony.example/record"
)

// observedSuite requests a log line with every response, so that traces have log lines.
const observedSuite = `
name: observed
contract: hello
blocks: 1
timeout: 5s
limits: {cpus: 1, memory: 1GiB}
warmup: {connections: 8, min: 1s, max: 2s}
scenarios:
  - name: logged read
    keys: [1, 50000]
    requests:
      - request: GET /hello/{mode}?key={key}&log=true
        expect: {body: "Hello from REST value-{key}"}
loads:
  - {name: busy, model: closed, connections: 8, measure: 2s}
`

// A real observed trial of each kind: a JVM agent, an instrumented Go build. Trace ids connect a
// request of the load with its trace and the log line, and the trial has metrics, a profile and
// garbage collections.
func TestRealObservedRun(t *testing.T) {
	testsets.Whole(t, "real services that are observed")
	n := needs(t, "", "go-nethttp", "java-spring")
	n.Files = slices.Concat(n.Files, homeSources, []string{"agents", "agents.yaml"})
	testsets.Once(t, "real services that are observed", n)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	onPath(t)
	root := checkout(t)
	file, dir := filepath.Join(root, "observed.yaml"), filepath.Join(root, "r")
	if err := os.WriteFile(file, []byte(observedSuite), 0o644); err != nil {
		t.Fatal(err)
	}
	p := exec.Command(os.Args[0], "run", file, "--root", root, "--out", dir, "--telemetry",
		"--targets", "go-nethttp,java-spring/virtual")
	p.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	said, err := p.CombinedOutput()
	if err != nil && p.ProcessState.ExitCode() != cli.Invalid {
		t.Fatalf("%v\n%s", err, said)
	}
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != 4 {
		t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, said)
	}
	for _, r := range records {
		if r.Role == "" {
			continue
		}
		t.Run(r.Target.Name, func(t *testing.T) { checkReal(t, root, dir, r) })
	}
}

// homeSources are the collector's sources, on which no test that starts it depends otherwise.
var homeSources = []string{
	"home",
	"internal/telemetry",
	"internal/report/rows",
	"go.sum",
}

// onPath builds prony-home as a run does, unless it is built, and adds it to the PATH: the
// checkouts of tests do not contain its sources.
func onPath(t *testing.T) {
	t.Helper()
	root, err := tidy.Root()
	if err != nil {
		t.Fatal(err)
	}
	home, err := locate.Finder{Root: root}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(home)+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func checkReal(t *testing.T, root, dir string, r *record.Record) {
	t.Helper()
	if r.Outcome != record.Measured {
		t.Fatalf("%s: %+v", r.Trial, r.Failure)
	}
	l := r.Loads[0]
	if r.Telemetry == nil || total(r, record.Spans) == 0 || total(r, record.Points) == 0 ||
		total(r, record.Logs) == 0 {
		t.Fatalf("telemetry %+v", r.Telemetry)
	}
	if l.Telemetry == nil || l.Telemetry.Spans == 0 || len(l.Traced) == 0 {
		t.Fatalf("told %+v, traced %+v", l.Telemetry, l.Traced)
	}
	home := filepath.Join(dir, telemetry.Dir)
	whole := 0
	for _, x := range l.Traced {
		traceList, _, err := traces.Read(home, traces.Filter{ID: x.TraceID})
		if err != nil {
			t.Fatal(err)
		}
		lines, _, err := logs.Read(home, logs.Filter{TraceID: x.TraceID})
		if err != nil {
			t.Fatal(err)
		}
		if len(traceList) == 1 && len(lines) > 0 {
			whole++
			// A span may end after its response was sent; it begins during the request.
			at := traceList[0].StartNs - l.WindowOpenedUnixNs - x.ScheduledNs
			if at < -clocks || at > x.ResponseNs+clocks {
				t.Errorf("the span of %s begins %d ns after it was due; it took %d", x.TraceID, at,
					x.ResponseNs)
			}
		}
	}
	if whole == 0 {
		t.Errorf("none of %d traced requests has a trace and a log line", len(l.Traced))
	}
	checkRealProfile(t, dir, r)
	if r.Target.Language == "Java" && (l.GC == nil || l.GC.Collector != "G1") {
		t.Errorf("collections %+v", l.GC)
	}
	query := exec.Command(os.Args[0], "query", dir, "--root", root, "--trial", r.Trial,
		"sum by (service_name) (http_server_request_duration_seconds_count)")
	query.Env = append(os.Environ(), "PRONY_TEST_MAIN=1")
	answer, err := query.CombinedOutput()
	if err != nil || !strings.Contains(string(answer), r.Target.Name) {
		t.Errorf("its request rate: %v\n%s", err, answer)
	}
	stdout, stderr, exit := really("explain", dir, "--root", root, "--trial", r.Trial)
	has(t, "the story", stdout, "trace of the request", "as measured by", "CPU time by function")
	if exit != cli.Fine {
		t.Errorf("explain: exit %d, %s", exit, stderr)
	}
}

// checkRealProfile requires the service's own handler in the profile.
func checkRealProfile(t *testing.T, dir string, r *record.Record) {
	t.Helper()
	handler := map[string]string{"Go": "main.", "Java": "prony.Hello"}[r.Target.Language]
	if len(r.Profiles) != 1 || r.Profiles[0].Failed != "" || r.Profiles[0].Samples < 20 {
		t.Fatalf("profiles %+v", r.Profiles)
	}
	in, err := os.Open(filepath.Join(dir, r.Profiles[0].File))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := pprof.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(profile.Top(p, 0), func(row profile.Row) bool {
		return strings.HasPrefix(row.Name, handler)
	}) {
		t.Errorf("no function %s* in a profile by %s", handler, r.Profiles[0].Tool)
	}
}

// clocks is the maximum difference of the clocks of load and service: a JVM's is cut to
// microseconds.
const clocks = 1e6

// total returns the amount of a signal.
func total(r *record.Record, signal string) int64 {
	for _, s := range r.Telemetry.Signals {
		if s.Name == signal {
			return s.Received
		}
	}
	return 0
}
