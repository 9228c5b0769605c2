package verdict_test

import (
	"fmt"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/record"
)

// A record of a trial that did not get as far as a measurement is INVALID, and says why.
func ExampleJudge() {
	v := verdict.Judge(&record.Record{Outcome: record.Failed, Failure: &record.Failure{
		Step: "ready", Error: "no answer within 4m0s", Hint: "read the service's log",
	}})
	fmt.Println(v.Grade)
	for _, f := range v.Findings {
		w := wording.Finding(f)
		fmt.Printf("%s: observed %s, limit %s\n", f.Rule, w.Observed, w.Limit)
		fmt.Println(w.Hint)
	}
	// Output:
	// INVALID
	// failed: observed ready: no answer within 4m0s, limit every step of the trial succeeds
	// read the service's log
}

// The rules are a table: what must hold, what becomes of a record otherwise, and who found that it
// matters.
func ExampleRules() {
	for _, r := range verdict.Rules() {
		if r.Name == "delivered" {
			fmt.Printf("%s\nelse %s; %s\n", r.Meets, r.Else, r.Source)
		}
	}
	// Output:
	// 99 % of the arrivals due in the window, or all but five, were sent in it
	// else INVALID; Lancet, ATC 2019; HttpArena #1317
}
