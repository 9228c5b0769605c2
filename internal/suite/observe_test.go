package suite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/observe/profile"
	"prony.example/internal/suite"
	"prony.example/record"
)

const observing = `name: observing
contract: hello
blocks: 2
scenarios:
  - name: hello
    connections: 7
    requests: [{request: GET /hello}]
loads:
  - {name: half, model: open, rate: 50%% of capacity}
%s
`

func readObserving(t *testing.T, more string) (*suite.Suite, error) {
	t.Helper()
	return suite.Read("observing.yaml", fmt.Appendf(nil, observing, more))
}

func mustRead(t *testing.T, more string) *suite.Suite {
	t.Helper()
	s, err := readObserving(t, more)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The kinds of profiles in suites equal those of package profile: neither package may import the
// other.
func TestProfileKinds(t *testing.T) {
	if !slices.Equal(suite.ProfileKinds, profile.Kinds) {
		t.Errorf("a suite knows %q, profilers %q", suite.ProfileKinds, profile.Kinds)
	}
}

// A capacity is not measured if the loads that need it are left out.
func TestCapacityLeftOut(t *testing.T) {
	s := mustRead(t, "  - {name: peak, model: closed}")
	if err := s.Override(suite.Override{Loads: []string{"peak"}}); err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]suite.Target{target("a", "jvm", "")})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Trials) != 2 || s.Capacity != (suite.Capacity{}) {
		t.Errorf("%d trials, want one in each of 2 blocks; the capacity is measured as %+v",
			len(p.Trials), s.Capacity)
	}
}

// A rate that is a share of the capacity adds a pilot of each target, bare and closed, before the
// blocks.
func TestPilots(t *testing.T) {
	s := mustRead(t, "variants: [{name: agent, env: {X: y}}]")
	p, err := s.Plan([]suite.Target{target("a", "jvm", ""), target("b", "jvm", "")})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Trials) != 2+2*2*2 {
		t.Fatalf("%d trials, want 2 pilots and 2 blocks of 2 targets, bare and with an agent",
			len(p.Trials))
	}
	for i, x := range p.Trials {
		if pilot := x.Role == record.Pilot; pilot != (i < 2) || pilot && x.Variant != "none" {
			t.Errorf("trial %d is %+v", i, x)
		}
	}
	if id := p.Trials[0].ID; id != "pilot-01-a" {
		t.Errorf("the first pilot is called %s", id)
	}
	loads := p.Suite.OfTrial(p.Trials[0])
	if len(loads) != 1 || loads[0].Model != record.Closed || loads[0].Connections != 7 ||
		loads[0].Name != suite.CapacityLoad || loads[0].Measure != s.Capacity.Measure {
		t.Errorf("a pilot offers %+v", loads)
	}
	if loads := p.Suite.OfTrial(p.Trials[2]); len(loads) != 1 || loads[0].Name != "half" {
		t.Errorf("another trial offers %+v", loads)
	}
	if s.Capacity.Connections != 64 || s.Capacity.Measure.String() != "5s" {
		t.Errorf("the capacity is measured by default as %+v", s.Capacity)
	}
}

func TestWrongObserving(t *testing.T) {
	check := func(more, want string) {
		t.Helper()
		if _, err := readObserving(t, more); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", more, err, want)
		}
	}
	check("  - {name: capacity, model: closed}", `"capacity", which rates use for`)
	check("observe: {traces: 2}", `share "2" is not a percentage`)
	check("observe: {traces: 101%}", `share "101%" exceeds 100%`)
	check("observe: {profile: [time]}", `"time" is not one of cpu, alloc, lock, offcpu`)
	check("variants: [{name: none2}]", `"none2" has no effect`)
	check("variants: [{agent: Otel}]", `agent "Otel" does not have the form`)
	check("observe: {profiler: jfr}", `profiler "jfr" is set, but no kind of profile is set`)
	check("observe: {profile: [cpu], profiler: jrf}", `did you mean "jfr"?`)
	check("observe: {profile: [cpu, alloc]}", "profile has 2 items, but must have 0 to 1")
	check("observe: {traces: 1%}\ndrivers: [wrk]", "only Prony's generator can send trace ids")
	check("variants: [{env: {X: y}}]", `the variant has neither a name nor an agent`)
	_, err := suite.Read("x.yaml", []byte(strings.Replace(fmt.Sprintf(observing,
		"capacity: {measure: 1s}"), "50% of capacity", "20/s", 1)))
	if err == nil || !strings.Contains(err.Error(), "no load's rate is a share of it") {
		t.Errorf("a capacity for nothing: %v", err)
	}
}

