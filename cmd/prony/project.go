//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/cache"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/files"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial"
	"prony.example/internal/trial/lab"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// labOrProject is the lab of the checkout that is worked in, or else that of the nearest project's
// file upwards. It tells how it gets on.
func (a *app) labOrProject() (*lab.Lab, *suite.Project, *progressLine, error) {
	l, tell, err := a.lab()
	if err == nil || a.rootFlag != "" {
		return l, nil, tell, err
	}
	p, dir, found := findProject()
	if found != nil {
		return nil, nil, tell, found
	}
	if p == nil {
		return nil, nil, tell, fmt.Errorf("%w, or into a folder with a %s", err,
			suite.ProjectFiles[0])
	}
	return &lab.Lab{Root: dir, World: a.world, Tell: tell}, p, tell, nil
}

// findProject reads the nearest project's file from here upwards; nil: there is none.
func findProject() (p *suite.Project, dir string, err error) {
	if dir, err = os.Getwd(); err != nil {
		return nil, "", err
	}
	for here := dir; ; dir = filepath.Dir(dir) {
		for _, name := range suite.ProjectFiles {
			path := filepath.Join(dir, name)
			if !exists(path) {
				continue
			}
			data, err := files.Kept(path, files.Settings)
			if err != nil {
				return nil, dir, fmt.Errorf("read the project: %w", err)
			}
			if short, err := filepath.Rel(here, path); err == nil {
				path = short
			}
			p, err := suite.ReadProject(path, data)
			return p, dir, err
		}
		if dir == filepath.Dir(dir) {
			return nil, "", nil
		}
	}
}

// ofProject makes the wish one for an experiment of a project, whose answers are not asked for yet.
// Hosts that are remote may be loaded.
func ofProject(ctx context.Context, l *lab.Lab, p *suite.Project, wish *lab.Wish,
	remote []string) error {
	s, err := p.Suite(wish.Suite)
	if err != nil && wish.Suite != "" {
		err = cli.Usage(err)
	}
	if err != nil {
		return err
	}
	if wish.Against != "" {
		return cli.Usagef("--against is for another checkout of the catalog: here, add a target "+
			"with git: REVISION to %s", p.File)
	}
	sources, err := adhoc.Sources(p, l.Root)
	if err != nil {
		return err
	}
	for i := range sources {
		sources[i].Remote = remote
	}
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		if sc.Protocol, err = adhoc.Protocol(sources, sc.Protocol); err != nil {
			return fmt.Errorf("%s: scenario %s: %w", p.File, sc.Name, err)
		}
	}
	services, err := servicesOf(ctx, l, sources, cmp.Or(p.Ready, s.FirstGet()),
		time.Duration(p.Startup))
	if err != nil {
		return err
	}
	for _, s := range services {
		if lab.Contained(s) != "" && wish.Override.Duet != "" {
			return cli.Usagef("--duet is for processes, and %s is an image; leave it out", s.Name)
		}
	}
	wish.Own = &lab.Own{Suite: s, Services: services,
		Results: filepath.Join(l.Root, record.Kept, "run")}
	return nil
}

// hold asks the targets that would be measured, and holds each request that the file says nothing
// of against what their answers have in common.
func hold(ctx context.Context, l *lab.Lab, p *suite.Project, wish *lab.Wish) error {
	plan, err := l.Plan(*wish)
	if err != nil {
		return err
	}
	var of lab.Catalog
	for _, s := range wish.Own.Services {
		if slices.Contains(plan.Targets(), s.Name) {
			of = append(of, s)
		}
	}
	speaks := wish.Own.Suite.Scenarios[0]
	for _, other := range wish.Own.Suite.Scenarios {
		if other.Protocol != speaks.Protocol || other.Unix != speaks.Unix ||
			other.TLS != speaks.TLS {
			return cli.Usagef("scenarios %s and %s speak different protocols: put them into "+
				"experiments of their own, under suites", speaks.Name, other.Name)
		}
	}
	return wish.Own.Suite.Hold(func(asked []suite.Request, others []string) ([]suite.Request,
		error) {
		held, err := meet(ctx, l, of, time.Duration(p.Startup), asked, speaks, false)
		for i, h := range held {
			asked[i] = h.Request
		}
		for _, request := range others {
			l.Tell.Say(request + " is held against status 200 alone: it is another each time, " +
				"or others come before it; expect and checks say more")
		}
		return asked, err
	})
}

