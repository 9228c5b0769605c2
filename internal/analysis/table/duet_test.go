package table

import (
	"math"
	"slices"
	"strings"
	"testing"

	"prony.example/record"
)

// side is a trial of a duet whose windows saw so many answers.
func side(target, name string, block int, done ...int64) record.Record {
	r := trial(target, block, 1000)
	r.Duet = &record.Duet{Side: name, With: ""}
	r.Loads[0].Series = record.Series{IntervalNs: 100e6, Done: done}
	core := map[string]int{"left": 1, "right": 3}[name]
	r.Limits.InForce = []record.Limit{
		{Kind: record.LimitCores, By: record.ByAffinity, Cores: []int{core}},
		{Kind: record.LimitCores, By: record.ByCgroup1, Cores: []int{core}}}
	return r
}

// duet puts a left and a right trial together.
func duet(left, right record.Record) []record.Record {
	left.Duet.With, right.Duet.With = right.Trial, left.Trial
	return []record.Record{left, right}
}

// Row b answers twice as often as row a in every window, and the left side 10 % more.
func swapped() []record.Record {
	return slices.Concat(
		duet(side("a", "left", 1, 110, 220), side("b", "right", 1, 200, 400)),
		duet(side("b", "left", 2, 220, 440), side("a", "right", 2, 100, 200)),
		duet(side("a", "left", 3, 110, 220), side("b", "right", 3, 200, 400)),
		duet(side("b", "left", 4, 220, 440), side("a", "right", 4, 100, 200)),
	)
}

func TestDuetsOfRows(t *testing.T) {
	check := func(name string, records []record.Record, o Options, a, b string, ratio float64) {
		t.Helper()
		s := analyze(records, o)
		ds := s.Scenarios[0].duets(s.Options)
		if len(ds) != 1 || ds[0].A != a || ds[0].B != b || len(ds[0].Windows) != 4 ||
			ds[0].WindowNs != 100e6 {
			t.Fatalf("%s: duets are %+v", name, ds)
		}
		sw := ds[0].Swapped
		if math.Abs(sw.Ratio.Center-ratio) > 1e-9 || math.Abs(sw.Side-1.1) > 1e-9 {
			t.Errorf("%s: ratio %v, side %v; want %v and 1.1", name, sw.Ratio.Center, sw.Side,
				ratio)
		}
		if left := ds[0].Windows[0].Left(); math.Abs(left) > 1e-9 {
			t.Errorf("%s: sides that move together leave %v of the noise", name, left)
		}
	}
	check("by name", swapped(), Options{}, "a", "b", 2)
	check("against the baseline", swapped(), Options{Baseline: "b"}, "b", "a", 0.5)
	arms := swapped()
	for i := range arms {
		arm := map[string]string{"a": "b", "b": "a"}[arms[i].Target.Name] // the other way round
		arms[i].Target.Name, arms[i].Target.Arm = "x", arm
	}
	check("against itself", arms, Options{}, "x (a)", "x (b)", 0.5)
}

// What cannot be a pair says nothing.
func TestDuetsWithoutAPartner(t *testing.T) {
	check := func(name string, want int, change func([]record.Record) []record.Record) {
		t.Helper()
		s := analyze(change(swapped()), Options{})
		n := 0
		for _, d := range s.Scenarios[0].duets(s.Options) {
			n += len(d.Windows)
		}
		if n != want {
			t.Errorf("%s: %d duets, want %d", name, n, want)
		}
	}
	check("whole", 4, func(rs []record.Record) []record.Record { return rs })
	check("one is missing", 3, func(rs []record.Record) []record.Record { return rs[1:] })
	check("one is INVALID", 3, func(rs []record.Record) []record.Record {
		rs[2].Verdict = record.Verdict{Grade: record.Invalid, Findings: []record.Finding{
			{Rule: "answers", Load: "peak", Grade: record.Invalid}}}
		return rs
	})
	check("another run's", 0, func(rs []record.Record) []record.Record {
		for i := range rs {
			if rs[i].Duet.Side == "right" {
				rs[i].Run = "another"
			}
		}
		return rs
	})
	check("one has no series", 3, func(rs []record.Record) []record.Record {
		rs[0].Loads[0].Series.Done = nil
		return rs
	})
	check("single trials", 0, func(rs []record.Record) []record.Record {
		for i := range rs {
			rs[i].Duet = nil
		}
		return rs
	})
}

func TestDuetNotes(t *testing.T) {
	check := func(name string, records []record.Record, has []string, hasNot ...string) {
		t.Helper()
		s := analyze(records, Options{})
		text := strings.Join(Texts(only(t, s.Sheet()).Notes), "\n")
		for _, x := range has {
			if !strings.Contains(text, x) {
				t.Errorf("%s: notes are\n%s\nwithout %q", name, text, x)
			}
		}
		for _, x := range hasNot {
			if strings.Contains(text, x) {
				t.Errorf("%s: notes are\n%s\nwith %q", name, text, x)
			}
		}
	}
	// Two windows whose logs differ by ln 2: SD ln 2 / √2 = 49.0 % on each side, none of the ratio.
	check("swapped", swapped(), []string{"side by side on cores of their own",
		"b against a, 4 duets, peak answers, windows of 100 ms", "vary by 49.0 % and 49.0 %",
		"ratio by 0.0 % (correlation +1.00), so pairing takes 100 % of the noise away",
		"Left over right: 1.100 [1.100, 1.100]", "b is 2.000 [2.000, 2.000] of a"},
		"vary in", "like for like")
	check("too few", swapped()[:4], []string{"2 duets", "needs three duets"})
	check("unlike", append(swapped(), trial("c", 1, 900)),
		[]string{"Rows vary in company, so they are not like for like: in duets (a, b); "})
	check("alone", rates("a", 1, 2), nil, "uet")
	opposed := swapped()
	for i := range opposed {
		if opposed[i].Target.Name == "b" {
			slices.Reverse(opposed[i].Loads[0].Series.Done)
		}
	}
	check("one takes from the other", opposed,
		[]string{"correlation -1.00", "takes none of the noise away (it adds 41 %)"})
}

// Swapped sides are no difference of method; limits that are not in force are.
func TestLimitsOfSides(t *testing.T) {
	check := func(differ bool, change func(*record.Record)) {
		t.Helper()
		rs := swapped()
		change(&rs[0])
		s := analyze(rs, Options{})
		for i := range s.Scenarios[0].Targets {
			x := s.Scenarios[0].Targets[i]
			if x.Name == "a" && (len(x.Method) > 0) != differ {
				t.Errorf("method of a: %q; want a difference: %v", x.Method, differ)
			}
		}
	}
	check(false, func(*record.Record) {})
	check(true, func(r *record.Record) { r.Limits.InForce = r.Limits.InForce[1:] })
	check(true, func(r *record.Record) { r.Duet.Shared = true })
	check(true, func(r *record.Record) { r.Duet = nil })
}
