package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/record"
)

// CapacityLoad is the name by which rates refer to the throughput of the bare target in a closed
// load before the blocks, so that all its variants get the same rate.
const CapacityLoad = "capacity"

// Capacity is the settings of that load, which runs in one trial for each target and scenario. The
// zero Capacity means none.
type Capacity struct {
	Connections int      `yaml:"connections" json:"connections"`
	Measure     Duration `yaml:"measure" json:"measure"`
}

// Defaults of Capacity if a rate is a share of it.
const (
	capacityConnections = 64
	capacityMeasure     = Duration(5 * second)
	capacityLead        = Duration(second)
)

// Profilers are the names of profilers, as in package profile.
var Profilers = []string{"async-profiler", "jfr", "pprof", "v8", "py-spy", "ebpf", "perf"}

// ProfileKinds are the kinds of profiles.
var ProfileKinds = []string{"cpu", "alloc", "lock", "offcpu"}

// Observe is what the lab records in a trial in addition to its samples.
type Observe struct {
	// Telemetry starts the telemetry collector.
	Telemetry bool `yaml:"telemetry" json:"home,omitempty"`
	// GC lets JVMs log their garbage collections.
	GC bool `yaml:"gc" json:"gc,omitempty"`
	// Traces is the share of requests with a trace id.
	Traces Percent `yaml:"traces" json:"traces,omitempty"`
	// Profile lists the kinds of profiles, taken in each load's window.
	Profile []string `yaml:"profile" json:"profile,omitempty"`
	// Profiler is the name of the tool; empty: the best for the runtime.
	Profiler string   `yaml:"profiler" json:"profiler,omitempty"`
	Period   Duration `yaml:"period" json:"period,omitempty"` // of samples; 0: the default
}

// IsZero reports whether nothing is recorded in addition to the samples.
func (o Observe) IsZero() bool {
	return !o.Telemetry && !o.GC && o.Traces == 0 && len(o.Profile) == 0 && o.Profiler == "" &&
		o.Period == 0
}

// Percent is a share, 0.01 for 1%.
type Percent float64

var percentRe = lazyregexp.New(percentForm)

const percentForm = `^([0-9]+(\.[0-9]+)?)%$`

// String returns the form "1%".
func (p Percent) String() string { return strconv.FormatFloat(float64(p)*100, 'g', 12, 64) + "%" }

