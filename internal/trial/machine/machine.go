// Package machine implements the outside world of a lab on this machine: processes, containers,
// sockets and the kernel's counters.
package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/base/cmdlog"
	"prony.example/internal/generator"
	"prony.example/internal/generator/distributed/local"
	"prony.example/internal/launch"
	"prony.example/internal/launch/docker"
	"prony.example/internal/launch/kubernetes"
	"prony.example/internal/launch/process"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/observe/profile"
	"prony.example/internal/observe/profile/gopprof"
	"prony.example/internal/observe/profile/jvm"
	"prony.example/internal/observe/profile/kernel"
	"prony.example/internal/observe/profile/node"
	"prony.example/internal/observe/profile/pyspy"
	"prony.example/internal/service"
	"prony.example/internal/service/counters"
	"prony.example/internal/suite/agents"
	"prony.example/internal/telemetry"
	"prony.example/internal/telemetry/locate"
	"prony.example/internal/trial"
	"prony.example/internal/trial/doctor"
	"prony.example/internal/trial/lab"
	"prony.example/internal/trial/processes"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

const (
	// quietBound is how long a trial waits for a quiet host. A run must also end in time if the
	// host is never quiet; the verdict covers disturbances in a window in any case.
	quietBound = 2 * time.Second
	// interruptBound is how long Compose may take to stop after an interrupt.
	interruptBound = 10 * time.Second
	dialBound      = 2 * time.Second
)

// World implements lab.World on this machine.
type World struct{}

var _ lab.World = World{}

// Enter implements lab.World.
func (World) Enter() (j *process.Journal, reaped []string, err error) {
	if err := process.InTurn(process.DefaultDir()); err != nil {
		return nil, nil, err
	}
	if j, reaped, err = process.OpenJournal(process.DefaultDir()); err != nil {
		return nil, reaped, err
	}
	if err := j.Alone(process.Processors); err != nil {
		return nil, reaped, errors.Join(err, j.Close())
	}
	return j, reaped, nil
}

// Share implements lab.World.
func (World) Share() (leave func() error, err error) {
	if err := process.InTurn(process.DefaultDir()); err != nil {
		return nil, err
	}
	return process.Share(process.DefaultDir(), process.Processors)
}

// Missing implements lab.World.
func (World) Missing(t *service.Tools, s *service.Service, targets ...service.Target) []string {
	return t.Missing(s, targets...)
}

// Driver implements lab.World.
func (World) Driver(name string) (trial.Driver, error) { return generator.Foreign(name) }

// Build implements lab.World.
func (World) Build(ctx context.Context, b *service.Builder, s *service.Service) (*service.Built,
	error) {
	return b.Build(ctx, s)
}

// Image implements lab.World.
func (World) Image(ctx context.Context, b *service.Builder, s *service.Service) (*service.Built,
	error) {
	return b.Image(ctx, s)
}

// Container implements lab.World.
func (World) Container(ctx context.Context, name string, to *lab.Launchers) error {
	dir, err := process.Private(process.DefaultDir())
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // nothing was written to it
	if name == kubernetes.Name || name == kubernetes.ServiceName {
		o, err := kubernetes.OptionsOf(os.Getenv)
		if err != nil {
			return err
		}
		o.Service, o.Dir = name == kubernetes.ServiceName, process.DefaultDir()
		l, reaped, err := kubernetes.New(ctx, o)
		if err != nil {
			return err
		}
		to.By[name], to.Reaped = l, append(to.Reaped, reaped...)
		to.Ends = append(to.Ends, l.Close)
		return nil
	}
	l, reaped, err := docker.New(ctx, docker.Options{Host: name == docker.HostName,
		Dir: process.DefaultDir()})
	if err != nil {
		return err
	}
	to.By[name], to.Reaped = l, append(to.Reaped, reaped...)
	to.Ends = append(to.Ends, l.Close)
	if name == docker.Name {
		to.Gateway = l.Gateway()
	}
	return nil
}

