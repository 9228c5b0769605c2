package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/record"
)

// Both arms of the mock target are equal except for a percent of noise: the report shows the noise
// floor, and the plan the number of blocks to detect a difference.
func TestNoiseFloor(t *testing.T) {
	testsets.Whole(t, "whole runs")
	root := checkout(t)
	_, stderr, exit := say(t, mock{}, "plan", "--root", root, "--detect", "3%")
	if exit != cli.Failed {
		t.Errorf("exit %d without an A/A run", exit)
	}
	has(t, "stderr", stderr, "no A/A run of this machine", "prony run --aa")

	stdout, stderr, exit := say(t, mock{}, "run", "--root", root, "--aa", "--targets",
		"go-nethttp", "--blocks", "6")
	if exit != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	has(t, "report", stdout, "go-nethttp (a)", "go-nethttp (b)", "Noise floor", "peak req/s",
		"resolves", "arm b's value divided by arm a's", "--aa")
	has(t, "progress", stderr, "12 trials in 6 starts")

	stdout, stderr, exit = say(t, mock{}, "plan", "--root", root, "--detect", "3%")
	if exit != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	has(t, "plan", stdout, "noise floor of", "go-nethttp", "peak throughput", "3.0 % OF TWO",
		"4 STARTS RESOLVE", "Starts that detect the difference", "All 5",
		"The noise is from blocks, but the plan has starts: make a new run")
	runs, err := filepath.Glob(filepath.Join(root, "results", "[0-9]*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v: %v", runs, err)
	}
	if strings.Contains(stdout, "is not a target of this plan") {
		t.Errorf("the floor is of one of its targets:\n%s", stdout)
	}
	other, _, _ := say(t, mock{}, "plan", "--root", root, "--detect", "3%", "--targets",
		"rust-axum")
	has(t, "plan of another target", other, "go-nethttp is not a target of this plan")
	again, _, _ := say(t, mock{}, "plan", "--root", root, "--detect", "0.03", "--from", runs[0])
	if again != stdout {
		t.Errorf("with --from:\n%s\nwant\n%s", again, stdout)
	}

	for _, bad := range []string{"3", "0", "-1%", "x", "100%"} {
		_, _, exit := say(t, mock{}, "plan", "--root", root, "--detect", bad)
		if exit != cli.Misused {
			t.Errorf("--detect %s: exit %d, want %d", bad, exit, cli.Misused)
		}
	}
	_, _, exit = say(t, mock{}, "run", "--root", root, "--targets", "go-nethttp", "--blocks", "2",
		"--out", filepath.Join(root, "plain"))
	if exit != cli.Fine {
		t.Fatal("a plain run")
	}
	_, stderr, exit = say(t, mock{}, "plan", "--root", root, "--detect", "3%", "--from",
		filepath.Join(root, "plain"))
	if exit != cli.Failed {
		t.Errorf("exit %d by a run that is not an A/A run", exit)
	}
	has(t, "stderr", stderr, "is not an A/A run")
}

// A project's noise floor is read from its own runs.
func TestNoiseFloorOfAProject(t *testing.T) {
	root := checkout(t)
	if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--aa", "--targets", "go-nethttp",
		"--blocks", "6"); exit != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	dir := ownFolder(t)
	check := func(exit int, words string) {
		t.Helper()
		stdout, stderr, got := inProject(t, "targets: {a: {command: ./app}}\n"+requests, "plan",
			"--detect", "3%")
		if got != exit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("exit %d, want %d and %q:\n%s%s", got, exit, words, stdout, stderr)
		}
	}
	own := filepath.Join(dir, ".prony", "run")
	check(cli.Failed, "no A/A run of this machine in "+own)
	if err := os.CopyFS(own, os.DirFS(filepath.Join(root, "results"))); err != nil {
		t.Fatal(err)
	}
	check(cli.Fine, "go-nethttp is not a target of this plan")
}

