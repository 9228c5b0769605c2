package suite_test

import (
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// TestOverrideDrivers checks that generators by flag replace the suite's generators, and that
// Prony's own one alone, which can load in slices, is no obstacle to slices.
func TestOverrideDrivers(t *testing.T) {
	check := func(drivers []string, want, blockwise string) {
		t.Helper()
		text := strings.Replace(whole, "baseline: go\n", "", 1)
		s := read(t, strings.Replace(text, "loads:", "drivers: [prony, hey]\nloads:", 1))
		err := s.Override(suite.Override{Drivers: drivers, Blocks: 1,
			Targets: []string{"a", "b"}, Limits: suite.Limits{CPUs: 1}})
		if err != nil {
			t.Fatal(err)
		}
		p := plan(t, s, []suite.Target{target("a", "native", ""), target("b", "native", "")})
		seen, got := map[string]bool{}, []string{}
		for _, x := range p.Trials {
			if !seen[x.Driver] {
				seen[x.Driver], got = true, append(got, x.Driver)
			}
		}
		if text := fmt.Sprint(len(got), seen); text != want ||
			!strings.Contains(p.Blockwise, blockwise) || blockwise == "" && p.Blockwise != "" {
			t.Errorf("%v: generators %s, want %s; no slices because %q", drivers, text, want,
				p.Blockwise)
		}
	}
	const why = "only Prony's generator"
	check(nil, "2 map[hey:true prony:true]", why)
	check([]string{"wrk", "prony"}, "2 map[prony:true wrk:true]", why)
	check([]string{"wrk"}, "1 map[wrk:true]", why)
	check([]string{"prony"}, "1 map[prony:true]", "")
	s := read(t, whole)
	err := s.Override(suite.Override{Drivers: []string{"wrk", "wrk"}})
	if err == nil || !strings.Contains(err.Error(), `drivers contains "wrk" twice`) {
		t.Errorf("the same generator twice: %v", err)
	}
}

// TestOverrideAgents checks that agents by flag select the suite's agents, with what the suite says
// about them, and add others. Variants without an agent stay.
func TestOverrideAgents(t *testing.T) {
	check := func(want string, agents ...string) {
		t.Helper()
		s := mustRead(t, "variants: [{agent: a/low}, {name: high, agent: a/full, env: {A: b}}, "+
			"{name: fine, observe: {period: 10ms}}]")
		if err := s.Override(suite.Override{Agents: agents}); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, v := range s.Variants {
			got = append(got, fmt.Sprintf("%s:%s:%d", v.Name, v.Agent, len(v.Env)))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%v: %s, want %s", agents, text, want)
		}
	}
	check("a-low:a/low:0 high:a/full:1 fine::0")
	check("high:a/full:1 fine::0", "a/full")
	check("a-low:a/low:0 high:a/full:1 fine::0", "a/full", "a/low")
	check("high:a/full:1 fine::0 b-x:b/x:0", "b/x", "a/full")
	check("fine::0 b-x:b/x:0", "b/x")
}