// Docker implements lab.World. It also needs Compose.
func (World) Docker(ctx context.Context, out, talk io.Writer, args []string) error {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return errors.New("prony stack needs Docker, but the command docker was not found; " +
			"install Docker Engine")
	}
	// Without Compose, docker would parse the flags as its own.
	if err := exec.CommandContext(ctx, docker, "compose", "version").Run(); err != nil {
		return errors.New("prony stack needs Docker Compose, version 2; install Docker's package " +
			"docker-compose-plugin")
	}
	cmd := exec.CommandContext(ctx, docker, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptBound
	cmd.Stdout, cmd.Stderr = out, talk
	cmdlog.Command(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("docker compose: %w", err)
	}
	return nil
}

// Reach implements lab.World.
func (World) Reach(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: dialBound}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Idle implements lab.World.
func (World) Idle(p record.Provenance) string { return host.Idle(p) }

// Examine implements lab.World.
func (World) Examine(ctx context.Context, o doctor.Options) record.Grading {
	return doctor.Examine(ctx, o)
}

// Fetch implements lab.World.
func (World) Fetch(
	ctx context.Context,
	root string,
	a agents.Agent,
	report func(string),
) (trial.Ride,
	error) {
	got, err := agents.New(root, report).Fetch(ctx, a)
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

// Lab implements lab.World.
func (World) Lab(j *process.Journal, launchers *lab.Launchers, l host.Layout, dir string,
	observe func(trial.Event)) *trial.Lab {
	crew := &local.Crew{}
	out := &trial.Lab{
		Containers: launchers.By, Launcher: &process.Launcher{Journal: j}, Driver: drivers(crew),
		Layout: l, Dir: dir, Observe: observe, Port: processes.FreePort, Profiler: profiler,
		Quiet: func(ctx context.Context) record.Before {
			return doctor.Quiet(ctx, doctor.Options{Bound: quietBound})
		},
		Counter: counters.Open, Slicing: slicing(),
	}
	out.Watch = func(p launch.Process, period time.Duration) (trial.Watcher, error) {
		return Watch(p, l, period, func() []int { return append(crew.PIDs(), out.Own...) })
	}
	return out
}

// drivers returns a function that returns the generator of a trial's loads.
func drivers(crew *local.Crew) func(string, string, *nethttp.Config) (trial.Driver, error) {
	return func(name, engine string, speech *nethttp.Config) (trial.Driver, error) {
		if name == "" {
			return local.Driver{Prony: generator.Prony{Engine: engine, Stack: speech}, Crew: crew,
				Version: telemetry.OwnVersion().Version}, nil
		}
		return generator.Foreign(name)
	}
}

// profiler returns a collector for a kind of profile; profile.Choose defines the order.
func profiler(s profile.Subject, kind, tool string) (profile.Collector, error) {
	all := append([]profile.Collector{jvm.AsyncProfiler{}, jvm.JFR{}, gopprof.Collector{},
		node.V8{}, pyspy.PySpy{}}, kernel.Collectors()...)
	if tool != "" {
		all = slices.DeleteFunc(all, func(c profile.Collector) bool { return c.Name() != tool })
		if len(all) == 0 {
			return nil, errors.New("profiler " + tool + " does not exist")
		}
	}
	return profile.Choose(all, s, kind)
}

// Watch samples a service from the load's cores. It does not count the processes that foreign
// returns as other load; nil: there are none. A period of 0 is the default.
func Watch(p launch.Process, l host.Layout, period time.Duration, foreign func() []int) (
	trial.Watcher, error) {
	if s, err := elsewhere(p, period); s != nil || err != nil {
		return s, err
	}
	subject := probe.Subject{PIDs: p.PIDs, Load: foreign}
	for _, g := range p.Groups() {
		subject.Groups = append(subject.Groups, probe.Group(g))
	}
	if !p.Addr().Addr().IsLoopback() {
		subject.Network = p.Main()
	}
	if s, ok := p.(*processes.System); ok && len(s.Parts) > 1 {
		for _, part := range s.Parts {
			subject.Parts = append(subject.Parts, probe.Part{Name: part.Name, Group: part.PID})
			if part.Backing {
				subject.Backing = s.Backing
			}
		}
	}
	s, err := probe.Start(probe.Config{Cores: l.Load, Period: period}, subject)
	if err != nil { // a nil *Sampler would be a non-nil Watcher
		return nil, err
	}
	return s, nil
}

// elsewhere samples a service that runs on another machine; nil: it runs on this one.
func elsewhere(p launch.Process, period time.Duration) (trial.Watcher, error) {
	if s, ok := p.(*processes.System); ok {
		p = s.Parts[len(s.Parts)-1].Process
	}
	far, ok := p.(interface {
		Sample(time.Duration) (*kubernetes.Sampling, error)
	})
	if !ok {
		return nil, nil
	}
	s, err := far.Sample(period)
	if s == nil || err != nil { // a nil *Sampling would be a non-nil Watcher
		return nil, err
	}
	return s, nil
}

// Measure implements lab.World. It confines this process to the load's cores, measures the
// generator limit and runs the trials.
func (World) Measure(ctx context.Context, l *trial.Lab, e trial.Experiment, cores []int,
	report func(string)) error {
	if err := host.Confine(l.Layout.Load); err != nil {
		return err
	}
	// Give this process its cores back for the report.
	defer host.Confine(cores) //nolint:errcheck // these cores were allowed before
	release, err := host.PollIdle(e.Prov.Idle)
	if err != nil {
		return err
	}
	defer release()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	report("calibrate the generator against a null server")
	if err := l.Calibrate(ctx, e, []string{self, "null"}); err != nil {
		return err
	}
	_, err = l.Run(ctx, e)
	return err
}

// home is a collector in a process of its own.
type home struct {
	*telemetry.Client
	*telemetry.Child
}

// Home implements lab.World.
func (World) Home(ctx context.Context, root string, spec telemetry.LaunchSpec,
	report func(string)) (_ trial.Home, ownCores []int, end func() error, err error) {
	spec.Program, err = locate.Finder{Root: root, Progress: report}.Find(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	child, err := telemetry.Launch(ctx, spec)
	if err != nil {
		return nil, nil, nil, err
	}
	client := telemetry.NewClient(child.Endpoints().Query, child.Token())
	end = func() error {
		client.Close()
		return child.Stop(context.Background())
	}
	return home{client, child}, []int{child.PID()}, end, nil
}

// Parquet lets the collector's program convert a table of package flat to Parquet.
func Parquet(ctx context.Context, root string, rows io.Reader, w io.Writer,
	report func(string)) error {
	err := Beside(ctx, root, []string{telemetry.ParquetVerb}, rows, w, report)
	if err != nil {
		return fmt.Errorf("store telemetry as Parquet: %w", err)
	}
	return nil
}

// Beside runs the collector's program with args and waits. Its error is what the program wrote to
// standard error.
func Beside(ctx context.Context, root string, args []string, in io.Reader, out io.Writer,
	report func(string)) error {
	path, err := locate.Finder{Root: root, Progress: report}.Find(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	var reported bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &reported
	cmd.WaitDelay = interruptBound // a process that it left may keep the pipes open
	cmdlog.Command(cmd)
	if err := cmd.Run(); err != nil {
		if why := strings.TrimSpace(reported.String()); why != "" {
			err = errors.New(strings.TrimPrefix(why, "prony: "))
		}
		return err
	}
	return nil
}

// HandOver implements lab.World. It replaces this process by the other program, with its streams
// and its parent. It returns only an error.
func (World) HandOver(ctx context.Context, root string, args []string, report func(string)) error {
	path, err := locate.Finder{Root: root, Progress: report}.Find(ctx)
	if err != nil {
		return err
	}
	words := append([]string{path}, args...)
	cmdlog.Run(words...)
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, words, os.Environ()))
}