// The variant's own environment overrides the agent's, and its restrictions stay.
func TestAttach(t *testing.T) {
	s := mustRead(t, "variants: [{agent: otel-java/full, env: {A: own}, runtimes: [aot]},"+
		" {name: mine, agent: x}]")
	found := func(name string) (suite.Variant, error) {
		return suite.Variant{Env: map[string]suite.Text{"A": "${X}", "B": suite.Text(name),
			"C": "${X}"},
			UserEnv:  map[string]suite.Text{"A": "x", "C": "x"},
			Runtimes: []string{"jvm"}, Home: true, Version: "1"}, nil
	}
	if err := s.Attach(found); err != nil {
		t.Fatal(err)
	}
	v, own := s.Variants[0], s.Variants[1]
	if v.Name != "otel-java-full" || v.Env["A"] != "own" || v.Env["B"] != "otel-java/full" ||
		v.Env["C"] != "${X}" || fmt.Sprint(v.UserEnv) != "map[C:x]" ||
		fmt.Sprint(v.Runtimes) != "[aot]" || !v.Home || v.Version != "1" {
		t.Errorf("attached %+v", v)
	}
	if own.Name != "mine" || fmt.Sprint(own.Runtimes) != "[jvm]" {
		t.Errorf("attached %+v", own)
	}
	if !s.NeedsHome() {
		t.Error("nobody waits for what the agent sends")
	}
	err := s.Attach(func(string) (suite.Variant, error) {
		return suite.Variant{}, errors.New("no x")
	})
	if err == nil || !strings.Contains(err.Error(), "observing.yaml:") {
		t.Errorf("an unknown agent: %v", err)
	}
}

// An agent fits targets by runtime, language, and a service's build.
func TestWhatAgentsFit(t *testing.T) {
	s := mustRead(t, "variants: [{agent: a}]")
	check := func(want int, v suite.Variant, of suite.Target) {
		t.Helper()
		of.Name, of.Service, of.Contracts = "x", "x", []string{"hello"}
		fits := *s
		if err := fits.Attach(func(string) (suite.Variant, error) { return v, nil }); err != nil {
			t.Fatal(err)
		}
		other := target("other", "jvm", "")
		other.Language, other.Builds = "Java", []string{"otel"}
		p, err := fits.Plan([]suite.Target{of, other})
		n := 0
		if err == nil {
			for _, x := range p.Trials {
				if x.Target == "x" && x.Variant == "a" {
					n++
				}
			}
		}
		if n != want {
			t.Errorf("%+v rides %d times with %+v (%v), want %d", v, n, of, err, want)
		}
	}
	check(2, suite.Variant{}, suite.Target{Runtime: "native"})
	check(0, suite.Variant{Languages: []string{"Java"}}, suite.Target{Language: "Go"})
	check(2, suite.Variant{Languages: []string{"Go", "Java"}}, suite.Target{Language: "Go"})
	check(0, suite.Variant{Build: "otel"}, suite.Target{})
	check(2, suite.Variant{Build: "otel"}, suite.Target{Builds: []string{"otel"}})
	check(0, suite.Variant{Build: "otel"}, suite.Target{Build: "otel", Builds: []string{"otel"}})
}