// MarshalText returns String's form.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a share such as "1%".
func (p *Percent) UnmarshalText(b []byte) error {
	m := percentRe.FindStringSubmatch(string(b))
	if m == nil {
		return fmt.Errorf("share %q is not a percentage such as 1%%", b)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil || v > 100 {
		return fmt.Errorf("share %q exceeds 100%%", b)
	}
	*p = Percent(v / 100)
	return nil
}

// UnmarshalYAML reads the node's text; errors name its line.
func (p *Percent) UnmarshalYAML(n ast.Node) error { return strictyaml.Text(n, p) }

// usesCapacity reports whether a load's rate is a share of the bare target's capacity.
func (s *Suite) usesCapacity() bool {
	return slices.ContainsFunc(s.Loads, func(l Load) bool { return l.Rate.Of == CapacityLoad })
}

// fillCapacity sets the defaults of Capacity in a suite that needs it.
func (s *Suite) fillCapacity() {
	if !s.usesCapacity() {
		return
	}
	s.Capacity.Connections = cmp.Or(s.Capacity.Connections, capacityConnections)
	s.Capacity.Measure = cmp.Or(s.Capacity.Measure, capacityMeasure)
}

// observe checks that a profiler has a kind of profile.
func (c *checker) observe(keyPath string, o Observe) {
	if o.Profiler != "" && len(o.Profile) == 0 {
		c.Wrong(keyPath+".profiler", "add a kind such as profile: "+
			"[cpu]", "profiler %q is set, but no kind "+
			"of profile is set",
			o.Profiler)
	}
}

// capacity checks that the measured capacity is used.
func (c *checker) capacity(s *Suite) {
	if s.Capacity != (Capacity{}) && !s.usesCapacity() {
		c.Wrong("capacity", `add a load with a rate such as "rate: 50% of capacity"`,
			"the suite measures the capacity, but no load's rate is a share of it")
	}
	for i, l := range s.Loads {
		if l.Name == CapacityLoad {
			c.Wrong(fmt.Sprintf("loads[%d].name", i), "choose another name for the load",
				"a load cannot have the name %q, which rates use for the capacity of the target "+
					"without variants", l.Name)
		}
	}
}

// SceneOf returns the scenario of a trial, with its target's own connections and bodies.
func (s *Suite) SceneOf(t Trial) Scenario {
	sc := s.Scenario(t.Scenario)
	sc.Connections = cmp.Or(t.Connections, sc.Connections)
	return sc.in(s.Variant(t.Variant)).Sized(t.Body)
}

// OfTrial returns the loads of a trial: those of its scenario, or the one of a pilot.
func (s *Suite) OfTrial(t Trial) []Load {
	sc := s.SceneOf(t)
	if t.Role != record.Pilot {
		return s.LoadsOf(sc)
	}
	l := Load{Name: CapacityLoad, Model: record.Closed, Connections: s.Capacity.Connections,
		Lead: capacityLead, Measure: s.Capacity.Measure, Drain: capacityLead}
	l.Connections = sc.over(cmp.Or(sc.Connections, l.Connections))
	return []Load{l}
}

// ObserveOf returns what a trial records, by its variant or by the suite.
func (s *Suite) ObserveOf(t Trial) Observe {
	if t.Role == record.Observed {
		w := s.Watch
		if t.Profile != "" {
			w.Profile = []string{t.Profile}
		}
		return w
	}
	if v := s.Variant(t.Variant); !v.Observe.IsZero() {
		return v.Observe
	}
	return s.Observe
}

// beside returns the trials of a role outside of the comparison: each target under each scenario
// once, by the first launcher. A pilot has no variant; an observed trial has the first of Watching
// that fits its target.
func (s *Suite) beside(role string, targets []Target) (out []Trial) {
	for _, t := range targets {
		launchers := s.launchers(t)
		if len(launchers) == 0 {
			continue
		}
		for _, sc := range s.Scenarios {
			if !sc.kept(t) {
				continue
			}
			trial := Trial{Role: role, Target: t.Name, Scenario: sc.Name, Variant: none,
				Driver: Drivers[0], Launcher: launchers[0], Seed: s.loadSeed(0, sc.Name),
				Connections: t.Connections, Body: t.Body}
			index := slices.IndexFunc(s.Watching, func(v Variant) bool { return v.fits(t) })
			if role != record.Observed {
				out = append(out, trial)
				continue
			}
			if index >= 0 {
				trial.Variant = s.Watching[index].Name
			}
			out = append(out, s.observed(trial)...)
		}
	}
	return out
}

// observed returns a trial for each requested kind of profile, because most profilers take one kind
// at a time, and two would profile each other. Without profiles, it returns one trial.
func (s *Suite) observed(t Trial) (out []Trial) {
	if len(s.Watch.Profile) < 2 {
		return []Trial{t}
	}
	for _, kind := range s.Watch.Profile {
		t.Profile = kind
		out = append(out, t)
	}
	return out
}

// NeedsHome reports whether a trial of the suite needs the telemetry collector.
func (s *Suite) NeedsHome() bool {
	home := s.Observe.Telemetry || s.Watch.Telemetry
	for _, v := range slices.Concat(s.Variants, s.Watching) {
		home = home || v.Home || v.Observe.Telemetry || v.Scrape != ""
	}
	return home
}

// Attach completes the variants that name an agent by find: with its environment, which the
// variant's own overrides, and the targets that it fits.
func (s *Suite) Attach(find func(agent string) (Variant, error)) error {
	for _, list := range [][]Variant{s.Variants, s.Watching} {
		for i := range list {
			v := &list[i]
			if v.Agent == "" {
				continue
			}
			match, err := find(v.Agent)
			if err != nil {
				return s.source.Problem(fmt.Sprintf("variants[%d].agent", i), err.Error(), "")
			}
			if ownText := overridden(match.Env, v.Env); ownText != "" {
				return s.source.Problem(fmt.Sprintf("variants[%d].env.%s", i, ownText), fmt.Sprintf(
					"the variable %s would disable agent %s, which needs its own "+
						"value", ownText, v.Agent), "remove the "+
					"variable")
			}
			env := map[string]Text{}
			maps.Copy(env, match.Env)
			maps.Copy(env, v.Env)
			v.UserEnv = maps.Clone(match.UserEnv)
			for name := range v.Env {
				delete(v.UserEnv, name)
			}
			v.Env, v.Version, v.Build, v.Home = env, match.Version, match.Build, match.Home
			v.Languages, v.Scrape = match.Languages, match.Scrape
			if len(v.Runtimes) == 0 {
				v.Runtimes = match.Runtimes
			}
		}
	}
	return nil
}

// overridden returns a variable that attaches an agent and that a variant would overwrite; empty:
// none.
func overridden(agent, ownByName map[string]Text) string {
	for name, value := range agent {
		if _, set := ownByName[name]; set && strings.Contains(string(value), "{agent}") {
			return name
		}
	}
	return ""
}

// agentName returns the name of a variant that names only an agent: otel-java-full for
// otel-java/full.
func agentName(agent string) string { return strings.ReplaceAll(agent, "/", "-") }
