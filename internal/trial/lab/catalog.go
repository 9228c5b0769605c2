package lab

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/service"
	"prony.example/internal/suite"
)

// Catalog is all services. Each build of a service is an entry of its own.
type Catalog []*service.Service

// Targets lists the catalog's targets for a plan.
func (c Catalog) Targets() (out []suite.Target) {
	for _, s := range c {
		for _, t := range s.Targets {
			out = append(out, suite.Target{
				Name: s.Full(t), Service: s.Name, Mode: t.Mode, Runtime: t.Runtime,
				Contracts: s.Contracts, Aside: t.ExplicitOnly, Startup: startupGuess(s, t),
				Processes: processNames(s, t), Language: s.Language, Build: s.Other,
				Builds: c.builds(s, t), NoImage: s.NoImage(t), Launcher: Contained(s),
				Connections: t.Connections, Body: t.Body, Protocols: s.Spoken(),
				ControlOf: s.ControlOf,
			})
		}
	}
	return out
}

// Names returns the full names of all targets.
func (c Catalog) Names() (out []string) {
	for _, s := range c {
		for _, t := range s.Targets {
			out = append(out, s.Full(t))
		}
	}
	return out
}

// Contained returns the launcher of a service that consists only of images; empty: it does not.
func Contained(s *service.Service) string {
	if s.Made != nil && len(s.Made.Images) > 0 {
		return cmp.Or(s.Made.Launcher, suite.Launchers[1])
	}
	return ""
}

// processNames returns the process names of a target that is a system.
func processNames(s *service.Service, t service.Target) (names []string) {
	for _, p := range s.Processes(t) {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// startupGuess estimates the startup time of a target for the first estimate of a run, before its
// trials have measured it. Systems are JVMs on one core.
func startupGuess(s *service.Service, t service.Target) time.Duration {
	if n := len(s.Processes(t)); n > 1 {
		return time.Duration(n) * 8 * time.Second
	}
	return time.Second
}

// Find returns the target with a full name.
func (c Catalog) Find(target string) (*service.Service, service.Target, bool) {
	for _, s := range c {
		for _, t := range s.Targets {
			if s.Full(t) == target {
				return s, t, true
			}
		}
	}
	return nil, service.Target{}, false
}

// Only returns the catalog of one target, by its full name or by that of a service with a single
// target.
func (c Catalog) Only(target string) (Catalog, error) {
	s, t, ok := c.Find(target)
	for _, candidate := range c {
		if !ok && candidate.Name == target && len(candidate.Targets) == 1 {
			s, t, ok = candidate, candidate.Targets[0], true
		}
	}
	if !ok {
		return nil, c.unknown("target", target)
	}
	return Catalog{s.Narrow(t)}, nil
}

// Pick returns services by name, each with all its builds, and single targets by their full names;
// all services if no name is given.
func (c Catalog) Pick(names []string) (Catalog, error) {
	if len(names) == 0 {
		return c, nil
	}
	var out Catalog
	var errs []error
	for _, n := range names {
		before := len(out)
		for _, s := range c {
			if s.Name == n {
				out = append(out, s)
			}
		}
		if s, t, ok := c.Find(n); ok && len(out) == before {
			out = append(out, s.Narrow(t))
		}
		if len(out) > before {
			continue
		}
		subject := "service"
		if strings.Contains(n, "/") {
			subject = "target"
		}
		errs = append(errs, c.unknown(subject, n))
	}
	return out, errors.Join(errs...)
}

// unknown returns the error for a name that no service, or no target, has.
func (c Catalog) unknown(subject, name string) error {
	known := c.Names()
	if subject == "service" {
		known = nil
		for _, s := range c { // a service has several builds
			known = append(known, s.Name)
		}
		known = slices.Compact(slices.Sorted(slices.Values(known)))
	}
	return cli.Usagef("%s %q does not exist; %s", subject, name, strictyaml.Meant(name, known,
		"there are "+strings.Join(known, ", ")))
}

// twin returns the target of another build of a service that has the same mode.
func (c Catalog) twin(s *service.Service, t service.Target, build string) (*service.Service,
	service.Target, error) {
	for _, candidate := range c {
		if candidate.Name != s.Name || candidate.Other != build || candidate.Origin != s.Origin {
			continue
		}
		for _, twin := range candidate.Targets {
			if twin.Mode == t.Mode {
				return candidate, twin, nil
			}
		}
	}
	return s, t, fmt.Errorf("service %s has no build %q for mode %s", s.Name, build, t.Mode)
}

// builds returns the names of the other builds in which a target is available.
func (c Catalog) builds(s *service.Service, t service.Target) (out []string) {
	for _, candidate := range c {
		if candidate.Name == s.Name && candidate.Other != "" && candidate.Other != s.Other {
			if _, _, err := c.twin(s, t, candidate.Other); err == nil {
				out = append(out, candidate.Other)
			}
		}
	}
	return out
}

// attached reports whether all services run already, as those of URLs do.
func (c Catalog) attached() bool {
	return !slices.ContainsFunc(c, func(s *service.Service) bool {
		return s.Made == nil || !s.Made.Attached.IsValid()
	})
}
