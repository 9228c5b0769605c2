package report

import (
	"strings"
	"testing"

	"prony.example/internal/analysis/table"
	"prony.example/record"
)

// A table of some columns has no footnote on numbers that it does not show.
func TestFootnotesOfColumns(t *testing.T) {
	bound := func(key string) table.Off { return table.Off{Metric: key, By: 0.1, Key: key} }
	off := func(load string, bounds ...table.Off) table.Note {
		return table.NoteOf(table.NoteMayBeOff, table.LoadOf(load), table.Offs(bounds))
	}
	doubted := table.NoteOf(table.NoteVerbatim, "half INVALID in start 3")
	doubted.Load = "half"
	all := table.Footnote{off("peak", bound("peak/ratio"), bound("peak/p50")),
		off("half", bound("half/p99")), table.NoteOf(table.NoteIntervalWide), doubted}
	want := table.Footnote{off("peak", bound("peak/ratio")), all[2]}.String()
	got := aboutColumns(all, []table.Column{
		{Key: "peak/ratio", Group: table.Group{Load: "peak"}}, {Key: "cost/cpu"}}).String()
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCountOfShownNumbers checks that a table of some columns counts and explains only the numbers
// that it shows.
func TestCountOfShownNumbers(t *testing.T) {
	rates := table.Column{Key: "peak/throughput", Label: "req/s"}
	ratios := table.Column{Key: "half/ratio", Label: "p99 ratio"}
	sheet := table.Sheet{Tables: []table.Table{{
		Columns: []table.Column{rates, ratios},
		Rows: []table.Row{{Cells: []table.Cell{
			{Grade: record.Valid}, {Grade: table.UnknownGrade}}}},
		Notes: []table.Note{table.NoteOf(table.NoteUnknowns)},
	}}}
	for keys, want := range map[string]string{
		"peak/throughput":            "1 of 1 number VALID;",
		"peak/throughput,half/ratio": "1 of 2 numbers VALID · 1 not known;",
	} {
		var b strings.Builder
		o := MarkdownOptions{Columns: strings.Split(keys, ",")}
		if err := Markdown(&b, sheet, o); err != nil {
			t.Fatal(err)
		}
		explained := strings.Contains(b.String(), "Unknown: ")
		if !strings.Contains(b.String(), want) || explained != strings.Contains(keys, "half") {
			t.Errorf("%s: want %q, and unknown explained only where it stands:\n%s", keys, want, &b)
		}
	}
}
