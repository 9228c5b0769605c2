package main

import (
	"fmt"
	"time"

	"prony/internal/host"
	"prony/internal/launch"
	"prony/internal/probe"
	"prony/internal/suite"
	"prony/internal/system"
	"prony/internal/trial"
)

const duetHelp = "two targets at a time, on cores of their own, under loads that begin together; " +
	"=shared: a service and its load on the same cores, where there are few"

// divide gives a run's services and loads their cores. Sides is for duets, else nil.
func divide(cores []int, p *suite.Plan) (host.Layout, *host.Sides, error) {
	if p.Suite.Duet == "" {
		layout, err := host.Divide(cores, p.Suite.Limits.CPUs)
		return layout, nil, err
	}
	sides, err := host.DivideSides(cores, p.Suite.Limits.CPUs, p.Suite.Duet == suite.Shared)
	return sides.Whole(), &sides, err
}

// sayDuets says what two targets at a time means for this run.
func sayDuets(say func(string), s *host.Sides, p *suite.Plan) {
	if s == nil {
		return
	}
	say(fmt.Sprintf("duets, two targets at a time: left on cores %v, right on %v; "+
		"sides swap from pass to pass", s.Left.Cores(), s.Right.Cores()))
	if p.Suite.Blocks%2 == 1 {
		say(fmt.Sprintf("  an odd number of passes leaves one target on the left once more than "+
			"the other: --blocks %d would not", p.Suite.Blocks+1))
	}
	if s.Left.Shared {
		say("  each service shares its cores with its own load, so every trial is SUSPECT")
	}
}

// passes is what a plan's blocks are called: with duets, a block is a duet.
func passes(p *suite.Plan) string {
	if p.Suite.Duet != "" {
		return "passes of duets"
	}
	return "blocks"
}

// watch samples a service from the load's cores. Processes that other tells are not taken for
// strangers. A period of 0 is the usual one.
func watch(p launch.Process, l host.Layout, period time.Duration, other func() []int) (
	trial.Watcher, error) {
	subject := probe.Subject{PIDs: p.PIDs, Load: other}
	for _, g := range p.Groups() {
		subject.Groups = append(subject.Groups, probe.Group(g))
	}
	if !p.Addr().Addr().IsLoopback() {
		subject.Network = p.Main()
	}
	if s, ok := p.(*system.System); ok && len(s.Parts) > 1 {
		for _, part := range s.Parts {
			subject.Parts = append(subject.Parts, probe.Part{Name: part.Name, Group: part.PID})
		}
	}
	return probe.Start(probe.Config{Cores: l.Load, Period: period}, subject)
}