// servicesOf clones the revisions that sources name, and makes a service of each. A startup that is
// longer than trials wait by themselves holds for them, too.
func servicesOf(ctx context.Context, l *lab.Lab, sources []adhoc.Source, ready string,
	startup time.Duration) (lab.Catalog, error) {
	kept := filepath.Join(l.Root, record.Kept)
	if slices.ContainsFunc(sources, func(s adhoc.Source) bool { return len(s.Steps) > 0 }) {
		cached, err := cache.Project(ctx, l.Root, clock.Wall())
		if err != nil {
			return nil, err
		}
		l.Cache = cached
	}
	for i := range sources {
		note, err := sources[i].Clone(ctx, filepath.Join(l.Cache, "git"))
		if err != nil {
			return nil, err
		}
		if note != "" && !sources[i].Again {
			l.Tell.Say(note)
		}
	}
	services, err := adhoc.Services(sources, os.Environ(), strings.TrimPrefix(ready, "-"))
	for _, s := range services {
		s.Run.Startup = max(startup, trial.ReadyBound)
	}
	if _, made := os.Stat(kept); err != nil && made != nil {
		return nil, err // a line that is refused leaves nothing
	}
	return services, errors.Join(err, record.Keep(kept))
}

// named is the name that a service is asked by; empty: its address.
func named(s *service.Service) string {
	if s.Made == nil {
		return ""
	}
	return s.Made.Host
}

// portHint is for services that start and cannot be asked.
const portHint = "a service listens at $PORT of 127.0.0.1, or where its command says {port}, " +
	"and is ready when the path of ready (--ready), or else the first one asked for, answers 200 " +
	"within the time of startup (--startup)"

// meet starts each service once, asks it, and gives what all answers have in common, which it says.
func meet(ctx context.Context, l *lab.Lab, services lab.Catalog, startup time.Duration,
	requests []suite.Request, speaks suite.Scenario, statusOnly bool) ([]adhoc.Held, error) {
	var names []string
	var answers [][][]adhoc.Answer
	filled, err := adhoc.Fill(requests, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	speaks.Requests = filled
	speech := func(s *service.Service, at netip.AddrPort) *nethttp.Config {
		return trial.Speech(speaks.To(named(s)), "", at)
	}
	see := func(ctx context.Context, t lab.Seen) error {
		s := t.Service
		at, err := netip.ParseAddrPort(t.Base)
		if err != nil {
			return err
		}
		of, err := adhoc.Ask(ctx, speech(s, at), t.Base, speaks.To(named(s)).
			Sized(s.Targets[0].Body).Requests)
		names, answers = append(names, t.Name), append(answers, of)
		return err
	}
	for _, launcher := range suite.Launchers[:2] {
		of := slices.DeleteFunc(slices.Clone(services), func(s *service.Service) bool {
			return cmp.Or(lab.Contained(s), suite.Launchers[0]) != launcher
		})
		visit := lab.Visitor{Lab: l, Of: of, Bound: startup, Launcher: launcher,
			Doing: "start", Hint: portHint, Skipped: func(name string, missing []string) {
				l.Tell.Say(name + " is left out: it " + missing[0])
			}, See: see,
			Speak: func(s *service.Service, at netip.AddrPort) service.Speaker {
				return trial.Speaker(speech(s, at), named(s), at)
			}}
		if len(of) == 0 {
			continue
		}
		if err := visit.Visit(ctx, nil); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, nil // the run says why
	}
	held, err := adhoc.Hold(requests, names, answers, statusOnly, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	for _, h := range held {
		if h.Request.Given {
			continue
		}
		says := fmt.Sprintf("status %d and every byte of the body", h.Request.Expect.Status)
		if h.Says != "" {
			says = fmt.Sprintf("%s (status %d)", h.Says, h.Request.Expect.Status)
		}
		l.Tell.Say(h.Request.Request + " is held against " + strings.TrimPrefix(says, "by "))
	}
	return held, nil
}
