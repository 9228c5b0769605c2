// Package service knows the services that Prony measures: what their manifests say
// (docs/formats/service.md), which tools they need, how they are built into a cache and started,
// and whether a running one keeps its contracts (contract/README.md).
//
// The way goes Catalog, Tools.Missing, Builder.Build, Service.Command, then, with the process
// running, WaitReady and Conform. Starting processes under limits is internal/launch's, offering
// load is internal/load's; this package does neither.
package service

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Service is one manifest: a folder of services/ and what its service.yaml says.
type Service struct {
	Name      string   `yaml:"name"`
	Language  string   `yaml:"language"`
	Framework string   `yaml:"framework"`
	Version   string   `yaml:"version"` // of the framework
	About     string   `yaml:"about"`
	Contracts []string `yaml:"contracts"`
	Needs     []Need   `yaml:"needs"`
	Build     Build    `yaml:"build"`
	Run       Run      `yaml:"run"`
	Targets   []Target `yaml:"targets"`
	Dir       string   `yaml:"-"` // the folder
	// Origin names another checkout than the one that is worked in, e.g. "base".
	Origin string `yaml:"-"`
}

// Need is a tool that building or running takes.
type Need struct {
	Tool    string `yaml:"tool"`
	Version string `yaml:"version"` // at least this one, dotted numbers; empty: any
}

// Build is how the artifact is made.
type Build struct {
	Steps    [][]string `yaml:"steps"`    // argument lists, no shell
	Artifact string     `yaml:"artifact"` // file or folder, relative to the built copy
}

// Run is how every target of the service is started.
type Run struct {
	Command []string          `yaml:"command"`
	Env     map[string]string `yaml:"env"`
	Health  string            `yaml:"health"` // path of the health endpoint
	Ready   string            `yaml:"ready"`  // path that answers 200 once requests can be served
}

// Target is one way to run a service.
type Target struct {
	Name    string            `yaml:"name"`    // as in the manifest; Full gives the catalog's name
	Runtime string            `yaml:"runtime"` // jvm, native, node or cpython
	Mode    string            `yaml:"mode"`    // platform, virtual or reactive
	Env     map[string]string `yaml:"env"`     // added to the service's
	Args    []string          `yaml:"args"`    // added to the service's command
}

// Full is the target's name in the catalog, as "java-jdk/virtual". The only target of a service
// goes by the service's name alone. One of another checkout ends in its origin,
// "java-jdk/virtual@base".
func (s *Service) Full(t Target) string {
	name := s.Name
	if len(s.Targets) > 1 {
		name += "/" + t.Name
	}
	if s.Origin != "" {
		name += "@" + s.Origin
	}
	return name
}

// Catalog reads all services/*/service.yaml below root, sorted by name. Broken manifests are
// errors, joined, each problem with file:line; the services whose manifests are sound are returned
// with them.
func Catalog(root string) ([]*Service, error) {
	folder := filepath.Join(root, "services")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the catalog: %w (the root of a checkout holds services/)", err)
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
			services = append(services, s)
		}
	}
	if len(services) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("read the catalog: %s holds no */service.yaml", folder))
	}
	slices.SortFunc(services, func(a, b *Service) int { return strings.Compare(a.Name, b.Name) })
	return services, errors.Join(errs...)
}