// Observed trials come after the blocks, each with the first watcher that fits its target, and
// record what the flag requests; the others record what suite or variant request.
func TestObservedTrials(t *testing.T) {
	s := mustRead(t, "observe: {gc: true}\nvariants: [{name: quick, observe: {period: 10ms}}]")
	err := s.Override(suite.Override{Observed: true, Watching: []string{"j/x", "n/x"},
		Watch: suite.Observe{Traces: 0.5}, InWindow: []string{"alloc"}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Attach(func(name string) (suite.Variant, error) {
		runtimes := map[string]string{"j/x": "jvm", "n/x": "node"}
		return suite.Variant{Runtimes: []string{runtimes[name]}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]suite.Target{target("a", "node", ""), target("b", "native", "")})
	if err != nil {
		t.Fatal(err)
	}
	last := p.Trials[len(p.Trials)-2:]
	if last[0].Variant != "n-x+" || last[0].Role != record.Observed || last[1].Variant != "none" ||
		last[0].ID != "observed-11-a-n-x+" {
		t.Errorf("observed trials %+v", last)
	}
	check := func(x suite.Trial, want suite.Observe) {
		t.Helper()
		if got := p.Suite.ObserveOf(x); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s watches %+v, want %+v", x.ID, got, want)
		}
	}
	check(last[0], suite.Observe{Traces: 0.5})
	check(suite.Trial{Variant: "none"}, suite.Observe{GC: true, Profile: []string{"alloc"}})
	check(suite.Trial{Variant: "quick"}, suite.Observe{Period: suite.Duration(10e6)})
}

// Each kind of profile has an observed trial of its own.
func TestKindsOfProfiles(t *testing.T) {
	s := mustRead(t, "")
	err := s.Override(suite.Override{Observed: true,
		Watch: suite.Observe{Profile: []string{"cpu", "lock"}, GC: true}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan([]suite.Target{target("a", "jvm", "")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range p.Trials {
		if x.Role == record.Observed {
			got = append(got, fmt.Sprint(x.ID, p.Suite.ObserveOf(x).Profile))
		}
	}
	if want := "[observed-04-a-cpu[cpu] observed-05-a-lock[lock]]"; fmt.Sprint(got) != want {
		t.Errorf("observed trials %v, want %s", got, want)
	}
}

// A variant that sends telemetry needs a collector, whoever wrote its environment; an agent that
// would no longer be attached is an error.
func TestLimitsOfRiding(t *testing.T) {
	s := mustRead(t, `variants: [{name: own, env: {X: "http://{otlpHttp}"}}]`)
	if !s.Variants[0].Home || !s.NeedsHome() {
		t.Error("nobody listens to a variant that sends")
	}
	s = mustRead(t, "variants: [{agent: a, env: {OPTIONS: -Xss1m}}]")
	err := s.Attach(func(string) (suite.Variant, error) {
		return suite.Variant{Env: map[string]suite.Text{"OPTIONS": "-javaagent:{agent}"}}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "OPTIONS would disable agent a") {
		t.Errorf("an agent is lost: %v", err)
	}
	page := mustRead(t, "variants: [{agent: a}]")
	err = page.Attach(func(string) (suite.Variant, error) {
		return suite.Variant{Scrape: "/metrics"}, nil
	})
	if err != nil || !page.NeedsHome() {
		t.Errorf("nobody reads a page of metrics (%v)", err)
	}
}

// A quick run and a shorter window also shorten the pilot.
func TestShortPilots(t *testing.T) {
	for want, o := range map[string]suite.Override{
		"1s": {Quick: true}, "3s": {Measure: suite.Duration(3e9)}, "5s": {Blocks: 1},
	} {
		s := mustRead(t, "")
		if err := s.Override(o); err != nil || s.Capacity.Measure.String() != want {
			t.Errorf("the pilot takes %v, want %s (%v)", s.Capacity.Measure, want, err)
		}
	}
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]suite.Percent{"1%": 0.01, "0.5%": 0.005, "100%": 1} {
		var p suite.Percent
		if err := p.UnmarshalText([]byte(text)); err != nil || p != want || p.String() != text {
			t.Errorf("%s is %v, %v", text, p, err)
		}
	}
}
