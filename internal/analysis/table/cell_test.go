package table

import (
	"math"
	"testing"

	"prony.example/internal/base/units"
	"prony.example/stats"
)

// printed has the expected states and texts of a cell.
type printed struct {
	state, interval      State
	text, alone, between string
}

func (want printed) check(t *testing.T, name string, c Cell) {
	t.Helper()
	got := printed{c.State, c.Interval.State, c.Text(), c.Number(), c.Range()}
	if got != want {
		t.Errorf("%s is %+v, want %+v", name, got, want)
	}
	number := c.Name == "" && (c.State == Known || c.State == Unknown)
	if math.IsNaN(c.Value) == number {
		t.Errorf("%s is %v and has the value %v", name, c.State, c.Value)
	}
}

// TestStates checks the state and the texts of each kind of cell.
func TestStates(t *testing.T) {
	check := func(name string, c Cell, state, interval State, text, alone, between string) {
		t.Helper()
		printed{state, interval, text, alone, between}.check(t, name, c)
	}
	nan := math.NaN()
	// of returns a target with metric m, whose ratio r refers to b.
	of := func(m Metric, r *stats.Ratio) *Target {
		m.Name, m.Ratio = "x", r
		return &Target{Name: "a", Reference: "b", Metrics: []Metric{m}}
	}
	level := func(n int, lo, hi float64) Metric {
		return Metric{Summary: stats.Summary{N: n, Center: 200, Lo: lo, Hi: hi}}
	}
	ratio := func(lo, hi float64) *stats.Ratio {
		return &stats.Ratio{N: 3, Center: 1.2, Lo: lo, Hi: hi}
	}
	rate := same(units.Rate)
	lost := Metric{}
	lost.withhold(NoteOf(NoteVerbatim, "why"))

	check("a name", named("go"), Known, Absent, "go", "go", "")
	check("nothing", noValue(Absent), Absent, Absent, "–", "–", "")
	check("a count", valued(7, units.Whole), Known, Absent, "7", "7", "")

	check("a level", metricCell(of(level(3, 190, 210), nil), "", "x", rate), Known, Known, "200",
		"200", "190 – 210")
	check("a level of one trial", metricCell(of(level(1, nan, nan), nil), "", "x", rate), Known,
		Absent, "200", "200", "")
	check("a level of 3.1 times", metricCell(of(level(2, 100, 310), nil), "", "x", rate), Known,
		Unknown, "200", "200", "unknown")
	check("a level that was lost", metricCell(of(lost, nil), "", "x", rate), Withheld, Absent,
		"–", "–", "")
	check("a level of another load", metricCell(of(lost, nil), "half", "x", rate), Withheld,
		Absent, "–", "–", "")
	bound := noValue(Withheld)
	bound.AtLeast = 300
	check("a bound", bound, Withheld, Absent, "at least 300", "at least 300", "")

	check("a width", widthCell(of(level(3, 190, 210), nil), "", "x"), Known, Absent, "±5.0 %",
		"±5.0 %", "")
	check("the width of one trial", widthCell(of(level(1, nan, nan), nil), "", "x"), Withheld,
		Absent, "–", "–", "")
	check("a width of 3.1 times", widthCell(of(level(2, 100, 310), nil), "", "x"), Unknown, Absent,
		"unknown", "unknown", "")

	check("a ratio", ratioCell(of(lost, ratio(1.1, 1.3)), "", "x"), Known, Known,
		"1.20 [1.10, 1.30]", "1.20", "1.10 – 1.30")
	check("a narrow ratio", ratioCell(of(lost, ratio(1.195, 1.205)), "", "x"), Known, Known,
		"1.200 [1.195, 1.205]", "1.200", "1.195 – 1.205")
	check("a ratio of one block", ratioCell(of(lost, ratio(nan, nan)), "", "x"), Known, Absent,
		"1.20", "1.20", "")
	check("a wide ratio", ratioCell(of(lost, ratio(0.5, 2)), "", "x"), Unknown, Unknown,
		"unknown", "unknown", "")
	check("no ratio", ratioCell(of(lost, nil), "", "x"), Withheld, Absent, "–", "–", "")
	check("the baseline", ratioCell(&Target{Name: "b"}, "", "x"), Known, Absent, "1", "1", "")

	check("a change", changeCell(Metric{Ratio: ratio(1.1, 1.3)}), Known, Known,
		"+20 % [+10, +30]", "+20 %", "+10 % to +30 %")
	check("a change of one block", changeCell(Metric{Ratio: ratio(nan, nan)}), Known, Absent,
		"+20 % (one trial)", "+20 % (one trial)", "")
	check("a wide change", changeCell(Metric{Ratio: ratio(0.5, 2)}), Unknown, Unknown, "unknown",
		"unknown", "")
}

// A number whose text looks like the word unknown, or like no value, is known: the state decides.
func TestStateIsNoWord(t *testing.T) {
	tab := Table{Columns: append(nameColumns(), LoadInfo{Name: "half"}.column("p99 ratio",
		"p99 ratio", "1", Extra))}
	for _, word := range []string{unknownWord, units.Absent} {
		c := named(word)
		c.N, c.Notes = 3, []Note{NoteOf(NoteVerbatim, "said of it")}
		row := Row{Cells: []Cell{noValue(Absent), named("a"), c}}
		tab.Rows = append(tab.Rows, row)
		if got := row.notes(tab.Columns); len(got) != 1 || got[0].String() != "said of it" {
			t.Errorf("a target called %q has the notes %q", word, got)
		}
	}
	if notes := tab.narrow(); len(notes) > 0 || len(tab.Columns) != 3 {
		t.Errorf("%d columns are left, and %q", len(tab.Columns), notes)
	}
}

// TestLevelEnds checks that the ends of an interval have one more decimal than the value only if
// the interval is narrow.
func TestLevelEnds(t *testing.T) {
	f := levelForm(printer{micros(2), micros(3)})
	for want, ends := range map[string][2]float64{
		"11.15 – 18.52": {11147, 18515}, "14.641 – 14.648": {14641, 14648},
	} {
		if got := f.between(ends[0], ends[1]); got != want {
			t.Errorf("%v: %q, want %q", ends, got, want)
		}
	}
}
