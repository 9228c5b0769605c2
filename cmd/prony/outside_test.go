package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// A service that is killed from outside ends its trial as one record that says so, and leaves
// nothing.
func TestServiceKilledFromOutside(t *testing.T) {
	testsets.Whole(t, "a service that is killed in a run")
	runtime := t.TempDir()
	p := startRun(t, checkout(t), runtime)
	pid := service1(t, runtime)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := p.Wait()
	if p.ProcessState.ExitCode() != cli.Invalid {
		t.Errorf("ended with %v, want exit %d\n%s", err, cli.Invalid, p.errs)
	}
	gone(t, pid)
	_, records, bad, err := record.Read(p.dir)
	if err != nil || len(bad) > 0 || len(records) != 1 {
		t.Fatalf("records %v, bad %v, error %v", records, bad, err)
	}
	r := records[0]
	const words = "the service ended (signal: killed)"
	if r.Failure == nil || !strings.Contains(r.Failure.Error, words) ||
		r.Verdict.Grade != record.Invalid {
		t.Errorf("failure %+v, verdict %+v", r.Failure, r.Verdict)
	}
}

// An agent breaks the service: its trial fails with the service's words, the bare one is measured,
// and no ratio is printed.
func TestRideBreaksTheService(t *testing.T) {
	testsets.Whole(t, "a service that breaks of what rides along")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	root := checkout(t)
	file, dir := filepath.Join(root, "ride.yaml"), filepath.Join(root, "r")
	const text = `
name: ride
question: What does a broken agent cost?
contract: hello
blocks: 1
limits: {cpus: 1, memory: 64MiB}
warmup: {connections: 2, min: 100ms, max: 300ms}
scenarios:
  - name: read
    keys: [1, 50000]
    requests:
      - request: GET /hello/{mode}?key={key}
        expect: {body: "Hello from REST value-{key}"}
loads:
  - {name: peak, model: closed, connections: 2, measure: 300ms}
variants: [{name: broken, env: {GOMEMLIMIT: nonsense}}]
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exit := really("run", file, "--root", root, "--out", dir, "--targets",
		"go-nethttp")
	if exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != 2 {
		t.Fatalf("%d records, bad %v, error %v", len(records), bad, err)
	}
	for _, r := range records {
		f := r.Failure
		if r.Target.Variant != "broken" {
			if f != nil {
				t.Errorf("the bare one failed: %+v", f)
			}
			continue
		}
		if f == nil || !strings.Contains(f.Error, "the service ended") ||
			!strings.Contains(strings.Join(f.Log, "\n"), "GOMEMLIMIT") {
			t.Errorf("with what breaks it: %+v", f)
		}
	}
	has(t, "the report", stdout, "broken")
}
