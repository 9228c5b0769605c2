package verdict

import (
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/record"
)

// TestSoFar checks the verdict on a load under way: 10,000 responses of 1 ms at 1,000/s.
func TestSoFar(t *testing.T) {
	all := func(ns int64) *hdrhistogram.Histogram {
		h := hdrhistogram.New(1, 1<<40, 3)
		if err := h.RecordValues(ns, 10_000); err != nil {
			t.Fatal(err)
		}
		return h
	}
	check := func(grade, rule string, lateNs int64, change func(*record.Load)) {
		t.Helper()
		l := record.Load{Model: record.Open, RatePerS: 1000, WindowNs: 10e9, Scheduled: 10_000,
			Sent: 10_000, Done: 10_000, Answered: 10_000, InFlightMean: 1}
		change(&l)
		late := all(lateNs)
		if l.Model == record.Closed {
			late = nil
		}
		v := SoFar(&l, all(1e6), late)
		has := slices.ContainsFunc(v.Findings, func(f record.Finding) bool {
			return f.Rule == rule && f.Grade == v.Grade
		})
		if v.Grade != grade || rule != "" && !has {
			t.Errorf("%+v with delays of %d ns, want %s by %q", v, lateNs, grade, rule)
		}
	}
	none := func(*record.Load) {}
	check(record.Valid, "", 10_000, none)       // 1 % of 1 ms
	check(record.Suspect, "lag", 100_000, none) // 10 %, and the resolution is 3 %
	check(record.Valid, "", 0, func(l *record.Load) { l.Model = record.Closed })
	check(record.Invalid, "errors", 10_000, func(l *record.Load) { l.Errors.Timeout = 20 })
	check(record.Invalid, "delivered", 10_000, func(l *record.Load) { l.Sent = 9000 })
	check(record.Invalid, "capacity", 100_000, func(l *record.Load) { l.BacklogPerS = 500 })
	for _, name := range soFar {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Name == name }) {
			t.Errorf("there is no rule %q", name)
		}
	}
}
