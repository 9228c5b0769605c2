package wording

import (
	"strings"
	"testing"

	"prony.example/record"
)

// Only the service's own errors send a reader to its log.
func TestFailuresByParty(t *testing.T) {
	for party, want := range map[string]string{
		"":                  "read the service's log",
		record.PartyMachine: "this machine caused the first error",
		record.PartyOptions: "the service did not cause the first error",
	} {
		w := failures(record.Finding{Rule: "errors", Facts: record.Facts{Count: 1, Total: 2,
			Party: party}})
		if !strings.Contains(w.Hint, want) || party != "" && strings.Contains(w.Hint, "log") {
			t.Errorf("%q: %s, want %s", party, w.Hint, want)
		}
	}
}
