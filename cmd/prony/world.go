package main

import (
	"context"
	"net"
	"os"
	"time"

	"prony/internal/doctor"
	"prony/internal/driver"
	"prony/internal/host"
	"prony/internal/launch"
	"prony/internal/launch/process"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/trial"
)

// world is what a run does outside of this program. Tests put another one in its place and run the
// whole program without building, starting or waiting for anything.
type world interface {
	// enter keeps other labs out until the journal is closed, and says what an earlier one left.
	enter() (j *process.Journal, reaped []string, err error)
	missing(*service.Tools, *service.Service, service.Target) []string
	driver(name string) (trial.Driver, error)
	build(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	lab(j *process.Journal, l host.Layout, dir string, observe func(trial.Event)) *trial.Lab
	measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
		say func(string)) error
	examine(context.Context, doctor.Options) result.Grading
}

// quietBound is how long a trial waits for a quiet host. Where the neighbours never rest, a run
// must still end in its time: what they did in a window is judged after it in any case.
const quietBound = 2 * time.Second

// machine is the world of this machine: processes, sockets, the kernel's counters.
type machine struct{}

func (machine) enter() (j *process.Journal, reaped []string, err error) {
	return process.OpenJournal(process.DefaultDir())
}

func (machine) missing(t *service.Tools, s *service.Service, of service.Target) []string {
	return t.Missing(s, of)
}

func (machine) driver(name string) (trial.Driver, error) { return driver.Foreign(name) }

func (machine) build(ctx context.Context, b *service.Builder,
	s *service.Service) (*service.Built, error) {
	return b.Build(ctx, s)
}

func (machine) lab(j *process.Journal, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	return &trial.Lab{
		Launcher: &process.Launcher{Journal: j}, Driver: drivers, Layout: l, Dir: dir,
		Observe: observe, Port: freePort,
		Watch: func(p launch.Process) (trial.Watcher, error) {
			return watch(p, l, nil)
		},
		Quiet: func(ctx context.Context) result.Before {
			return doctor.Quiet(ctx, doctor.QuietOptions{Bound: quietBound})
		},
		Beside: watch,
	}
}

// measure quiets the lab, finds the generator's ceiling and runs the trials.
func (machine) measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
	say func(string)) error {
	if err := host.Confine(lab.Layout.Load); err != nil {
		return err
	}
	// The report comes next; give the lab its processors back.
	defer host.Confine(cores) //nolint:errcheck // it was allowed to run there before
	self, err := os.Executable()
	if err != nil {
		return err
	}
	say("calibrate the generator against a null server")
	if err := lab.Calibrate(ctx, e.Plan, []string{self, "null"}); err != nil {
		return err
	}
	_, err = lab.Run(ctx, e)
	return err
}

// drivers finds what offers a trial's loads.
func drivers(name, engine string) (trial.Driver, error) {
	if name == "" {
		return driver.Prony{Engine: engine}, nil
	}
	return driver.Foreign(name)
}

// freePort asks the kernel for a port that nobody uses.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
