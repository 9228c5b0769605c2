package runs

import (
	"testing"

	"prony.example/record"
)

// TestRunWithoutHead checks that a run whose services are being built is in the list and on the
// first page, before the runs that began earlier.
func TestRunWithoutHead(t *testing.T) {
	dir := t.TempDir()
	begun(t, dir, 0, 2)
	put(t, `{"seq":1,"kind":"begin","pid":17,"processStart":"5","time":"2026-01-02T00:00:00Z"}`+
		"\n", dir, "2026-01-02T00-00-00Z", record.ProgressFile)
	s := open(t, dir, Options{Born: func(int) string { return "5" }})
	for name, got := range map[string][]Entry{"list": list(t, s).Entries,
		"page": pageOf(t, s, Filter{}, "", 5).Entries} {
		if len(got) != 3 || got[0].ID != "2026-01-02T00-00-00Z" || got[0].State != Running ||
			got[1].State == Running {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
