//go:build linux && !portable

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/files"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/internal/trial/lab"
	"prony.example/record"
)

// labOrProject returns the lab of the current checkout, or else of the nearest project file
// upwards, and its progress line.
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

// findProject reads the nearest project file from here upwards; nil: there is none.
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
				return nil, dir, fmt.Errorf("read the project file: %w", err)
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

// ofProject makes the wish one for an experiment of a project, without expectations for responses
// yet. remote are hosts that may be loaded.
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
		return cli.Usagef("--against needs a checkout of the catalog; in a project, add a target "+
			"with git: REVISION to %s", p.File)
	}
	sources, err := adhoc.Sources(p, l.Root)
	if err != nil {
		return err
	}
	attached := false
	for i := range sources {
		sources[i].Remote = remote
		_, is := sources[i].Way.(adhoc.URL)
		attached = attached || is
	}
	if len(remote) > 0 && !attached {
		return cli.Usagef("--remote needs a target with a url in %s", p.File)
	}
	for i := range s.Scenarios {
		sc := &s.Scenarios[i]
		if sc.Protocol, err = adhoc.Protocol(sources, sc.Protocol); err != nil {
			return fmt.Errorf("%s: scenario %s: %w", p.File, sc.Name, err)
		}
	}
	services, err := l.Services(ctx, sources, cmp.Or(p.Ready, s.FirstGet()), wish.Out,
		time.Duration(p.Startup))
	if err != nil {
		return err
	}
	wish.Own = &lab.Own{Suite: s, Services: services,
		Results: filepath.Join(l.Root, record.Kept, "run")}
	return nil
}

// hold sends the requests to the targets that would be measured. For requests without expectations
// in the file, it expects what the responses have in common. The returned lab has the machine until
// leave is called.
func hold(ctx context.Context, l *lab.Lab, p *suite.Project, wish *lab.Wish) (taken *lab.Lab,
	leave func() error, err error) {
	plan, err := l.Plan(*wish)
	if err != nil {
		return nil, nil, err
	}
	var of lab.Catalog
	for _, s := range wish.Own.Services {
		if slices.Contains(plan.Targets(), s.Name) {
			of = append(of, s)
		}
	}
	if taken, leave, err = l.Take(ctx, of, wish.Out); err != nil {
		return nil, nil, err
	}
	if err = meet(ctx, taken, p, wish, of); err != nil {
		return nil, nil, errors.Join(err, leave())
	}
	return taken, leave, nil
}

// meet sends the requests to the services of, and sets what their responses are expected to be.
func meet(ctx context.Context, l *lab.Lab, p *suite.Project, wish *lab.Wish,
	of lab.Catalog) error {
	speaks := wish.Own.Suite.Scenarios[0]
	for _, other := range wish.Own.Suite.Scenarios {
		if other.Protocol != speaks.Protocol || other.Unix != speaks.Unix ||
			other.TLS != speaks.TLS {
			return cli.Usagef("scenarios %s and %s use different protocols: move them into "+
				"separate experiments under suites", speaks.Name, other.Name)
		}
	}
	ports := lab.Ports{}
	err := wish.Own.Suite.Hold(func(asked []suite.Request, others []string) ([]suite.Request,
		error) {
		held, err := l.Meet(ctx, lab.Meeting{Of: of, Startup: time.Duration(p.Startup),
			Requests: asked, Speaks: speaks, Ports: ports})
		for i, h := range held {
			asked[i] = h.Request
		}
		for _, request := range others {
			l.Tell.Say(request + " is checked only for status 200, because its response varies, " +
				"or other requests precede it; for stricter checks, set expect and checks")
		}
		return asked, err
	})
	if err != nil {
		return err
	}
	return l.CheckPorts(*wish, ports)
}
