package report

import (
	"strings"
	"testing"

	"prony.example/record"
)

// TestWhy checks that a cause appears once, with its hint, and with its effects below: here the
// hypervisor made the generator late in both trials, which caused bunches.
func TestWhy(t *testing.T) {
	find := func(rule, load, grade string, by float64) record.Finding {
		f := record.Finding{Rule: rule, Load: load, Grade: grade, Text: &record.Words{
			Observed: rule + " was seen", Hint: "mend " + rule}}
		if by > 0 {
			f.PossibleBias = []record.Bias{{Metric: "p50", Share: by / 2}, {Metric: "p99",
				Share: by}}
		}
		return f
	}
	check := func(want string, verdicts ...[]record.Finding) {
		t.Helper()
		var records []record.Record
		for i, fs := range verdicts {
			records = append(records, record.Record{Trial: string(rune('a' + i)),
				Target: record.Target{Name: "x"}, Verdict: record.Verdict{Findings: fs}})
		}
		var out strings.Builder
		if err := Why(&out, pointers(records)); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("says\n%swant\n%s", &out, want)
		}
	}
	const valid, suspect, invalid = record.Valid, record.Suspect, record.Invalid
	check("why: no finding can have changed a result\n", nil,
		[]record.Finding{find("lag", "half", valid, 0.001)})
	check(`Why results are in doubt (each cause with its effects below it):

steal: in 2 trials of 1 target, for example in half: steal was seen; half p99 may be off by up to
  5.0 %
  lag: in 2 trials of 1 target, for example in half: lag was seen; half p99 may be off by up to 80 %
    bursts: in 1 trial of 1 target, for example in half: bursts was seen; half p99 may be off by up
      to 10 %
  do: mend steal

errors: in 1 trial of 1 target, for example in peak: errors was seen; INVALID
  do: mend errors
`, []record.Finding{find("steal", "half", valid, 0.05), find("lag", "half", suspect, 0.4),
		find("bursts", "half", suspect, 0.1)},
		[]record.Finding{find("steal", "half", suspect, 0.01), find("lag", "half", suspect, 0.8),
			find("errors", "peak", invalid, 0)})
	// A disturbance of another load is not a cause, but one of the whole trial is.
	check(`Why results are in doubt (each cause with its effects below it):

lag: in 1 trial of 1 target, for example in half: lag was seen; half p99 may be off by up to 80 %
  do: mend lag

warm-up: in 1 trial of 1 target, for example: warm-up was seen
  drift: in 1 trial of 1 target, for example in peak: drift was seen; peak p99 may be off by up to
    10 %
  do: mend warm-up
`, []record.Finding{find("warm-up", "", valid, 0), find("steal", "peak", valid, 0.05),
		find("lag", "half", suspect, 0.8), find("drift", "peak", suspect, 0.1)})
}
