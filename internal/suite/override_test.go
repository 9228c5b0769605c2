package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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

// TestQuickOfBlocks checks that a preview has two blocks if other flags make slices impossible.
func TestQuickOfBlocks(t *testing.T) {
	for _, o := range []suite.Override{{Observed: true, Watch: suite.Observe{Telemetry: true}},
		{Limits: suite.Limits{CPUs: 0.5}}, {Launchers: []string{"kubernetes"}}, {Generators: 2},
		{InWindow: []string{"cpu"}}} {
		s := read(t, strings.Replace(whole, "baseline: go\n", "", 1))
		s.Blocks, s.Limits.CPUs, o.Quick = 7, 1, true
		if err := s.Override(o); err != nil || s.Blocks != 2 {
			t.Errorf("%+v: %d blocks, error %v", o, s.Blocks, err)
		}
	}
}

// TestQuickOfJVMs checks that a preview with a JVM has two starts, whose warm-ups are long enough
// to compile but not longer than the suite's, and that the plan says so. Flags apply afterwards.
func TestQuickOfJVMs(t *testing.T) {
	check := func(runtime string, longest time.Duration, o suite.Override, want string) {
		t.Helper()
		s := read(t, strings.Replace(whole, "baseline: go\n", "", 1))
		s.Blocks, s.Limits.CPUs = 7, 1
		s.Warmup.Max, s.Warmup.Min = suite.Duration(longest), 0
		o.Quick, o.Targets = true, []string{"a", "b"}
		if err := s.Override(o); err != nil {
			t.Fatal(err)
		}
		p := plan(t, s, []suite.Target{target("a", "native", ""), target("b", runtime, "")})
		last := p.Trials[len(p.Trials)-1].Block
		got := fmt.Sprintf("%v × %d, said: %t", p.Suite.Warmup.Max, last, p.Quick != "")
		if got != want {
			t.Errorf("%s, %v, %+v: %s, want %s", runtime, longest, o, got, want)
		}
	}
	check("native", time.Minute, suite.Override{}, "6s × 4, said: false")
	check("jvm", time.Minute, suite.Override{}, "30s × 2, said: true")
	check("aot", 20*time.Second, suite.Override{}, "20s × 2, said: true")
	check("jvm", 5*time.Second, suite.Override{}, "5s × 4, said: false")
	check("jvm", time.Minute, suite.Override{Blocks: 5}, "30s × 5, said: true")
	nine := suite.Duration(9 * time.Second)
	check("jvm", time.Minute, suite.Override{Warmup: nine}, "9s × 4, said: false")
}
