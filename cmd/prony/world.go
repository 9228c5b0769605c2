package main

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"prony/internal/agent"
	"prony/internal/doctor"
	"prony/internal/driver"
	"prony/internal/host"
	"prony/internal/launch"
	"prony/internal/launch/process"
	"prony/internal/profile"
	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
	"prony/internal/telemetry"
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
	// container opens a launcher of containers and adds it to the fleet; image makes what they are
	// started from.
	container(ctx context.Context, name string, f *fleet) error
	image(context.Context, *service.Builder, *service.Service) (*service.Built, error)
	// docker runs Docker's client; reach says whether somebody listens at an address.
	docker(ctx context.Context, out, talk io.Writer, args []string) error
	reach(ctx context.Context, addr string) error
	lab(j *process.Journal, f *fleet, l host.Layout, dir string,
		observe func(trial.Event)) *trial.Lab
	measure(ctx context.Context, lab *trial.Lab, e trial.Experiment, cores []int,
		say func(string)) error
	examine(context.Context, doctor.Options) result.Grading
	// fetch brings what rides along; home starts one of telemetry, whose processes and end come
	// with it.
	fetch(ctx context.Context, root string, a agent.Agent, say func(string)) (trial.Ride, error)
	home(context.Context, telemetry.LaunchSpec) (trial.Home, []int, func() error, error)
	profiler(ctx context.Context, root string, p *suite.Plan, services []*service.Service,
		say func(string)) (profile.Tools, chooser)
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

func (machine) reach(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (machine) driver(name string) (trial.Driver, error) { return driver.Foreign(name) }

func (machine) build(ctx context.Context, b *service.Builder,
	s *service.Service) (*service.Built, error) {
	return b.Build(ctx, s)
}

func (machine) lab(j *process.Journal, f *fleet, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	lab := &trial.Lab{
		Containers: f.launchers,
		Launcher:   &process.Launcher{Journal: j}, Driver: drivers, Layout: l, Dir: dir,
		Observe: observe, Port: freePort,
		Quiet: func(ctx context.Context) result.Before {
			return doctor.Quiet(ctx, doctor.QuietOptions{Bound: quietBound})
		},
		Beside: func(p launch.Process, l host.Layout, other func() []int) (trial.Watcher, error) {
			return watch(p, l, 0, other)
		},
	}
	lab.Watch = func(p launch.Process, period time.Duration) (trial.Watcher, error) {
		if len(lab.Own) == 0 {
			return watch(p, l, period, nil)
		}
		return watch(p, l, period, func() []int { return lab.Own })
	}
	return lab
}

func (machine) fetch(ctx context.Context, root string, a agent.Agent, say func(string)) (
	trial.Ride, error) {
	f := agent.Fetcher{Root: root, Progress: say}
	got, err := f.Fetch(ctx, a)
	if err != nil {
		return trial.Ride{}, err
	}
	ride := trial.Ride{Path: got.Path, Files: got.Files}
	if got.Source != "" {
		record := got.Record(a.Name)
		ride.Agent = &record
	}
	return ride, nil
}

// homeOf is a home of telemetry in a process of its own.
type homeOf struct {
	*telemetry.Client
	*telemetry.Child
}

func (machine) home(ctx context.Context, spec telemetry.LaunchSpec) (trial.Home, []int,
	func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	spec.Program = self
	child, err := telemetry.Launch(ctx, spec)
	if err != nil {
		return nil, nil, nil, err
	}
	client := telemetry.NewClient(child.Endpoints().Query)
	end := func() error {
		client.Close()
		return child.Stop(context.Background())
	}
	return homeOf{client, child}, []int{child.PID()}, end, nil
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
