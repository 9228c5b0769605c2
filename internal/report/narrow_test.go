package report

import (
	"testing"

	"prony.example/internal/analysis/table"
)

// A table of some columns has no footnote on numbers that it does not show.
func TestFootnotesOfColumns(t *testing.T) {
	bound := func(key string) table.Off { return table.Off{Metric: key, By: 0.1, Key: key} }
	off := func(load string, bounds ...table.Off) table.Note {
		return table.NoteOf(table.NoteMayBeOff, table.LoadOf(load), table.Offs(bounds))
	}
	all := table.Footnote{off("peak", bound("peak/ratio"), bound("peak/p50")),
		off("half", bound("half/p99")), table.NoteOf(table.NoteIntervalWide)}
	want := table.Footnote{off("peak", bound("peak/ratio")), all[2]}.String()
	got := aboutColumns(all, []table.Column{{Key: "peak/ratio"}, {Key: "cost/cpu"}}).String()
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
