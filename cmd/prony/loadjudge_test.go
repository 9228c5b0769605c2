package main

import (
	"bytes"
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
