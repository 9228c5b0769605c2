package table

import (
	"strings"
	"testing"

	"prony.example/record"
)

// TestTargetsWithoutCopies checks that a note names the targets without a copy once, if other
// targets of the starts had one.
func TestTargetsWithoutCopies(t *testing.T) {
	check := func(want string, reasons map[string]string) {
		t.Helper()
		records := slicedRun()
		for i := range records {
			records[i].Artifact.NoCopy = reasons[records[i].Target.Name]
		}
		text := strings.Join(Texts(only(t, sheetOf(records, Options{Baseline: "a"})).Notes), "\n")
		if n := strings.Count(text, "no fresh copy"); n != strings.Count(want, "b (") ||
			!strings.Contains(text, want) {
			t.Errorf("%v: %q is not once in\n%s", reasons, want, text)
		}
	}
	check("", nil)
	check("", map[string]string{"a": record.NoCopyGiven, "b": record.NoCopyGiven})
	check("each start: b (its folder is too large to copy).",
		map[string]string{"b": record.NoCopyLarge})
	check("each start: b (another reason).", map[string]string{"b": "another reason"})
}
