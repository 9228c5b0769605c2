package table

import (
	"math"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// TestNoIntervalIsNotValid checks that a number with an unknown interval is never VALID, also in
// counts.
func TestNoIntervalIsNotValid(t *testing.T) {
	check := func(want string, records []record.Record) {
		t.Helper()
		study := analyze(records, Options{})
		m, ok := study.Scenarios[0].Targets[0].Metric("peak", metric.Throughput)
		if !ok || m.Grade() != want {
			t.Errorf("grade %q of %+v, want %q", m.Grade(), m.Summary, want)
		}
		sheet := study.Sheet()
		c := find(t, only(t, sheet), "a", "peak/throughput")
		if c.Grade != want {
			t.Errorf("the cell %q has grade %q, want %q", c.Text(), c.Grade, want)
		}
		for _, row := range only(t, sheet).Rows {
			for _, c := range row.Cells {
				if c.Grade == record.Valid && c.State != Known {
					t.Errorf("%q is VALID and not known", c.Text())
				}
			}
		}
		if n := sheet.Numbers; n.All() == 0 || want == UnknownGrade && n.Valid > 0 {
			t.Errorf("numbers are %+v", n)
		}
	}
	check(record.Valid, rates("a", 100, 101, 102))
	check(UnknownGrade, rates("a", 100))    // one trial
	check(UnknownGrade, rates("a", 1, 100)) // two, which say next to nothing
	doubted := rates("a", 100)
	doubted[0] = judged(doubted[0], record.Finding{Rule: "limits", Grade: record.Suspect})
	check(record.Suspect, doubted)
}

// TestNoIntervalIsSaid checks that a missing interval has the same reason in the table.
func TestNoIntervalIsSaid(t *testing.T) {
	tab := only(t, sheetOf(rates("a", 100), Options{}))
	said := notes(tab, find(t, tab, "a", "peak/interval"))
	if !strings.Contains(said, "no interval") {
		t.Errorf("the interval of one trial says %q", said)
	}
}

// TestConstantIsValid checks that a value that every trial found is known, although zeros have no
// interval.
func TestConstantIsValid(t *testing.T) {
	check := func(want string, values ...float64) {
		t.Helper()
		m := Metric{Summary: stats.Summary{N: len(values), Lo: math.NaN(), Hi: math.NaN()}}
		for _, x := range values {
			m.Points = append(m.Points, Point{Value: x})
		}
		if got := m.Grade(); got != want {
			t.Errorf("%v is %q, want %q", values, got, want)
		}
	}
	check(record.Valid, 0, 0)
	check(UnknownGrade, 0)
	check(UnknownGrade, 0, 0, 1)
}