// The same target of another checkout runs in the same blocks, and Prony compares with it.
func TestRunAgainst(t *testing.T) {
	root, other := checkout(t), checkout(t)
	stdout, stderr, exit := say(t, mock{}, "run", "--root", root, "--against", "main="+other,
		"--targets", "go-nethttp,java-jdk", "--blocks", "3")
	if exit != cli.Fine {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	has(t, "report", stdout, "go-nethttp@main", "java-jdk/virtual@main", "vs main",
		"a target's value divided by that of main", "--against")
	has(t, "progress", stderr, "18 trials in 3 starts")

	_, stderr, exit = say(t, mock{}, "run", "--root", root, "--against", "a b="+other)
	if exit != cli.Misused {
		t.Errorf("exit %d for a name with a space: %s", exit, stderr)
	}
	_, stderr, exit = say(t, mock{}, "run", "--root", root, "--against",
		filepath.Join(root, "suites"))
	if exit != cli.Failed {
		t.Errorf("exit %d for a folder without services", exit)
	}
	has(t, "stderr", stderr, "read the other checkout of --against")
	if _, err := os.Stat(filepath.Join(other, "results")); err == nil {
		t.Error("the other checkout was written to")
	}
}

// A run can demand a grade of the host, and names the failed checks.
func TestHostIsRefused(t *testing.T) {
	root := checkout(t)
	m := mock{host: record.Grading{Grade: record.Unfit, Checks: []record.Check{
		{Name: "steal", Grade: record.Unfit, Observed: "31 % stolen"},
	}}}
	args := []string{"run", "--root", root, "--targets", "go-nethttp", "--blocks", "1"}
	check := func(bar string, exit int, words string) {
		t.Helper()
		_, stderr, got := say(t, m, append(args, "--host", bar)...)
		if got != exit || !strings.Contains(stderr, words) {
			t.Errorf("--host %s: exit %d, want %d; %s", bar, got, exit, stderr)
		}
	}
	check("fit", cli.Failed, "prony: refused to measure: the host is unfit, but --host requires "+
		"fit: "+
		"steal (31 % stolen)")
	check("doubtful", cli.Failed, "prony doctor")
	check("any", cli.Fine, "the host is unfit")
	check("good", cli.Misused, "fit, doubtful, any")
	runs, err := filepath.Glob(filepath.Join(root, "results", "[0-9]*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v: %v", runs, err)
	}
	head, _, _, err := record.Read(runs[0])
	if err != nil || head.Host == nil || head.Host.Grade != record.Unfit {
		t.Errorf("head %+v: %v", head, err)
	}
}

// Requests that would measure, report or watch nothing are refused before any work.
func TestNothingIsRefused(t *testing.T) {
	root := checkout(t)
	run := filepath.Join(root, "results", "one")
	one := []string{"run", "--root", root, "--targets", "go-nethttp", "--blocks", "2", "--out", run}
	if _, stderr, exit := say(t, mock{}, one...); exit != cli.Fine {
		t.Fatal(stderr)
	}
	check := func(words string, args ...string) {
		t.Helper()
		stdout, stderr, exit := say(t, mock{}, args...)
		if exit != cli.Misused || !strings.Contains(stderr, words) || stdout != "" {
			t.Errorf("%q: exit %d, said %q and %q, want %q", args, exit, stdout, stderr, words)
		}
	}
	check("already contains a run", one...)
	check("must be greater than 0", "run", "--root", root, "--blocks", "0")
	check("must be greater than 0", "run", "--root", root, "--measure", "0s")
	check("no row with this name; the rows are ", "report", run, "--baseline", "nosuch")
	check("no run has a value", "trend", run, "--metric", "throughputt")
	check("no run has a value", "trend", run, "--targets", "nosuch", "--fail-on-regression")
	check("--latest must be at least 0", "trend", run, "--latest", "-1")
	check("--allow-invalid must be at least 0", "gate", run, "--allow-invalid", "-1")
	check("add -o FILE", "gate", run, "--format", "json", "--github")
	check("add -o FILE", "gate", run, "--format", "csv", "--github")
}
