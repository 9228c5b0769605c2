package table

import (
	"strings"
	"testing"

	"prony.example/record"
)

// riding returns a target's trials with or without a variant, of an arm or of another checkout.
func riding(name, variant, arm, origin string, perS ...float64) []record.Record {
	rs := rates(name, perS...)
	for i := range rs {
		rs[i].Target.Variant, rs[i].Target.Arm, rs[i].Target.Origin = variant, arm, origin
		if origin != "" {
			rs[i].Target.Name += "@" + origin
		}
		rs[i].Trial += variant + arm + origin
	}
	return rs
}

// TestRatiosToTheBareTarget checks that ratios of variants refer to the same target without one,
// whatever the baseline: 90 of 100 and 80 of 200.
func TestRatiosToTheBareTarget(t *testing.T) {
	records := riding("a", "none", "", "", 100, 100)
	records = append(records, riding("a", "agent", "", "", 90, 90)...)
	records = append(records, riding("b", "none", "", "", 200, 200)...)
	records = append(records, riding("b", "agent", "", "", 80, 80)...)
	tab := sheetOf(records, Options{Baseline: "a"}).Tables[0]
	check := func(row, want string) {
		t.Helper()
		if got := find(t, tab, row, "peak/ratio").Text(); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s times its reference, want %s", row, got, want)
		}
	}
	check("a +agent", "0.90")
	check("b +agent", "0.40")
	check("a", "1")
	check("b", "1")
	said := strings.Join(Texts(tab.Notes), " ")
	if !strings.Contains(said, "divided by its value without (bare)") {
		t.Errorf("notes %q", tab.Notes)
	}
}

// TestClosestReference checks that ratios refer to the closest relative: the other arm, then the
// target without a variant, then another checkout's.
func TestClosestReference(t *testing.T) {
	var records []record.Record
	for _, variant := range []string{"none", "agent"} {
		for _, arm := range []string{"a", "b"} {
			records = append(records, riding("x", variant, arm, "", 100, 100)...)
		}
	}
	check := func(records []record.Record, want map[string]string, note string) {
		t.Helper()
		sc := analyze(records, Options{}).Scenarios[0]
		for _, target := range sc.Targets {
			if target.Reference != want[target.Name] {
				t.Errorf("%s refers to %q, want %q", target.Name, target.Reference,
					want[target.Name])
			}
		}
		if got := strings.Join(Texts(sc.ratioNote()), " "); !strings.Contains(got, note) {
			t.Errorf("note %q, want %s", got, note)
		}
	}
	check(records, map[string]string{"x (b)": "x (a)", "x +agent (b)": "x +agent (a)",
		"x +agent (a)": "x (a)"}, "arm b by arm a, with its variant by bare")
	records = nil
	for _, origin := range []string{"", "base"} {
		records = append(records, riding("x", "none", "", origin, 100, 100)...)
		records = append(records, riding("x", "agent", "", origin, 100, 100)...)
	}
	check(records, map[string]string{"x": "x@base", "x +agent": "x", "x@base +agent": "x@base"},
		"or by the other checkout")
}
