package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

const forSuite = `
name: timed
contract: hello
targets: [java-jdk/virtual, go-nethttp]
warmup: {connections: 8, min: 1s, max: 8s, cores: all}
slices: 500ms
scenarios:
  - name: read
    keys: [1, 50000]
    requests:
      - request: GET /hello/{mode}?key={key}
        expect: {body: "Hello from REST value-{key}"}
loads:
  - {name: peak, model: closed, connections: 8, measure: 500ms}
`

// A real run with a time budget, of a JVM that warms up on all cores and has its own in the window,
// and of a service that does not compile and keeps its own.
func TestRealRunForATime(t *testing.T) {
	testsets.Once(t, "a real run for a time", needs(t, "", "go-nethttp", "java-jdk"))
	testsets.Measured(t)
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	root := checkout(t)
	file, dir := filepath.Join(root, "timed.yaml"), filepath.Join(root, "r")
	if err := os.WriteFile(file, []byte(forSuite), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, exit := really("run", file, "--root", root, "--out", dir, "--for", "15s",
		"--warmup", "8s")
	if exit != cli.Fine && exit != cli.Invalid {
		t.Fatalf("exit %d\n%s%s", exit, stdout, stderr)
	}
	has(t, "the last line", stdout, "; another 5 min would allow ")
	s, err := record.ReadSchedule(dir)
	if err != nil || s == nil || s.Ended == "" || len(s.Looks) == 0 {
		t.Fatalf("schedule %+v, error %v", s, err)
	}
	// The time limits blocks by an estimate; only the first block begins without one.
	if len(s.Looks) > 1 && s.SpentNs > s.ForNs*3/2 {
		t.Errorf("it took %d ns of %d", s.SpentNs, s.ForNs)
	}
	_, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) < 2 {
		t.Fatalf("%d records, bad %v, error %v\n%s", len(records), bad, err, stderr)
	}
	for _, r := range records {
		w, own := r.Warmup, r.Limits.ServiceCores
		if r.Outcome != record.Measured {
			t.Fatalf("%s: %+v", r.Trial, r.Failure)
		}
		if r.Target.Runtime != "jvm" {
			if w.Cores != nil || w.CoresReducedAtNs != 0 || r.Loads[0].Service.Roles != nil {
				t.Errorf("%s: %+v, %+v", r.Trial, w, r.Loads[0].Service.Roles)
			}
			continue
		}
		roles := r.Loads[0].Service.Roles
		if roles == nil || roles.GCNs <= 0 || w.CompilersIdleAtNs == 0 {
			t.Errorf("%s: roles %+v, silent at %d", r.Trial, roles, w.CompilersIdleAtNs)
		}
		if os.Getuid() == 0 && w.PrioritizedThreads == 0 {
			t.Errorf("%s: its compilers did not go first", r.Trial)
		}
		// The test machine may have one core.
		if r.Provenance.Cores > 1 && (len(w.Cores) <= len(own) || w.CoresReducedAtNs <= 0 ||
			!slices.ContainsFunc(w.InForce, func(l record.Limit) bool {
				return slices.Contains(l.Cores, 0) && slices.Contains(l.Cores, 1)
			}) || slices.ContainsFunc(r.Limits.InForce, func(l record.Limit) bool {
			return reflect.DeepEqual(l, w.InForce[0])
		})) {
			t.Errorf("%s: %+v, then %+v", r.Trial, w, r.Limits)
		}
	}
}
