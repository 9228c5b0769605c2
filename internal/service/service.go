// Package service knows the services that Prony measures: what their manifests say
// (docs/formats/service.md), which tools they need, how they are built into a cache and started,
// and whether a running one keeps its contracts (contract/README.md).
//
// The way goes Catalog, Tools.Missing, Builder.Build, Service.Starts, then, with the process
// running, WaitReady and Conform. Starting processes under limits is internal/launch's, offering
// load is load's; this package does neither.
package service

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/service/counters"
)

// Service is one manifest: a folder of services/ and what its service.yaml says.
type Service struct {
	Name      string   `yaml:"name"`
	Language  string   `yaml:"language"`
	Framework string   `yaml:"framework"`
	Version   string   `yaml:"version"` // of the framework
	About     string   `yaml:"about"`
	Contracts []string `yaml:"contracts"`
	// Protocols are what its usual build speaks beside HTTP/1.1 in the clear: one of them instead,
	// where the environment names it.
	Protocols []string `yaml:"protocols"`
	Needs     []Need   `yaml:"needs"`
	Build     Build    `yaml:"build"`
	Builds    []Other  `yaml:"builds"` // further artifacts of the same sources
	Run       Run      `yaml:"run"`
	Targets   []Target `yaml:"targets"`
	Dir       string   `yaml:"-"` // the folder
	// Origin names another checkout than the one that is worked in, e.g. "base".
	Origin string `yaml:"-"`
	// Other is the name of the further build that this is, as "native"; empty: the first one.
	Other string `yaml:"-"`
	// Only says of a file or folder below Dir whether it is source; nil: all are but what builds by
	// hand leave there.
	Only func(name string) bool `yaml:"-"`
	// Made is what needs no build, and Environ what its processes see of an environment beside what
	// a manifest says; nil: as of a catalog's service. Both are of services without a manifest.
	Made    *Built   `yaml:"-"`
	Environ []string `yaml:"-"`
	// Wants are needs of a service without a manifest.
	Wants []Want `yaml:"-"`
	// Checkout is the revision that it is built from, instead of what is in Dir; nil: Dir.
	Checkout *Checkout `yaml:"-"`
	// ControlOf names the service that this is a second copy of; empty: it is no control.
	ControlOf string `yaml:"-"`
	// BuiltAs names its builds instead of Name, for services that share one.
	BuiltAs string `yaml:"-"`

	spoken  []*Service // its builds that no target is of, each for its protocols
	several bool       // the manifest has more targets than one that are not kept aside
}

// Label names the service and which of its builds this is, as "java-spring (native)".
func (s *Service) Label() string {
	if s.Other == "" {
		return s.Name
	}
	return s.Name + " (" + s.Other + ")"
}

// buildName is what files of the build are named after, as "java-spring-native".
func (s *Service) buildName() string {
	return strings.TrimSuffix(cmp.Or(s.BuiltAs, s.Name)+"-"+s.Other, "-")
}

// Need is a tool that building or running takes.
type Need struct {
	Tool    string `yaml:"tool"`
	Version string `yaml:"version"` // at least this one, dotted numbers; empty: any
}

// Want is a tool that the catalog does not know, and the command that says its version.
type Want struct {
	Tool string
	Ask  []string
}

// Build is how the artifact is made.
type Build struct {
	Steps    [][]string `yaml:"steps"`    // argument lists, no shell
	Artifact string     `yaml:"artifact"` // file or folder, relative to the built copy
}

// Other is one more way to build the sources, for the targets that name it.
type Other struct {
	Name    string `yaml:"name"`
	Needs   []Need `yaml:"needs"` // beside the service's own
	Build   `yaml:",inline"`
	Command []string `yaml:"command"` // instead of run.command
	// Protocols are what this build alone speaks: the targets of the usual one run it for them.
	Protocols []string `yaml:"protocols"`
}

// Run is how every target of the service is started: by one command, or as a system of several
// processes.
type Run struct {
	Command   []string          `yaml:"command"`
	Processes []Process         `yaml:"processes"`
	Env       map[string]string `yaml:"env"`
	Health    string            `yaml:"health"` // path of the health endpoint
	Ready     string            `yaml:"ready"`  // answers 200 once requests can be served
	// Startup is how long a target may take in a trial, from exec to the first good answer; 0: as
	// long as the lab gives each.
	Startup time.Duration `yaml:"startup"`
}

