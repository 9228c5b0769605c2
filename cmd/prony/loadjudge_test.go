package main

import (
	"bytes"
	"strings"
	"testing"

	"prony/internal/base/cli"
	"prony/record"
	"prony/internal/generator/summary"
)

// A load that is INVALID says why, also where the form that was asked for has no place for it.
func TestInvalidLoadsSayWhy(t *testing.T) {
	check := func(form, want string) {
		t.Helper()
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		err := a.judge(summary.Report{Load: &result.Load{}, Verdict: result.Verdict{
			Grade: result.Invalid, Findings: []result.Finding{
				{Rule: "lag", Grade: result.Valid, Observed: "p99 2 µs"},
				{Rule: "answers", Grade: result.Invalid, Observed: "no good answer",
					Limit: "at least 1", Hint: "raise measure"},
			}}}, nil, form)
		if cli.Code(err) != cli.Invalid || strings.TrimSpace(stderr.String()) != want {
			t.Errorf("%s: exit %d, %q; want %q", form, cli.Code(err), &stderr, want)
		}
	}
	why := "INVALID answers: no good answer (limit at least 1); raise measure"
	check("csv", why)
	check("hlog", why)
	check("text", "") // it has said so
	check("json", "")
}
