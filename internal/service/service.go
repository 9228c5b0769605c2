// Package service handles the services that Prony measures: it reads their manifests
// (docs/formats/service.md), finds the tools that they need, builds them into a cache, returns how
// to start them, and checks whether a running service meets its contracts (contract/README.md).
//
// The order of use is Catalog, Tools.Missing, Builder.Build, Service.Starts and, when the process
// runs, WaitReady and Conform. This package does not start processes under limits (internal/launch
// does) or generate load (package load does).
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

// Service is the content of a service.yaml, with its folder.
type Service struct {
	Name      string   `yaml:"name"`
	Language  string   `yaml:"language"`
	Framework string   `yaml:"framework"`
	Version   string   `yaml:"version"` // of the framework
	About     string   `yaml:"about"`
	Contracts []string `yaml:"contracts"`
	// Protocols are the protocols of its usual build besides plain HTTP/1.1. The environment
	// selects one.
	Protocols []string `yaml:"protocols"`
	Needs     []Need   `yaml:"needs"`
	Build     Build    `yaml:"build"`
	Builds    []Other  `yaml:"builds"` // further artifacts of the same sources
	Run       Run      `yaml:"run"`
	Targets   []Target `yaml:"targets"`
	Dir       string   `yaml:"-"` // the folder
	// Origin names another checkout than the current one, for example "base".
	Origin string `yaml:"-"`
	// Other is the name of the further build of this service, such as "native"; empty: the first
	// build.
	Other string `yaml:"-"`
	// Only reports whether a file or folder below Dir is source; nil: all except results of manual
	// builds.
	Only func(name string) bool `yaml:"-"`
	// Made is the service if it needs no build, and Environ the environment of its processes
	// besides the manifest's; nil: as for services of the catalog. Both are set for services
	// without a manifest.
	Made    *Built   `yaml:"-"`
	Environ []string `yaml:"-"`
	// Wants are needs of a service without a manifest.
	Wants []Want `yaml:"-"`
	// Unavailable is why nobody can build it; empty: it can be built.
	Unavailable string `yaml:"-"`
	// Checkout is the revision to build from; nil: the files in Dir.
	Checkout *Checkout `yaml:"-"`
	// Port is the fixed port at which the process listens that receives the requests; 0: assigned.
	Port int `yaml:"-"`
	// AsMe lets the processes run as this program's user, also if that is root.
	AsMe bool `yaml:"-"`
	// ControlOf names the service of which this is an A/A control; empty: not a control.
	ControlOf string `yaml:"-"`
	// BuiltAs replaces Name in the names of builds, for services that share one.
	BuiltAs string `yaml:"-"`

	spoken  []*Service // builds for protocols, without targets of their own
	several bool       // the manifest has several targets, without those for explicit use only
}

// Label returns the service's name with its build, such as "java-spring (native)".
func (s *Service) Label() string {
	if s.Other == "" {
		return s.Name
	}
	return s.Name + " (" + s.Other + ")"
}

// buildName returns the name of the build's files, such as "java-spring-native".
func (s *Service) buildName() string {
	return strings.TrimSuffix(cmp.Or(s.BuiltAs, s.Name)+"-"+s.Other, "-")
}

// Need is a tool that is needed to build or run a service.
type Need struct {
	Tool    string `yaml:"tool"`
	Version string `yaml:"version"` // minimum, dotted numbers; empty: any
}

// Want is a tool outside of the catalog, with the command that prints its version.
type Want struct {
	Tool string
	Ask  []string
}

// Build describes how the artifact is made.
type Build struct {
	Steps    [][]string `yaml:"steps"`    // argument lists, no shell
	Artifact string     `yaml:"artifact"` // file or folder, relative to the built copy
}

// Other is a further build of the sources, for the targets that name it.
type Other struct {
	Name    string `yaml:"name"`
	Needs   []Need `yaml:"needs"` // in addition to the service's
	Build   `yaml:",inline"`
	Command []string `yaml:"command"` // replaces run.command
	// Unavailable is why nobody can build it, such as a library that no registry has; empty: it can
	// be built.
	Unavailable string `yaml:"unavailable"`
	// Protocols are spoken only by this build: the usual build's targets run it for them.
	Protocols []string `yaml:"protocols"`
}

// Run describes how every target of the service is started: by one command, or as a system of
// several processes.
type Run struct {
	Command   []string          `yaml:"command"`
	Processes []Process         `yaml:"processes"`
	Env       map[string]string `yaml:"env"`
	Health    string            `yaml:"health"` // path of the health endpoint
	Ready     string            `yaml:"ready"`  // answers 200 when the service can serve requests
	// Startup limits the time of a target in a trial from exec to the first good answer; 0: the
	// default.
	Startup time.Duration `yaml:"startup"`
}

// Process is one process of a system. Processes are started in order, each when the previous one is
// ready; the last receives the requests.
type Process struct {
	Name    string            `yaml:"name"`
	Targets []string          `yaml:"targets"` // that include it; none: all
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`   // added to run's; the target's is added later
	Ready   string            `yaml:"ready"` // empty: ready when it accepts a connection
	Share   float64           `yaml:"share"` // parts of the memory; 0 counts as 1
	// Backing marks a database or another dependency of the target. It gets a core of its own,
	// outside of the limits, if there are enough.
	Backing bool   `yaml:"backing"`
	Image   string `yaml:"image"` // "none": it cannot be a container
}

// Target is one way to run a service.
type Target struct {
	Name    string            `yaml:"name"`    // in the manifest; Full has the catalog's
	Runtime string            `yaml:"runtime"` // one of runtimes.Names
	Mode    string            `yaml:"mode"`    // platform, virtual or reactive
	Env     map[string]string `yaml:"env"`     // added to the service's
	Args    []string          `yaml:"args"`    // added to the service's command
	Needs   []Need            `yaml:"needs"`   // in addition to the service's, to run it
	Build   string            `yaml:"build"`   // name of one of builds; empty: the first one
	// ExplicitOnly says why only suites that name the target include it.
	ExplicitOnly string `yaml:"explicitOnly"`
	// Counters are the counters of its dependencies, by their names in requests.
	Counters map[string]counters.Place `yaml:"counters"`
	// Connections replaces the number of connections of a suite's loads; 0: the suite's.
	Connections int `yaml:"-"`
	// Body replaces the size of requests' bodies of a suite; 0: the suite's.
	Body strictyaml.Size `yaml:"-"`
}

// Full returns the target's name in the catalog, such as "java-jdk/virtual". The only target of a
// service, without those for explicit use only, has the service's name. The name of a target from
// another checkout ends in its origin: "java-jdk/virtual@base".
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

// split returns a service for each build that a target uses: with the same sources, but its own
// steps, needs and targets.
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
		ownService.Unavailable = b.Unavailable
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
// builds becomes several services of one name. The error joins the problems of broken manifests,
// each with file:line; the services with valid manifests are also returned.
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
			// A folder without a manifest may hold notes, or an unfinished service.
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
