// Package lab assembles a run: it reads a suite, plans it against the catalog, leaves out what is
// not available here, builds services, fetches agents, divides the cores, and passes the resolved
// trials to internal/trial, which runs them.
//
//	Wish ─ plan ─ board ─ launchers ─ narrow ─ cores ─ build ─ grade ─ trials, observed ─ records
//
// All access to the outside of the program goes through World; internal/trial/machine is the real
// one. An Observer receives the progress. The package prints nothing and has no flags.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"prony.example/internal/base/files"
	"prony.example/internal/launch"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/agents"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/record"
)

// Lab is a checkout and the world in which its services run.
type Lab struct {
	Root  string // of the checkout: the folder of services/ and suites/
	Cache string // folder in which copies are built; empty: .prony of the checkout
	World World
	Tell  Observer
	// Wait is the maximum time to wait for another lab on this machine; 0: do not wait.
	Wait time.Duration
	// AsMe starts the user's own services as this program's user, also if that is root.
	AsMe bool
	// Tools are used by Here. Nil: it finds them.
	Tools *service.Tools

	used  *turn // held machine, if several steps share one turn; nil: each takes it
	built bool  // Take has built the services and reported it
}

// Observer receives the progress of a run.
type Observer interface {
	Say(line string) // called by several goroutines
	Begin(Begun)     // called before anything is built
	Trial(trial.Event)
}

// Begun is what is known of a run before it builds anything.
type Begun struct {
	Plan   *suite.Plan
	Layout host.Layout
	// Attached reports whether all services run already, so that the layout has no cores for them.
	Attached bool
}

// Suite reads a suite file, or the canonical one if the name is empty. A name that is no file of
// the working directory is one of the checkout, as records name it.
func (l *Lab) Suite(name string) (*suite.Suite, error) {
	name = cmp.Or(name, filepath.Join(l.Root, "suites", "canonical.yaml"))
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) && !filepath.IsAbs(name) {
		if below := filepath.Join(l.Root, name); exists(below) {
			name = below
		}
	}
	data, err := files.Kept(name, files.Settings)
	if err != nil {
		return nil, fmt.Errorf("read suite: %w; suite files are in %s", err,
			filepath.Join(l.Root, "suites"))
	}
	if rel, err := filepath.Rel(l.Root, name); err == nil && !strings.HasPrefix(rel, "..") {
		name = rel
	}
	return suite.Read(name, data)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Catalog reads the manifests of the checkout. It reports an invalid manifest and leaves it out.
func (l *Lab) Catalog() (Catalog, error) { return l.servicesOf(l.Root) }

func (l *Lab) servicesOf(root string) (Catalog, error) {
	services, err := service.Catalog(root)
	if err != nil && len(services) == 0 {
		return nil, err
	}
	if err != nil {
		l.Tell.Say(fmt.Sprintf("prony: some services of the catalog are left out: %v", err))
	}
	return services, nil
}

// Agents returns the agents in agents.yaml; none if the checkout has no such file.
func (l *Lab) Agents() (*agents.Catalog, error) {
	data, err := files.Kept(filepath.Join(l.Root, "agents.yaml"), files.Settings)
	if errors.Is(err, os.ErrNotExist) {
		return &agents.Catalog{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of agents: %w", err)
	}
	return agents.Read("agents.yaml", data)
}

// World is all that a lab does outside of this program. Tests replace it and run the whole program
// without building, starting or waiting for anything.
type World interface {
	// Enter excludes other labs until the journal is closed. reaped describes what an earlier lab
	// left.
	Enter() (j *process.Journal, reaped []string, err error)
	// Share excludes Enter of other labs until leave is called, but not their Share.
	Share() (leave func() error, err error)
	// Missing returns which tools of a service, or of some of its targets, are not installed.
	Missing(*service.Tools, *service.Service, ...service.Target) []string
	// Driver returns a load generator other than Prony's.
	Driver(name string) (trial.Driver, error)
	// Build makes a service's artifact, Image the images of its containers.
	Build(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	Image(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	// Container opens a launcher of containers and adds it to the given ones.
	Container(ctx context.Context, name string, to *Launchers) error
	// Docker runs Docker's client. Reach returns an error if nothing listens at an address.
	Docker(ctx context.Context, out, talk io.Writer, args []string) error
	Reach(ctx context.Context, addr string) error
	// Idle returns what idle cores do while Measure runs: one of record.Provenance.Idle's values.
	Idle(record.Provenance) string
	// Examine grades the host.
	Examine(context.Context, doctor.Options) record.Grading
	// Fetch downloads an agent.
	Fetch(ctx context.Context, root string, a agents.Agent, report func(string)) (trial.Ride, error)
	// Home starts the collector and returns its PIDs and a function that ends it. HandOver replaces
	// this program by the collector's.
	Home(ctx context.Context, root string, s telemetry.LaunchSpec, report func(string)) (trial.Home,
		[]int, func() error, error)
	HandOver(ctx context.Context, root string, args []string, report func(string)) error
	// Lab returns the lab in which trials run.
	Lab(j *process.Journal, launchers *Launchers, l host.Layout, dir string,
		observe func(trial.Event)) *trial.Lab
	// Measure runs the trials in a lab that may use these cores.
	Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
		report func(string)) error
}

// Launchers are the launchers of containers that a run uses.
type Launchers struct {
	By      map[string]launch.Launcher
	Gateway netip.Addr // address at which containers reach this machine; invalid: none needed
	Reaped  []string   // leftovers of an earlier lab in the engine, in words
	Ends    []func() error
}

// close ends all launchers.
func (l *Launchers) close() error {
	var errs []error
	for _, end := range l.Ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
