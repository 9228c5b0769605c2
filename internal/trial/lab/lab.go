// Package lab assembles a run: it reads a suite, plans it against the catalog, leaves out what
// cannot be had here, builds services, fetches what rides along, divides the cores, and hands all
// of it over as a list of resolved trials, which internal/trial lives one after another.
//
//	Wish ─ plan ─ board ─ launchers ─ narrow ─ cores ─ build ─ grade ─ trials, observed ─ records
//
// All that reaches outside of the program goes through World, of which internal/trial/machine is
// the real one; how it gets on is told to an Observer. It prints nothing and knows no flag.
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
	// Wait is how long another lab of this machine is waited for; 0: not at all.
	Wait time.Duration

	used *turn // the machine, where several steps share one turn; nil: each takes it
}

// turn is the machine while it is this lab's alone.
type turn struct {
	journal *process.Journal
	reaped  []string // what an earlier lab left, until somebody is told
}

// Take takes the machine for all that the returned lab does, until leave: no other lab measures
// between its steps.
func (l *Lab) Take(ctx context.Context) (ownLab *Lab, leave func() error, err error) {
	j, reaped, leave, err := l.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	used := *l
	used.used = &turn{j, reaped}
	return &used, leave, nil
}

// waitEvery is how often a lab that waits looks whether it is its turn: seldom enough to disturb
// nobody's window, soon enough for whoever waits.
const waitEvery = time.Second

// enter takes the machine, in its turn, or goes on with what Take took. It says whom it waits for.
func (l *Lab) enter(ctx context.Context) (j *process.Journal, reaped []string, leave func() error,
	err error) {
	if t := l.used; t != nil {
		reaped, t.reaped = t.reaped, nil
		return t.journal, reaped, func() error { return nil }, nil
	}
	if j, reaped, err = l.wait(ctx); err != nil {
		return nil, nil, nil, err
	}
	return j, reaped, j.Close, nil
}

func (l *Lab) wait(ctx context.Context) (j *process.Journal, reaped []string, err error) {
	over := time.After(l.Wait)
	text := ""
	for {
		j, reaped, err = l.World.Enter()
		busy, is := errors.AsType[*process.Busy](err)
		if l.Wait == 0 || !is {
			return j, reaped, err
		}
		if busy.Who != text {
			text = busy.Who
			l.Tell.Say(fmt.Sprintf("waiting for %s, which measures on this machine, for at most %v",
				text, l.Wait))
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-over:
			return nil, nil, fmt.Errorf("waited %v: %w", l.Wait, err)
		case <-time.After(waitEvery):
		}
	}
}

// Observer is told how things get on.
type Observer interface {
	Say(line string) // from several goroutines
	Begin(Begun)     // of a run: nothing is built yet
	Trial(trial.Event)
}

// Begun is what is known of a run before it builds anything.
type Begun struct {
	Plan   *suite.Plan
	Layout host.Layout
	Reaped []string // what an earlier run that was killed had left and is ended now, in words
	Stay   []string // why copies that it had left are still there
}

// Suite reads a suite file, or the canonical one where none is named.
func (l *Lab) Suite(name string) (*suite.Suite, error) {
	name = cmp.Or(name, filepath.Join(l.Root, "suites", "canonical.yaml"))
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

// Catalog reads the manifests of the checkout. One that is broken is told and left out: the other
// services go on.
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

// Agents reads agents.yaml, which a checkout may lack.
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

// World is what a lab does outside of this program. Tests put another one in its place and run the
// whole program without building, starting or waiting for anything.
type World interface {
	// Enter keeps other labs out until the journal is closed, and says what an earlier one left.
	Enter() (j *process.Journal, reaped []string, err error)
	// Missing says which tools of a service, or of some of its targets, are not here.
	Missing(*service.Tools, *service.Service, ...service.Target) []string
	// Driver finds a foreign generator.
	Driver(name string) (trial.Driver, error)
	// Build makes a service's artifact, Image what its containers are started from.
	Build(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	Image(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	// Container opens a launcher of containers.
	Container(ctx context.Context, name string, to *Launchers) error
	// Docker runs Docker's client; Reach says whether somebody listens at an address.
	Docker(ctx context.Context, out, talk io.Writer, args []string) error
	Reach(ctx context.Context, addr string) error
	// Examine looks at the host.
	Examine(context.Context, doctor.Options) record.Grading
	// Fetch brings what rides along.
	Fetch(ctx context.Context, root string, a agents.Agent, report func(string)) (trial.Ride, error)
	// Home starts one of telemetry; its processes and its end come with it. HandOver lets its
	// program go on in place of this one.
	Home(ctx context.Context, root string, s telemetry.LaunchSpec, report func(string)) (trial.Home,
		[]int, func() error, error)
	HandOver(ctx context.Context, root string, args []string, report func(string)) error
	// Lab is the one that trials run in.
	Lab(j *process.Journal, launchers *Launchers, l host.Layout, dir string,
		observe func(trial.Event)) *trial.Lab
	// Measure runs the trials, on a lab that may use these cores.
	Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
		report func(string)) error
}

// Launchers are those of containers that a run uses.
type Launchers struct {
	By      map[string]launch.Launcher
	Gateway netip.Addr // where containers reach this machine; not valid: they need not
	Reaped  []string   // what an earlier lab had left in the engine, in words
	Ends    []func() error
}

// close ends all of them.
func (l *Launchers) close() error {
	var errs []error
	for _, end := range l.Ends {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
