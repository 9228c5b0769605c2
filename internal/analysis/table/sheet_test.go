package table

import (
	"fmt"
	"slices"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/record/metric"
	"prony.example/stats"
)

// TestGeneral checks that a note which several rows share appears once, and that no row explains
// "unknown".
func TestGeneral(t *testing.T) {
	lacks := func(column string, k int) Note {
		return Note{Kind: NoteInSomeTrials, Columns: Columns{{Label: column}},
			Args: []any{OfTrials{k, 3}, Lack(metric.CPU)}}
	}
	bound := NoteOf(NoteSearchEnded, Rate(300), OfTrials{1, 3}, "it took too long")
	off := NoteOf(NoteMayBeOff, LoadOf("half"), Offs{{"p50", units.Ns, 0.34, []string{"lag"},
		false, ""}})
	rows := [][]Note{{off, NoteOf(NoteIntervalWide), lacks("CPU", 1), bound},
		{lacks("CPU", 2), lacks("p99.9", 2), bound}, nil}
	want := []string{
		"Unknown: the interval spans more than a factor of 3 (raise --blocks).",
		"No value of CPU (–): in at least one trial " +
			metric.Named(metric.CPU, units.Ns).Missing + ".",
	}
	if got := Texts(general(rows, nil)); !slices.Equal(got, want) {
		t.Errorf("said of all: %q", got)
	}
	const least = "at least 300/s, because in 1 of 3 trials the search for the capacity ended " +
		"early (it took too long)"
	if left := fmt.Sprint(rows); left != "[[half may be off: p50 by up to 34 % (lag) "+least+
		"] [p99.9: in 2 of 3 trials "+metric.Named(metric.CPU, units.Ns).Missing+" "+least+"] []]" {
		t.Errorf("said of rows: %s", left)
	}
}

// TestStallsReason checks that a reason why stalls cannot be left out is given once: below the
// table if several rows have it, or if it is there already, else in the row.
func TestStallsReason(t *testing.T) {
	p99 := LoadInfo{Name: "half"}.column("p99", "p99", units.Ns, Essential)
	ratio := (&Scenario{}).ratio(p99)
	few := func(share float64) Stalled { return Stalled{stats.TooMuchExcluded, share} }
	with := Note{Kind: NoteWithStalls, Columns: Columns{p99}, Args: []any{few(0.4)}}
	without := Note{Kind: NoteStalled, Columns: Columns{ratio}, Args: []any{few(0.3)}}
	const advice = " (measure on a quieter machine; prony report --stalls keep includes all " +
		"arrivals)"
	const reason = "[Stalls cannot be left out of some values: less than 60 % of arrivals remain " +
		"after those near stalls are left out" + advice + ".]"
	const short = "half p99 ratio: unknown without the machine's stalls"
	below := []Note{NoteOf(NoteStallsReason, few(0.1))}
	for name, x := range map[string]struct {
		rows           [][]Note
		below          []Note
		wantRows, want string
	}{
		"one row": {[][]Note{{without}}, nil, "[[" + short + ": 30 % of arrivals remain after " +
			"those near stalls are left out, but at least 60 % are needed" + advice + "]]", "[]"},
		"two rows": {[][]Note{{with}, {without}}, nil,
			"[[half p99: includes the machine's stalls] [" + short + "]]", reason},
		"below already": {[][]Note{{without}}, below, "[[" + short + "]]", reason},
	} {
		common := general(x.rows, x.below)
		if got := fmt.Sprint(x.rows); got != x.wantRows {
			t.Errorf("%s: rows %s, want %s", name, got, x.wantRows)
		}
		if got := fmt.Sprint(common); got != x.want {
			t.Errorf("%s: below %s, want %s", name, got, x.want)
		}
	}
}

// TestNarrow checks that a column of ratios without a known one becomes a note, and that one known
// ratio, or a higher weight, keeps the column.
func TestNarrow(t *testing.T) {
	unknown, known := Cell{State: Unknown, N: 3}, Cell{State: Known, N: 3}
	of := func(weight int, cells ...Cell) Table {
		out := Table{Columns: append(nameColumns(), (&Scenario{}).ratio(
			LoadInfo{Name: "half"}.column("p99 ratio", "p99", "1", weight)))}
		for i, c := range cells {
			out.Rows = append(out.Rows, Row{Cells: []Cell{named("1"), named(fmt.Sprint(i)), c}})
		}
		out.Rows = append(out.Rows, spanRow("failed", NoteOf(NoteNoTrial)))
		return out
	}
	const none = "No half p99 ratio is known: the interval spans more than a factor of 3 " +
		"(raise --blocks)."
	for name, x := range map[string]struct {
		of    Table
		notes string
		left  int
	}{
		"none is known": {of(Extra, named("1"), unknown, unknown, noValue(Withheld)),
			"[" + none + "]", 2},
		"one is known":    {of(Extra, named("1"), unknown, known), "[]", 3},
		"none is unknown": {of(Extra, named("1"), noValue(Withheld)), "[]", 3},
		"it stays":        {of(Detail, named("1"), unknown), "[]", 3},
	} {
		notes := x.of.narrow()
		if fmt.Sprint(notes) != x.notes || len(x.of.Columns) != x.left ||
			len(x.of.Rows[0].Cells) != x.left || x.of.Rows[0].Cells[1].Name != "0" {
			t.Errorf("%s: %v, %d columns, %v", name, notes, len(x.of.Columns), x.of.Rows[0].Cells)
		}
	}
}

// TestNarrowRun checks that a run whose p99 differs between blocks has the note instead of the
// column, and keeps its rates.
func TestNarrowRun(t *testing.T) {
	records := rates("a", 100, 101, 99)
	for i, ns := range []int64{1e6, 30e6, 1e6} {
		records[i] = with(records[i], 1e6, 5e6)
		records = append(records, with(trial("b", i+1, 200), 1e6, ns))
	}
	tab := only(t, sheetOf(records, Options{Baseline: "a"}))
	for _, c := range tab.Columns {
		if c.Key == "half/p99 ratio" {
			t.Error("there is a column of which nothing is known")
		}
	}
	const none = "No half p99 ratio is known: the interval spans more than a factor of 3 " +
		"(raise --blocks)."
	if find(t, tab, "b", "peak/ratio").State != Known || !slices.Contains(Texts(tab.Notes), none) {
		t.Errorf("%q", tab.Notes)
	}
}
