package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/machine"
	"prony.example/record"
)

// hasty is the real machine without a look at its other programs: runs neither grade the host nor
// wait up to 2 s before each trial until others rest. TestRealRun does both.
type hasty struct{ machine.World }

// Examine implements lab.World.
func (hasty) Examine(ctx context.Context, o doctor.Options) record.Grading {
	return mock{}.Examine(ctx, o)
}

// Lab implements lab.World.
func (w hasty) Lab(j *process.Journal, launchers *lab.Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	out := w.World.Lab(j, launchers, l, dir, observe)
	out.Quiet = nil
	return out
}

// really runs the program in this process, in the real world and real time.
func really(args ...string) (stdout, stderr string, exit int) {
	return reallyIn(hasty{}, args...)
}

// reallyIn is really in a world that differs from it.
func reallyIn(w lab.World, args ...string) (stdout, stderr string, exit int) {
	var out, errs bytes.Buffer
	exit = cli.Code(run(context.Background(), w, args, &out, &errs))
	return out.String(), errs.String(), exit
}

// unspoilt returns an exit code, without INVALID: on a busy machine, such a short load may be
// INVALID, but was measured.
func unspoilt(exit int) int {
	if exit == cli.Invalid {
		return cli.Fine
	}
	return exit
}

// only returns the single record of a folder.
func only(t *testing.T, dir string) *record.Record {
	t.Helper()
	head, records, bad, err := record.Read(dir)
	if err != nil || len(bad) > 0 || len(records) != 1 {
		t.Fatalf("%s: %d records, bad %v, error %v", dir, len(records), bad, err)
	}
	if head.ID == "" || len(head.Requests[records[0].Scenario]) == 0 {
		t.Errorf("the head of %s lacks its id or requests: %+v", dir, head)
	}
	return records[0]
}

// A saved load is a run: every verb that reads runs accepts it, and it contains no value that was
// not measured.
func TestSavedLoad(t *testing.T) {
	url, dir := null(t), t.TempDir()
	a, b, page := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "p.html")
	for _, args := range [][]string{{"--save=" + a}, {"--save=" + b, "-o", page}} {
		args = append([]string{"load", url, "-n", "200", "-c", "2", "--view", "none"}, args...)
		out, stderr, exit := really(args...)
		if unspoilt(exit) != cli.Fine {
			t.Fatalf("exit %d: %s", exit, stderr)
		}
		has(t, "what is said", out+stderr, "throughput", "stored in "+dir)
	}
	rec := only(t, a)
	name := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	if rec.Target.Name != name || rec.Target.URL != url || rec.Loads[0].Answered != 200 ||
		rec.Loads[0].Service.Source != "" || rec.Provenance.ScenarioHash == "" {
		t.Errorf("record %+v", rec)
	}
	pageText, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(pageText),
		"<h1>load of "+name+": "+only(t, b).Verdict.Grade+"</h1>") {
		t.Errorf("the page does not begin with the verdict, error %v", err)
	}
	if !exists(a, "hdr", rec.Trial+".load.hlog") || !exists(a, "report.html") || !exists(page) {
		t.Error("histograms, report or page are missing")
	}
	for _, format := range []string{"text", "markdown", "csv", "json", "html"} {
		out, stderr, exit := really("report", a, "--format", format)
		if exit != cli.Fine {
			t.Errorf("report as %s: exit %d: %s", format, exit, stderr)
		}
		if format == "text" {
			has(t, "the report", out, name, "This run did not start the server")
			for _, unseen := range []string{"RSS", "CPU µs", "time to steady", " 0 s"} {
				if strings.Contains(out, unseen) {
					t.Errorf("the report tells of %s:\n%s", unseen, out)
				}
			}
		}
	}
	for _, verb := range [][]string{{"compare", a, b}, {"gate", a, b}, {"trend", dir}} {
		out, stderr, exit := really(verb...)
		if exit == cli.Misused || exit == cli.Failed {
			t.Errorf("%v: exit %d: %s%s", verb, exit, out, stderr)
		}
	}
}

