package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry/traces"
	"prony.example/internal/trial/lab"
	"prony.example/record"
)

// emptyRun makes a run without records, and returns its folder.
func emptyRun(t *testing.T, folders ...string) string {
	t.Helper()
	dir := filepath.Join(folders...)
	w, err := record.Create(dir, record.Run{ID: filepath.Base(dir)})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Folders may have names that a pattern, a shell or RUN:TARGET would read differently.
func TestOddFolders(t *testing.T) {
	dir := t.TempDir()
	run := emptyRun(t, dir, "[a] b:c", "run")
	if got := newest(filepath.Dir(run)); len(got) != 1 || got[0] != run {
		t.Errorf("the newest run is %q, want %s", got, run)
	}
	f := profileFlags{diff: run + ":go-gin"}
	if from, g := f.against("other"); from != run || g.target != "go-gin" {
		t.Errorf("--diff is %s of %s", g.target, from)
	}
	f.diff = run
	if from, g := f.against("other"); from != run || g.target != "" {
		t.Errorf("--diff is %s of %s, want the same target", g.target, from)
	}
	f.diff = "app:1.2"
	if from, g := f.against("other"); from != "other" || g.target != "app:1.2" {
		t.Errorf("--diff is %s of %s, want a target of this run", g.target, from)
	}
	var out bytes.Buffer
	a := &app{stdout: &out, stderr: &out}
	list := []*traces.Trace{{TraceID: strings.Repeat("1", 32)}}
	if err := a.traceTable("a b", list, tracesFlags{}); err != nil {
		t.Fatal(err)
	}
	has(t, "the table", out.String(), "prony traces 'a b' --id")
}

// Trend and site read the runs of a project, and a folder of runs that is a symbolic link.
func TestRunsOfProjects(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("prony.yaml", []byte("targets: {a: {url: http://127.0.0.1:1}}\n"+
		"requests: [{request: GET /}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	emptyRun(t, dir, ".prony", "run", "one")
	if err := os.Symlink(filepath.Join(".prony", "run"), "link"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"trend", "trend link", "site", "site link"} {
		_, stderr, exit := say(t, mock{}, strings.Fields(line)...)
		if exit != cli.Fine {
			t.Errorf("%s: exit %d: %s", line, exit, stderr)
		}
	}
}

// A share of 0 % is not the default.
func TestNoTraces(t *testing.T) {
	f := observeFlags{telemetry: []string{embedded}, traces: "0%"}
	var w lab.Wish
	if err := f.wish(&w); err != nil || w.Override.Watch.Traces != 0 {
		t.Errorf("traces %v, error %v", w.Override.Watch.Traces, err)
	}
	f.traces = ""
	if err := f.wish(&w); err != nil || w.Override.Watch.Traces != suite.Percent(0.05) {
		t.Errorf("without --traces: %v, error %v", w.Override.Watch.Traces, err)
	}
}

// A row of the only file is not left out of the comparison without a word.
func TestCompareOneRow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.md")
	text := "| target | throughput |\n|---|---|\n| a | 1000/s |\n| b | 2000/s |\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := emptyRun(t, t.TempDir(), "run")
	for _, line := range [][]string{{file + ":a"}, {file + ":a", "--targets", "a,b"},
		{run + ":a", "--targets", "a,b"}, {run + ":a"}} {
		_, stderr, exit := say(t, mock{}, append([]string{"compare"}, line...)...)
		if exit != cli.Misused {
			t.Errorf("%q: exit %d", line, exit)
		}
		has(t, "the error", stderr, "names only one row")
	}
}
