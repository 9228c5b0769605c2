package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"prony/internal/launch"
	"prony/internal/launch/docker"
	"prony/internal/launch/process"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/trial"
)

// fleet are the launchers of containers that a run uses.
type fleet struct {
	launchers map[string]launch.Launcher
	gateway   netip.Addr // where containers reach this machine; not valid: they need not
	reaped    []string   // what an earlier lab had left in the engine, in words
	end       []func() error
}

func (f *fleet) close() error {
	var errs []error
	for _, end := range f.end {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}

// muster opens the launchers that a suite asks for. One that cannot be had here is left out of the
// suite, with the reason.
func (a *app) muster(ctx context.Context, s *suite.Suite) (*fleet, []result.Skipped, error) {
	f := &fleet{launchers: map[string]launch.Launcher{}}
	var kept []string
	var lost []result.Skipped
	for _, name := range s.Launchers {
		if name != suite.Launchers[0] {
			if err := a.world.container(ctx, name, f); err != nil {
				lost = append(lost, result.Skipped{Target: "launcher " + name,
					Reason: err.Error()})
				continue
			}
		}
		kept = append(kept, name)
	}
	if len(lost) == 0 {
		return f, nil, nil
	}
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("run %s: none of its launchers works here; %s: %s", s.Name,
			lost[0].Target, lost[0].Reason)
	}
	return f, lost, s.Override(suite.Override{Launchers: kept})
}

// plain says whether a suite starts plain processes, too.
func plain(s *suite.Suite) bool {
	return len(s.Launchers) == 0 || slices.Contains(s.Launchers, suite.Launchers[0])
}

// uncontained are the targets of a plan that cannot be started as containers, where it wants that.
func uncontained(s *suite.Suite, services []*service.Service, names []string) (
	out []result.Skipped) {
	if len(s.Launchers) == 0 || slices.Equal(s.Launchers, suite.Launchers[:1]) {
		return nil
	}
	for _, name := range names {
		x, t, _ := find(services, name)
		if why := x.NoImage(t); why != "" {
			out = append(out, result.Skipped{Target: name + " in a container", Reason: why})
		}
	}
	return out
}

// images builds what the containers of a plan are started from. What cannot be built fails its
// trials and stops no others.
func (a *app) images(ctx context.Context, services []*service.Service, b *service.Builder,
	e *trial.Experiment, show *progress) {
	e.Images = map[string]trial.Image{}
	done := map[*service.Service]trial.Image{}
	for _, t := range e.Plan.Trials {
		if t.Launcher == "" || ctx.Err() != nil {
			continue
		}
		s, target, _ := find(services, t.Target)
		name := t.Target
		if build := e.Plan.Suite.Variant(t.Variant).Build; build != "" {
			name += "+" + build
			if other, _, ok := twinOf(services, s, target, build); ok {
				s = other
			}
		}
		image, ok := done[s]
		if !ok {
			image.Built, image.Lacking = a.world.image(ctx, b, s)
			if image.Lacking != nil {
				show.line(image.Lacking.Error())
			}
			done[s] = image
		}
		e.Images[name] = image
	}
}

func (machine) image(ctx context.Context, b *service.Builder, s *service.Service) (
	*service.Built, error) {
	return b.Image(ctx, s)
}

func (machine) container(ctx context.Context, name string, f *fleet) error {
	l, reaped, err := docker.New(ctx, docker.Options{Host: name == docker.HostName,
		Dir: process.DefaultDir()})
	if err != nil {
		return err
	}
	f.launchers[name], f.reaped = l, append(f.reaped, reaped...)
	f.end = append(f.end, l.Close)
	if name == docker.Name {
		f.gateway = l.Gateway()
	}
	return nil
}