// Loads with other requests or another timeout are not comparable; with another server they are.
func TestSavedLoadsThatAreUnlike(t *testing.T) {
	testsets.Whole(t, "whole loads")
	dir := t.TempDir()
	save := func(name, url string, more ...string) string {
		to := filepath.Join(dir, name)
		args := append([]string{"load", url, "-n", "20", "-c", "1", "--view", "none", "--name",
			"it", "--save=" + to}, more...)
		if _, stderr, exit := really(args...); exit == cli.Misused || exit == cli.Failed {
			t.Fatalf("exit %d: %s", exit, stderr)
		}
		return to
	}
	first, scenario := save("a", null(t)), filepath.Join(dir, "mix.yaml")
	for name, args := range map[string][]string{"": nil, "header": {"-H", "a: b"},
		"timeout": {"--timeout", "4s"}, "lead": {"--lead-in", "1ms"}} {
		_, stderr, exit := really("compare", first, save("b"+name, null(t), args...))
		if unlike := strings.Contains(stderr, "requests in full"); unlike != (name != "") {
			t.Errorf("%q: exit %d: %s", name, exit, stderr)
		}
	}
	one := "name: mix\nrequests:\n  - request: GET /\n    expect: {status: 200}\n"
	for i, text := range []string{one, strings.ReplaceAll(one, "GET /", "GET /x")} {
		if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		save([]string{"m", "n"}[i], null(t), "--scenario", scenario)
	}
	if only(t, filepath.Join(dir, "m")).Provenance.ScenarioHash ==
		only(t, filepath.Join(dir, "n")).Provenance.ScenarioHash {
		t.Error("two scenario files have one fingerprint")
	}
}

// Errors of saving are reported before the load; a folder with a run is left unchanged.
func TestSaveRefused(t *testing.T) {
	url, dir := null(t), t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, record.RunFile), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args []string
		exit int
		says string
	}{
		{[]string{"--save=" + run}, cli.Misused, "already contains a run; choose another folder"},
		{[]string{"--save=" + file}, cli.Failed, "choose another folder with --save"},
		{[]string{"--name", "x"}, cli.Misused, "needs --save"},
		{[]string{"-o", "page.pdf"}, cli.Misused, "page.pdf"},
	} {
		args := append([]string{"load", url, "-n", "10", "-c", "1"}, row.args...)
		out, stderr, exit := really(args...)
		if exit != row.exit || !strings.Contains(stderr, row.says) || out != "" {
			t.Errorf("%v: exit %d, %q, %q", row.args, exit, out, stderr)
		}
	}
}

// A server that ends during the load leaves an INVALID record; so does one that never ran.
func TestSavedLoadOfTheDead(t *testing.T) {
	testsets.Whole(t, "whole loads")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("ok")) // the load counts missing responses
	}))
	dir, url := t.TempDir(), s.URL
	for _, name := range []string{"dies", "dead"} {
		to := filepath.Join(dir, name)
		if name == "dies" {
			time.AfterFunc(500*time.Millisecond, func() { s.CloseClientConnections(); s.Close() })
		}
		_, stderr, exit := really("load", url, "-d", "1s", "-c", "2", "--lead-in", "10ms",
			"--view", "none", "--save="+to)
		rec := only(t, to)
		if exit == cli.Fine || rec.Verdict.Grade != record.Invalid {
			t.Errorf("%s: exit %d, %+v: %s", name, exit, rec.Verdict, stderr)
		}
	}
}

// Two servers on one host have separate files and targets.
func TestRainOfOneHost(t *testing.T) {
	into, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	a := null(t)
	_, stderr, exit := really("rain", a, null(t), a, "-n", "20", "-c", "1", "--into", into,
		"--save="+dir)
	if exit == cli.Misused {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	if files, err := filepath.Glob(filepath.Join(into, "*", "*.json")); len(files) != 3 {
		t.Errorf("files %v, error %v", files, err)
	}
	_, records, bad, err := record.Read(dir)
	names := map[string]bool{}
	for _, r := range records {
		names[r.Target.Name] = true
	}
	if err != nil || len(bad) > 0 || len(names) != 3 {
		t.Errorf("targets %v, bad %v, error %v", names, bad, err)
	}
}

// Loads that began in the same second are all kept: the second one takes another folder once the
// first one has made it.
func TestSavedInTheSameSecond(t *testing.T) {
	results := t.TempDir()
	var kept []*keeper
	for range 3 {
		k := &keeper{results: results, flags: &saveFlags{verb: "load"},
			head: record.Run{Requests: map[string][]string{}}}
		k.head.ID, k.dir = record.NewFolder(results, "2026-01-01T00-00-00Z")
		kept = append(kept, k)
	}
	dirs := map[string]string{}
	for _, k := range kept {
		if err := k.open(&offer{}); err != nil {
			t.Fatal(err)
		}
		if err := k.out.Close(); err != nil {
			t.Error(err)
		}
		dirs[k.dir] = k.head.ID
	}
	for dir, id := range dirs {
		if filepath.Base(dir) != id {
			t.Errorf("run %s is in %s", id, dir)
		}
	}
	if len(dirs) != 3 {
		t.Errorf("folders %v, want 3", dirs)
	}
}
