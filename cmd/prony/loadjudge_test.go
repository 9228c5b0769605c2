package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/generator/summary"
	"prony.example/record"
)

// An INVALID load prints the reason, also in formats without a place for it.
func TestInvalidLoadsSayWhy(t *testing.T) {
	check := func(form, want string) {
		t.Helper()
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		err := a.judge(summary.Report{Load: &record.Load{}, Verdict: record.Verdict{
			Grade: record.Invalid, Findings: []record.Finding{
				{Rule: "lag", Grade: record.Valid, Value: 2e3},
				{Rule: "answers", Grade: record.Invalid, Limit: 1, Unit: record.UnitCount,
					Side: record.Below, Facts: record.Facts{Messages: []string{"refused"}}},
			}}}, nil, form)
		if cli.Code(err) != cli.Invalid || strings.TrimSpace(stderr.String()) != want {
			t.Errorf("%s: exit %d, %q; want %q", form, cli.Code(err), &stderr, want)
		}
	}
	why := "INVALID answers: no good response (limit at least 1); see the errors: refused"
	check("csv", why)
	check("hlog", why)
	check("text", "") // already printed
	check("json", "")
}

// Repeated flags of objectives all count, and what cannot be judged or written is refused before
// the load.
func TestLoadsAreRefusedBeforeTheyBegin(t *testing.T) {
	dir := t.TempDir()
	mix := filepath.Join(dir, "mix.yaml")
	if err := os.WriteFile(mix, []byte("name: m\nrequests:\n  - {request: GET /a}\n"+
		"  - {request: GET /b}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	url := null(t)
	check := func(exit int, says string, args ...string) {
		t.Helper()
		stdout, stderr, got := really(args...)
		if got != exit || !strings.Contains(stderr, says) || stdout != "" {
			t.Errorf("%q: exit %d, want %d and %q: %s%s", args, got, exit, says, stdout, stderr)
		}
	}
	refused := func(says string, args ...string) {
		t.Helper()
		check(cli.Misused, says, append([]string{"load", url, "-n", "9"}, args...)...)
	}
	refused("there are GET /a, GET /b", "--scenario", mix, "--threshold", "route GET /c p50<1s")
	refused("leave the route out", "--threshold", "route GET / p50<1s")
	refused("--requests must be at least 1", "-n", "0")
	refused("it is empty", "--threshold", "mean<1s", "--threshold", "")
	refused("no such file", "--output", filepath.Join(dir, "none", "page.html"))
	if err := os.Mkdir(filepath.Join(dir, "page.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused("it is a folder", "--output", filepath.Join(dir, "page.html"))
	check(cli.Misused, "leave the route out", "capacity", url, "--slo", "route GET / p50<1s")
	check(cli.Misused, "the time 2 has no unit", "capacity", url, "--slo", "p99<2", "--slo",
		"p99<2s")

	_, stderr, exit := really("load", url, "-n", "9", "-c", "1", "--view", "none", "--threshold",
		"mean<1ns", "--threshold", "mean<1m")
	if exit == cli.Fine || !strings.Contains(stderr, "missed   mean<1ns") ||
		!strings.Contains(stderr, "met      mean<1m") {
		t.Errorf("two thresholds: exit %d: %s", exit, stderr)
	}
}
