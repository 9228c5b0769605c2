package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"prony.example/internal/base/cli"
)

// A gate judges a run of versus by the metric that decided there, unless --metric names another.
func TestGateJudgesWhatDecides(t *testing.T) {
	dir := t.TempDir()
	furnish(t, dir)
	t.Chdir(dir)
	_, stderr, exit := say(t, mock{}, "run", "--targets", "go-nethttp,rust-axum", "--blocks", "4",
		"--out", "r")
	if exit != cli.Fine {
		t.Fatalf("exit %d\n%s", exit, stderr)
	}
	check := func(want string, args ...string) {
		t.Helper()
		stdout, stderr, _ := say(t, mock{}, append([]string{"gate", "r:go-nethttp",
			"r:rust-axum"}, args...)...)
		has(t, "the gate", stdout+stderr, want)
	}
	check(": peak throughput changed")
	head := filepath.Join("r", "run.json")
	text, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	decided := bytes.Replace(text, []byte("{"), []byte(`{"decides": "p99",`), 1)
	if err := os.WriteFile(head, decided, 0o644); err != nil {
		t.Fatal(err)
	}
	check(": half p99 changed")
	check(": half p99 changed", "--max-regression", "10%")
	check(": peak throughput changed", "--metric", "throughput")
}
