package main

import (
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
)

// The suffix of --output chooses the format of every verb that has several, unless --format does.
func TestFormatBySuffix(t *testing.T) {
	root := checkout(t)
	dir := measured(t, root, "r")
	check := func(verb, file, begins string, flags ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), file)
		args := append([]string{verb, dir, "-o", path}, flags...)
		if verb == "gate" {
			args = append(args, "--inconclusive", "pass")
		}
		_, stderr, exit := say(t, mock{}, args...)
		got, err := os.ReadFile(path)
		if begins == "" { // refused before a file is created
			want := "this command has no format for " + filepath.Ext(file)
			if exit != cli.Misused || err == nil || !strings.Contains(stderr, want) {
				t.Errorf("%s -o %s exits %d, said %s, wrote %.40q", verb, file, exit, stderr, got)
			}
			return
		}
		if exit != cli.Fine && exit != cli.GateFailed || !strings.HasPrefix(string(got), begins) {
			t.Errorf("%s -o %s %v exits %d (%s) and wrote %.40q (%v), want %q", verb, file, flags,
				exit, stderr, got, err, begins)
		}
	}
	const page, object = "<!doctype html>", "{\n"
	check("report", "y.html", page)
	check("report", "y.HTM", page)
	check("report", "y.csv", "suite,run,scenario,")
	check("report", "y.json", object)
	check("report", "y.md", object, "--format", "json")
	check("compare", "y.md", "**")
	check("compare", "y.markdown", "**")
	check("compare", "y.csv", "scenario,load,")
	check("compare", "y.html", "scenario,load,", "--format", "csv")
	check("gate", "y.csv", "scenario,load,")
	check("gate", "y.html", page)
	check("trend", "y.csv", "scenario,target,")
	check("trend", "y.json", object)
	for _, file := range []string{"y", "y.txt", "y.log", "y.csv.old"} {
		check("trend", file, "1 run, ")
	}
	check("trend", "y.html", "")
	check("report", "y.xlsx", "")
	check("compare", "y.pdf", "")
	check("gate", "y.yaml", "")
	check("trend", "y.ndjson", "")
	check("compare", "y.parquet", "")
	check("query", "y.md", "")
}

// Verbs with both flags follow the same rule of suffixes.
func TestEachOutputFollowsItsSuffix(t *testing.T) {
	verbs := 0
	root := newRoot(&app{world: mock{}, stdout: io.Discard, stderr: io.Discard})
	for _, c := range root.Commands() {
		fs := c.Flags()
		format := fs.Lookup("format")
		if fs.Lookup("output") == nil || format == nil {
			continue
		}
		verbs++
		if err := fs.Set("output", "y.csv"); err != nil {
			t.Fatal(err)
		}
		if err := cli.FollowSuffix(fs); err != nil || format.Value.String() != "csv" {
			t.Errorf("%s -o y.csv: format %s, %v", c.Name(), format.Value, err)
		}
	}
	if verbs < 5 {
		t.Errorf("only %d verbs have formats and a file", verbs)
	}
}

// A gate's CSV has a line for each check, with the columns of a comparison and its own.
func TestGateCSV(t *testing.T) {
	root := checkout(t)
	dir := measured(t, root, "r")
	stdout, stderr, exit := say(t, mock{}, "gate", dir+":rust-axum", dir+":go-nethttp", "--format",
		"csv", "--metric", "throughput,half/p99", "--max-regression", "4%")
	if exit != cli.GateFailed {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	lines, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v:\n%s", len(lines), err, stdout)
	}
	check := func(line int, want map[string]string) {
		t.Helper()
		for column, value := range want {
			got := "no such column"
			for i, head := range lines[0] {
				if head == column {
					got = lines[line][i]
				}
			}
			if got != value {
				t.Errorf("line %d: %s is %q, want %q", line, column, got, value)
			}
		}
	}
	check(1, map[string]string{"metric": "throughput", "b_target": "go-nethttp", "allowed": "0.96",
		"gate": "fail", "more_blocks": ""})
	check(2, map[string]string{"load": "half", "metric": "p99", "allowed": "1.04"})
}