// Process is one of a system. They are started in order, each waited for; the last one takes the
// requests.
type Process struct {
	Name    string            `yaml:"name"`
	Targets []string          `yaml:"targets"` // that it is a part of; none: all
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`   // added to run's, before the target's
	Ready   string            `yaml:"ready"` // empty: ready when it accepts a connection
	Share   float64           `yaml:"share"` // parts of the memory; 0 counts as 1
	// Backing is a database or whatever else the target leans on: on a core of its own, outside of
	// the limits, where there are enough.
	Backing bool   `yaml:"backing"`
	Image   string `yaml:"image"` // "none": it cannot be a container
}

// Target is one way to run a service.
type Target struct {
	Name    string            `yaml:"name"`    // as in the manifest; Full gives the catalog's name
	Runtime string            `yaml:"runtime"` // one of runtimes.Names
	Mode    string            `yaml:"mode"`    // platform, virtual or reactive
	Env     map[string]string `yaml:"env"`     // added to the service's
	Args    []string          `yaml:"args"`    // added to the service's command
	Needs   []Need            `yaml:"needs"`   // beside the service's, to run it
	Build   string            `yaml:"build"`   // which of builds; empty: the first one
	// ExplicitOnly says why it stands in no table beside others unless a suite names it.
	ExplicitOnly string `yaml:"explicitOnly" was:"aside"`
	// Counters are those of what it asks, by the names that requests have for them.
	Counters map[string]counters.Place `yaml:"counters"`
	// Connections are those of its loads, instead of a suite's; 0: the suite's.
	Connections int `yaml:"-"`
	// Body is the size of requests' bodies, instead of a suite's; 0: the suite's.
	Body strictyaml.Size `yaml:"-"`
}

// Full is the target's name in the catalog, as "java-jdk/virtual". The only target of a service
// that is not kept aside goes by the service's name alone. One of another checkout ends in its
// origin, "java-jdk/virtual@base".
func (s *Service) Full(t Target) string {
	name := s.Name
	if s.several || t.ExplicitOnly != "" {
		name += "/" + t.Name
	}
	if s.Origin != "" {
		name += "@" + s.Origin
	}
	return name
}

// split gives a service for each of its builds that a target wants: the same sources, other steps
// and needs, and the targets that are of it.
func (s *Service) split() []*Service {
	all := s.Targets
	extra := slices.DeleteFunc(slices.Clone(all),
		func(t Target) bool { return t.ExplicitOnly != "" })
	s.several = len(extra) > 1
	value := func(build string) (out []Target) {
		for _, t := range all {
			if t.Build == build {
				out = append(out, t)
			}
		}
		return out
	}
	var out []*Service
	if s.Targets = value(""); len(s.Targets) > 0 {
		out = append(out, s)
	}
	for _, b := range s.Builds {
		ownService := *s
		ownService.spoken = nil
		ownService.Other, ownService.Build, ownService.Targets = b.Name, b.Build, value(b.Name)
		ownService.Needs = slices.Concat(s.Needs, b.Needs)
		if len(b.Command) > 0 {
			ownService.Run.Command = b.Command
		}
		if ownService.Protocols = b.Protocols; len(b.Protocols) > 0 {
			ownService.Targets = s.Targets
			s.spoken = append(s.spoken, &ownService)
			continue
		}
		out = append(out, &ownService)
	}
	return out
}

// Catalog reads all services/*/service.yaml below root, sorted by name. A service with several
// builds is several services of one name. Broken manifests are errors, joined, each problem with
// file:line; the services whose manifests are sound are returned with them.
func Catalog(root string) ([]*Service, error) {
	folder := filepath.Join(root, "services")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w (run the command in the root of a checkout, "+
			"which contains services/)", err)
	}
	var services []*Service
	var errs []error
	for _, entry := range entries {
		s, err := Load(filepath.Join(folder, entry.Name()))
		switch {
		case errors.Is(err, os.ErrNotExist):
			// A folder without a manifest is somebody's note, or a service not begun.
		case err != nil:
			errs = append(errs, err)
		default:
			services = append(services, s.split()...)
		}
	}
	if len(services) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("read the catalog: %s contains no */service.yaml", folder))
	}
	slices.SortStableFunc(services, func(a, b *Service) int {
		return strings.Compare(a.Name, b.Name)
	})
	return services, errors.Join(errs...)
}
