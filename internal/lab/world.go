package lab

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"prony/internal/agent"
	"prony/internal/doctor"
	"prony/internal/host"
	"prony/internal/launch"
	"prony/internal/launch/process"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/telemetry"
	"prony/internal/trial"
)

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
	Examine(context.Context, doctor.Options) result.Grading
	// Fetch brings what rides along.
	Fetch(ctx context.Context, root string, a agent.Agent, say func(string)) (trial.Ride, error)
	// Home starts one of telemetry; its processes and its end come with it. HandOver lets its
	// program go on in place of this one.
	Home(ctx context.Context, root string, s telemetry.LaunchSpec, say func(string)) (trial.Home,
		[]int, func() error, error)
	HandOver(ctx context.Context, root string, args []string, say func(string)) error
	// Lab is the one that trials run in.
	Lab(j *process.Journal, by *Launchers, l host.Layout, dir string,
		observe func(trial.Event)) *trial.Lab
	// Measure runs the trials, on a lab that may use these cores.
	Measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
		say func(string)) error
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
