package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"prony/internal/agent"
	"prony/internal/profile"
	"prony/internal/profile/gopprof"
	"prony/internal/profile/jvm"
	"prony/internal/profile/kernel"
	"prony/internal/profile/node"
	"prony/internal/profile/pyspy"
	"prony/internal/service"
	"prony/internal/suite"
)

// collectors are all that can take a profile; profile.Choose has the order.
func collectors() []profile.Collector {
	return append([]profile.Collector{jvm.AsyncProfiler{}, jvm.JFR{}, gopprof.Collector{},
		node.V8{}, pyspy.PySpy{}}, kernel.Collectors()...)
}

// profilerAgents are profilers that are fetched as agents are, by the runtime that they are for,
// with the place of the program in what was fetched.
var profilerAgents = []struct {
	runtimes []string
	agent    string
	set      func(*profile.Tools, string)
}{
	{[]string{"jvm", "aot"}, "async-profiler", func(t *profile.Tools, dir string) {
		t.AsyncProfiler = filepath.Join(dir, agent.Platform(), "libasyncProfiler.so")
	}},
	{[]string{"cpython"}, "py-spy", func(t *profile.Tools, dir string) {
		t.PySpy = filepath.Join(dir, "bin", "py-spy")
	}},
}

// chooser finds what takes a profile of a kind, as trial.Lab's Profiler does.
type chooser func(s profile.Subject, kind, tool string) (profile.Choice, error)

// profiler fetches the profilers that the plan's targets take, and gives what chooses among all.
// One that cannot be fetched is told, and another takes its place.
func (w machine) profiler(ctx context.Context, root string, p *suite.Plan,
	services []*service.Service, say func(string)) (profile.Tools, chooser) {
	tools := profile.Tools{}
	if !profiles(p) {
		return tools, nil
	}
	catalog, err := (&app{}).agents(root)
	if err != nil {
		say(err.Error())
		catalog = &agent.Catalog{}
	}
	for _, t := range profilerAgents {
		wanted := slices.ContainsFunc(targetsOf(p), func(name string) bool {
			_, target, _ := find(services, name)
			return slices.Contains(t.runtimes, target.Runtime)
		})
		if !wanted {
			continue
		}
		found, err := catalog.Pick(t.agent)
		if err == nil {
			ride, failed := w.fetch(ctx, root, found, say)
			if err = failed; err == nil {
				t.set(&tools, ride.Path)
			}
		}
		if err != nil {
			say(fmt.Sprintf("no %s: %v", t.agent, err))
		}
	}
	return tools, func(s profile.Subject, kind, tool string) (profile.Choice, error) {
		all := collectors()
		if tool != "" {
			all = slices.DeleteFunc(all, func(c profile.Collector) bool { return c.Name() != tool })
			if len(all) == 0 {
				return profile.Choice{}, errors.New("there is no profiler " + tool)
			}
		}
		return profile.Choose(all, s, kind)
	}
}

// profiles says whether a trial of the plan takes a profile.
func profiles(p *suite.Plan) bool {
	return slices.ContainsFunc(p.Trials, func(t suite.Trial) bool {
		return len(p.Suite.ObserveOf(t).Profile) > 0
	})
}
