package table

import (
	"maps"
	"math"
	"strings"
	"testing"

	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// groupedRun returns a run of four starts in two groups: a with b, and a with c. In slices b is 5 %
// slower and c 10 %. The machine has a different speed in each start.
func groupedRun() (records []record.Record) {
	for i := range 4 {
		for group, name := range []string{"b", "c"} {
			block := 2*i + group + 1
			mood := 50e3 * (1 + 0.3*float64((block*5)%8))
			noise := 1 + 0.002*float64((i+group)%3)
			slower := 1 - 0.05*float64(group+1)
			records = append(records, slicedTrial("a", block, mood, mood, 20e3),
				slicedTrial(name, block, mood*slower, mood*slower*noise, 21e3))
		}
	}
	for i := range records {
		records[i].SideBySide.Group = 2 - records[i].Block%2
	}
	return records
}

func TestGroupsShareTheBaseline(t *testing.T) {
	study := analyze(groupedRun(), Options{Baseline: "a"})
	sc := study.Scenarios[0]
	ratioOf := func(name string) *Metric {
		m, _ := sc.Target(name).Metric("peak", metric.Throughput)
		return &m
	}
	for name, want := range map[string]float64{"b": 0.95, "c": 0.9} {
		m := ratioOf(name)
		if m.Ratio == nil || m.Source != FromSlices || m.Ratio.N != 4 ||
			math.Abs(m.Ratio.Center/want-1) > 0.003 {
			t.Errorf("%s: from %q, %+v, want %v", name, m.Source, m.Ratio, want)
		}
	}
	// The variation of starts does not cancel between b and c, but it cancels between each and a.
	r := sc.SlicedRatio(sc.Target("b"), sc.Target("c"), "peak", metric.Throughput, 0.95)
	want := ratioOf("c").Ratio.Center / ratioOf("b").Ratio.Center
	if math.Abs(r.Center-want) > 1e-12 || r.Hi-r.Lo > 0.02 || r.Free <= 3 || r.Free > 6 {
		t.Errorf("c over b: %+v, want %v", r, want)
	}
	for i, name := range []string{"a", "b", "c"} {
		if tier := sc.Target(name).Tier; tier != i+1 {
			t.Errorf("%s is in tier %d", name, tier)
		}
	}
	text := strings.Join(Texts(only(t, study.Sheet()).Notes), "\n")
	if note := "ran in 2 groups that share a: b; c."; !strings.Contains(text, note) {
		t.Error(text)
	}
}

// TestGroupsLoseStarts checks that a target of one group that is lost in one of its four starts
// lacks more than one in five, although there are eight starts in all, and does not affect the
// other group.
func TestGroupsLoseStarts(t *testing.T) {
	records := groupedRun()
	records[7].Outcome, records[7].Failure = record.Failed, &record.Failure{Step: "ready"} // c
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	if sc.Starts.Count != 8 || !sc.Starts.Withheld("a", "c") || sc.Starts.Withheld("a", "b") {
		t.Errorf("withheld c %v, b %v of %d starts", sc.Starts.Withheld("a", "c"),
			sc.Starts.Withheld("a", "b"), sc.Starts.Count)
	}
	if b, _ := sc.Target("b").Metric("peak", metric.CPU); b.Ratio == nil {
		t.Error("the other group has no ratio")
	}
	if text := strings.Join(Texts(sc.FindingNotes()), "\n"); !strings.Contains(text,
		"1 of 4 starts excluded, most because c failed") {
		t.Error(text)
	}
}

// TestGroupsEndedEarly checks that in a run that its user ended, the ratio of targets of different
// groups has no interval.
func TestGroupsEndedEarly(t *testing.T) {
	records := groupedRun()
	for i := 14; i < 16; i++ {
		records[i].Outcome = record.Failed
		records[i].Failure = &record.Failure{Step: "warmup", Interrupted: true}
	}
	sc := analyze(records, Options{Baseline: "a"}).Scenarios[0]
	within := sc.SlicedRatio(sc.Target("a"), sc.Target("b"), "peak", metric.Throughput, 0.95)
	across := sc.SlicedRatio(sc.Target("b"), sc.Target("c"), "peak", metric.Throughput, 0.95)
	if !sc.Starts.Interrupted || !within.HasInterval() || across.HasInterval() {
		t.Errorf("b over a: %+v, c over b: %+v", within, across)
	}
	if sc.Target("b").Tier != sc.Target("c").Tier {
		t.Errorf("tiers %d and %d without an interval", sc.Target("b").Tier, sc.Target("c").Tier)
	}
}

// TestLevelsOfGroups checks that values of several groups are divided by the baseline's in the same
// start, and are left out if it has none there.
func TestLevelsOfGroups(t *testing.T) {
	check := func(groups map[int][]string, base string, a, b map[int]float64) {
		t.Helper()
		sc := &Scenario{Starts: &Starts{groups: groups}}
		sc.Versus.Name = base
		items := []stats.Item{{Name: "a", Values: map[int]float64{1: 0.5, 2: 0, 3: 4}},
			{Name: "b", Values: map[int]float64{1: 0.25, 2: 3, 3: 8, 4: 7}}}
		sc.levelGroups(items)
		if !maps.Equal(items[0].Values, a) || !maps.Equal(items[1].Values, b) {
			t.Errorf("%v by %q: %v, want %v and %v", groups, base, items, a, b)
		}
	}
	one := map[int][]string{1: {"a", "b"}}
	two := map[int][]string{1: {"a", "b"}, 2: {"a", "c"}}
	check(two, "a", map[int]float64{1: 1, 3: 1}, map[int]float64{1: 0.5, 3: 2})
	asThey := map[int]float64{1: 0.25, 2: 3, 3: 8, 4: 7}
	check(one, "a", map[int]float64{1: 0.5, 2: 0, 3: 4}, asThey)
	check(two, "z", map[int]float64{1: 0.5, 2: 0, 3: 4}, asThey)
}

// TestGroupsPlan checks that the plan counts the starts of a pair, not those of all groups.
func TestGroupsPlan(t *testing.T) {
	sc := analyze(groupedRun(), Options{Baseline: "a"}).Scenarios[0]
	if plan := sc.plan(Options{Effect: 0.03, Confidence: 0.95}); plan.Have != 4 {
		t.Errorf("%d starts of 2 groups of 4: %s", plan.Have, plan)
	}
}
