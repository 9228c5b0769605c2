package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"prony/internal/launch"
	"prony/internal/launch/process"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/system"
)

// readyBound is how long a service may take to come up when it is only looked at, a system as a
// whole.
const readyBound = 8 * time.Minute

// verifyMemory is the budget of a process that is only looked at.
const verifyMemory = 1 << 30

// sight looks at a running target, whose name in the catalog is given.
type sight func(ctx context.Context, name string, s *service.Service, c service.Checker) error

// visit builds services, all without names, starts their targets one after another and lets see
// look at each, as processes or by another launcher. What cannot run here is skipped with a line.
// Errors are joined: a target that does not come up keeps nobody from the next.
func (a *app) visit(ctx context.Context, names []string, by string, see sight) (err error) {
	root, err := a.root()
	if err != nil {
		return err
	}
	services, err := a.choose(root, names)
	if err != nil {
		return err
	}
	journal, _, err := a.world.enter()
	if err != nil {
		return err
	}
	defer journal.Close()
	v := visitor{launcher: &process.Launcher{Journal: journal}, build: a.world.build,
		tools: service.FindTools(ctx)}
	v.missing = v.tools.Missing
	if by != suite.Launchers[0] {
		ships := &fleet{launchers: map[string]launch.Launcher{}}
		if err := a.world.container(ctx, by, ships); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ships.close()) }()
		v.launcher, v.build, v.missing = ships.launchers[by], a.world.image, lacksImage
	}
	skipped := func(name string, s *service.Service, t ...service.Target) bool {
		missing := v.missing(s, t...)
		if len(missing) > 0 {
			fmt.Fprintf(a.stdout, "skipped %s: %s\n", name, strings.Join(missing, "; "))
		}
		return len(missing) > 0
	}
	services = slices.DeleteFunc(services, func(s *service.Service) bool {
		return skipped(s.Label(), s)
	})
	var errs []error
	for i, o := range a.buildAll(ctx, v.build, a.builder(root, v.tools), services, 0) {
		if o.err != nil {
			errs = append(errs, o.err)
			continue
		}
		for _, t := range services[i].Targets {
			name := services[i].Full(t)
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			if skipped(name, services[i], t) {
				continue
			}
			if err := start(ctx, v.launcher, services[i], t, o.built, see); err != nil {
				errs = append(errs, fmt.Errorf("verify %s: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// visitor is how targets are started that are only looked at.
type visitor struct {
	launcher launch.Launcher
	build    maker
	tools    *service.Tools
	missing  func(*service.Service, ...service.Target) []string
}

// lacksImage says which of the targets cannot be containers.
func lacksImage(s *service.Service, targets ...service.Target) (out []string) {
	if len(targets) == 0 {
		targets = s.Targets[:1] // of the service: can any?
	}
	for _, t := range targets {
		if why := s.NoImage(t); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// start runs one target, lets see look at it and stops it.
func start(ctx context.Context, launcher launch.Launcher, s *service.Service, t service.Target,
	built *service.Built, see sight) (err error) {
	dir, err := os.MkdirTemp("", "prony-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only the log of a service that was looked at
	bounded, cancel := context.WithTimeout(ctx, readyBound)
	defer cancel()
	n := len(s.Processes(t)) // a system of many starts in minutes on one core
	p, err := system.Starter{Launcher: launcher, Port: freePort}.Start(bounded, system.Order{
		Name: s.Name, Service: s, Target: t, Built: built, LogFile: filepath.Join(dir, "prony.log"),
		CPUs: float64(min(n, runtime.NumCPU())), MemoryBytes: verifyMemory * int64(n),
		Listen: launcher.Listen(),
	})
	if p == nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(p.Grace())) }()
	if err == nil {
		_, _, err = service.WaitReady(bounded, nil, p.Addr().String(), s.Run.Ready, p.Began(),
			p.Exited())
	}
	if err != nil {
		log := p.Log(20)
		return fmt.Errorf("%w; it wrote:\n  %s", err, strings.Join(log[max(0, len(log)-20):],
			"\n  "))
	}
	return see(ctx, s.Full(t), s, service.Checker{Base: p.Addr().String(), Mode: t.Mode,
		Logs: func() []string { return p.Log(10000) }})
}
