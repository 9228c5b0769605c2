package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/report/runs"
	"prony.example/record"
)

// hostile is a name that would change the terminal's title and hide earlier output.
const hostile = "go-\x1b]0;pwned\x07\x1b[2J\u009b8m"

// control reports whether a terminal interprets a character.
func control(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }

// A terminal receives only text, for any names in records, published results and arguments.
func TestNothingObeyedReachesTheTerminal(t *testing.T) {
	root := checkout(t)
	a, b := filepath.Join(root, "results", "A"), filepath.Join(root, "results", "B")
	for _, dir := range []string{a, b} {
		if _, stderr, exit := say(t, mock{}, "run", "--root", root, "--out", dir, "--targets",
			"go-nethttp,rust-axum"); exit != cli.Fine {
			t.Fatal(stderr)
		}
		for _, file := range []string{"run.json", "trials.ndjson"} {
			exchange(t, filepath.Join(dir, file), "go-nethttp",
				`go-\u001b]0;pwned\u0007\u001b[2J\u009b8m`)
		}
	}
	results := filepath.Join(root, "results.md")
	text, err := os.ReadFile(published("docker-microservices.md"))
	if err == nil {
		err = os.WriteFile(results, bytes.ReplaceAll(text, []byte("|\n"), []byte(hostile+"|\n")),
			0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRONY_ROOT", root)
	seen := 0
	for _, args := range [][]string{
		{"report", a}, {"report", a, "--format", "markdown"}, {"report", a, "--format", "csv"},
		{"report", a, "--format", "json"}, {"report", a, "--format", "html"},
		{"compare", a, b}, {"compare", a, b, "--format", "json"},
		{"compare", a, "--targets", hostile + ",rust-axum"}, {"trend", a, b}, {"gate", a, b},
		{"audit", a}, {"audit", results}, {"audit", results, "--format", "json"},
		{"explain", a}, {"report", hostile}, {hostile}, {"load", "http://" + hostile},
		{"run", "-x", "--targets", hostile},
	} {
		stdout, stderr, _ := say(t, mock{}, args...)
		all := stdout + stderr
		if at := strings.IndexFunc(all, control); at >= 0 {
			t.Errorf("%q prints %q", args, all[max(0, at-60):min(len(all), at+60)])
		}
		if strings.Contains(all, `\u001b]0;pwned\u0007`) {
			seen++
		}
	}
	if seen < 10 {
		t.Errorf("the name is shown by %d of the verbs: this test proves little", seen)
	}
}

func exchange(t *testing.T, file, old, by string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.ReplaceAll(text, []byte(old), []byte(by)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A shell reads a line that reproduces a run as it was typed, and no password is in the line, in
// stored files, or in errors.
func TestReproduceLines(t *testing.T) {
	testsets.Whole(t, "whole runs")
	line := runs.Reproduce(record.Run{File: "my suite.yaml", Seed: 7, Blocks: 2, Command: []string{
		"prony", "run", "--targets", "a'b*", "--telemetry=otlp=http://ann:s3cret@h"}})
	const want = `prony run 'my suite.yaml' --targets 'a'\''b*' ` +
		`--telemetry=otlp=http://ann:xxxxx@h` +
		` --seed 7 --blocks 2`
	if line != want {
		t.Errorf("reproduce is\n%s, want\n%s", line, want)
	}
	line = runs.Reproduce(record.Run{File: "sub/prony.yaml", Seed: 7, ForNs: 6e10,
		Command: []string{"prony", "run", "second", "--for", "60s", "--out", "d", "--seed=1"}})
	if line != "prony run second --seed 7 --for 1m0s" {
		t.Errorf("reproduce is %s", line)
	}
	line = runs.Reproduce(record.Run{File: "suites/x.yaml", Seed: 7, Blocks: 2, Command: []string{
		"prony", "--root", "r", "run", "--aa", "r/suites/x.yaml", "--label", "a=b"}})
	if line != "prony run suites/x.yaml --root r --aa --label a=b --seed 7 --blocks 2" {
		t.Errorf("reproduce is %s", line)
	}
	addr, stop, err := truth.Start(truth.Fixed(0))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	at := "http://ann:s3cret@" + addr.String() + "/"
	for _, args := range [][]string{
		{"load", at, "-d", "100ms", "-c", "1", "--view", "plain"},
		{"load", at, "-d", "100ms", "-c", "1", "--view", "none", "--output", "hlog"},
		{"capacity", at, "--concurrency", "1,2", "--window", "100ms"},
		{"load", "nothing://ann:s3cret@" + addr.String()}, {"wrk", at, at},
	} {
		stdout, stderr, exit := really(args...)
		all := stdout + stderr
		if strings.Contains(all, "s3cret") || !strings.Contains(all, "ann:xxxxx@") {
			t.Errorf("%q (exit %d) says\n%s", args, exit, all)
		}
	}
}
