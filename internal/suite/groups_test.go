package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// crowdOf is a suite of five targets with a control of the first, of which fit targets fit into
// memory.
func crowdOf(t *testing.T, fit int, change func(*suite.Suite)) (*suite.Suite, []suite.Target) {
	t.Helper()
	var targets []suite.Target
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		targets = append(targets, suite.Target{Name: name, Service: name,
			Contracts: []string{"hello", "http"}[:min(len(targets)+1, 2)]})
	}
	again := suite.Target{Name: "a-again", Service: "a-again", Contracts: []string{"hello"},
		ControlOf: "a"}
	s := read(t, `name: crowd
contract: hello
targets: [all]
baseline: a
blocks: 4
limits: {cpus: 1, memory: 1GiB}
scenarios: [{name: hello, requests: [{request: GET /hello}]}]
loads: [{name: peak, model: closed, connections: 4, measure: 1s}]
`)
	change(s)
	if fit > 0 {
		p := plan(t, s, append(targets, again))
		s.Crowd = "too much"
		s.Together, s.NoSlices = p.GroupsOf(fit, s.Crowd)
	}
	return s, append(targets, again)
}

// groupsIn lists the targets of each start of a plan, by the start's name, sorted.
func groupsIn(trials []suite.Trial) map[string]string {
	members := map[string][]string{}
	for _, t := range trials {
		members[t.Start] = append(members[t.Start], t.Target)
	}
	out := map[string]string{}
	for name, list := range members {
		slices.Sort(list)
		out[name] = strings.Join(list, " ")
	}
	return out
}

func TestGroups(t *testing.T) {
	s, targets := crowdOf(t, 4, func(*suite.Suite) {})
	p := plan(t, s, targets)
	if want := "2 groups of up to 4 targets each, and each group includes a: too " +
		"much"; p.Grouped != want {
		t.Errorf("%q, want %q", p.Grouped, want)
	}
	got := groupsIn(p.Trials)
	for block := 1; block <= 4; block++ {
		first, second := got[fmt.Sprintf("s%d", 2*block-1)], got[fmt.Sprintf("s%d", 2*block)]
		if first != "a a-again b c" || second != "a a-again d e" {
			t.Errorf("block %d: %q and %q", block, first, second)
		}
	}
	if len(got) != 8 || len(groupsIn(p.Reserve)) != 2 {
		t.Errorf("starts %v, in reserve %v", got, groupsIn(p.Reserve))
	}
	orders := map[int]bool{} // of the groups, within a block
	ids := map[string]bool{}
	for i, x := range p.Trials {
		if i%4 == 0 && x.Block%2 == 1 {
			orders[i%8] = true
		}
		if ids[x.ID] || x.Group != 2-x.Block%2 {
			t.Errorf("trial %+v", x)
		}
		ids[x.ID] = true
		if x.Block > 2 && x.Seed == p.Trials[0].Seed {
			t.Errorf("%s has the arrivals of another block", x.ID)
		}
	}
	if len(orders) != 2 {
		t.Errorf("the first group stands at %v only", orders)
	}
	// All fit again.
	s, targets = crowdOf(t, 0, func(*suite.Suite) {})
	if p := plan(t, s, targets); p.Grouped != "" || len(groupsIn(p.Trials)) != 4 {
		t.Errorf("%q, starts %v", p.Grouped, groupsIn(p.Trials))
	}
}

// TestGroupsOfMany divides targets that are too many to run side by side.
func TestGroupsOfMany(t *testing.T) {
	s, targets := crowdOf(t, 0, func(*suite.Suite) {})
	for i := range 8 {
		name := fmt.Sprintf("f%d", i)
		targets = append(targets, suite.Target{Name: name, Service: name,
			Contracts: []string{"hello"}})
	}
	p := plan(t, s, targets)
	if want := "2 groups of up to 8 targets each, and each group includes a: at most 12 targets " +
		"can run side by side"; p.Grouped != want || p.Blockwise != "" {
		t.Errorf("%q, want %q; %q", p.Grouped, want, p.Blockwise)
	}
	got := groupsIn(p.Trials)
	const first, second = "a a-again b c d e f0 f1", "a a-again f2 f3 f4 f5 f6 f7"
	if got["s1"] != first || got["s2"] != second || len(got) != 8 {
		t.Errorf("starts %v, want s1: %s and s2: %s", got, first, second)
	}
}

// TestNoGroups reports why targets cannot be divided.
func TestNoGroups(t *testing.T) {
	check := func(fit int, want string, change func(*suite.Suite)) {
		t.Helper()
		s, targets := crowdOf(t, fit, change)
		p := plan(t, s, targets)
		if p.Blockwise != want || p.Grouped != "" || p.Trials[0].Start != "" {
			t.Errorf("%q, want %q; %q", p.Blockwise, want, p.Grouped)
		}
	}
	check(2, "too much", func(*suite.Suite) {}) // no room beside the baseline and its control
	check(4, "too much, and there is no baseline that the groups could share",
		func(s *suite.Suite) { s.Baseline = "" })
	check(3, "too much, and scenario hello does not include the baseline",
		func(s *suite.Suite) { s.Scenarios[0].Contract = "http" })
	check(4, "too much, and groups of targets need a number of starts (--blocks)",
		func(s *suite.Suite) { s.For = suite.Duration(60e9) })
	check(4, "too much, and only targets without variants can be divided into groups",
		func(s *suite.Suite) { s.AA = true })
}
