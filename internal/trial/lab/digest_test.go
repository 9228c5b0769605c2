package lab

import (
	"strings"
	"testing"

	"prony/record"
)

// The line of a trial names what made its grade, and no latency that the verdict withholds.
func TestDigest(t *testing.T) {
	check := func(grade, want, not string) {
		t.Helper()
		r := &result.Record{Trial: "b1-01-a", Outcome: result.Measured,
			Loads: []result.Load{{Name: "half", Model: "open",
				ResponseTime: result.Dist{P99Ns: 139e6}}},
			Verdict: result.Verdict{Grade: grade, Findings: []result.Finding{
				{Rule: "quiet", Grade: result.Suspect, Observed: "others"},
				{Rule: "delivered", Load: "half", Grade: grade, Observed: "97.6 % sent"},
			}}}
		if got := Digest(r); !strings.Contains(got, want) || strings.Contains(got, not) {
			t.Errorf("%q, want %q and not %q", got, want, not)
		}
	}
	check(result.Invalid, "INVALID: half: delivered: 97.6 % sent and 1 more", "quiet")
	check(result.Invalid, "half p99 –", "139 ms")
	check(result.Suspect, "SUSPECT: quiet: others and 1 more", "delivered")
	check(result.Suspect, "half p99 139 ms", "p99 –")
	check(result.Valid, "VALID", "delivered") // what moves no number is not told here
}
