// Package processes brings a target up: its one process, or the processes of a system in order,
// each waited for before the next one starts, all under one budget. What comes out is one
// launch.Process to everybody else: what it uses is what all of them use, and when one ends, it has
// ended.
//
// The way of the data: service.Starts says what to start, a launch.Launcher starts it,
// service.WaitReady waits. Non-goals: it verifies nothing, offers no load, and does not wait for
// the last process, which takes the requests: how long that takes is the caller's measurement.
package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/attached"
	"prony.example/internal/service"
	"prony.example/record"
)

// Starter starts targets.
type Starter struct {
	Launcher launch.Launcher
	Dial     service.Dial        // nil: TCP
	Port     func() (int, error) // a free port on 127.0.0.1
}

// Order is a target and what it may use.
type Order struct {
	Name           string // for messages, cgroups and the journal
	Service        *service.Service
	Target         service.Target
	Built          *service.Built
	Cores          []int
	Back           []int          // cores of backing processes, which are Values.Backing then
	Mounts         []launch.Mount // what containers share with the host
	Give           string         // see launch.Spec
	service.Values                // but for the host and the ports, which Start finds
	// Copies is a folder in which the start has a copy of the service's folder of its own, until it
	// is stopped; empty: it works in the one that was built. Note remembers the copy, on disk,
	// until it is forgotten; nil: nobody does.
	Copies string
	Note   func(dir string) (forget func() error, err error)
	// LogFile is that of the process that takes the requests; others have their names before .log.
	LogFile string
}

// Part is a process of a target that was started.
type Part struct {
	Name    string   // empty: the target is no system
	Args    []string // with ports as their placeholders, so that they are those of every start
	PID     int
	Backing bool // it has cores of its own, and no part in the limits
	LogFile string
	ReadyNs int64 // from its own exec on; 0 of the last, for which nobody waited here

	launch.Process
}

// System is a target that runs, in the order of its start.
type System struct {
	Parts []Part
	Dir   string // in which its processes work, where they are no containers
	// NoCopy says why this is not a copy although one was ordered; nil: it is one, or none was.
	NoCopy *service.NoCopy

	remove func() error // the copy
	mu     sync.Mutex
	exited chan struct{}
	ended  int // which part ended first; -1: none
}

// Start launches all processes of a target, waiting for each but the last to be ready. The system
// is also returned with an error when something of it runs or has left a log: whoever asked stops
// it in any case.
func (s Starter) Start(ctx context.Context, o Order) (*System, error) {
	if o.Built.Attached.IsValid() {
		s.Launcher = attached.Launcher{At: o.Built.Attached}
	}
	ports := Distinct(s.Port)
	processes := o.Service.Processes(o.Target)
	values := o.Values
	values.Host, values.Backing = service.Loopback, len(o.Back)
	for range processes {
		port, err := ports()
		if o.Built.Port != 0 {
			port = o.Built.Port
		}
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		values.Ports = append(values.Ports, port)
	}
	sys := &System{exited: make(chan struct{}), ended: -1}
	if err := sys.copy(ctx, &o); err != nil {
		return nil, err
	}
	sys.Dir = o.Built.Dir
	starts, err := o.Service.Starts(o.Built, o.Target, values)
	if err != nil {
		return nil, errors.Join(err, sys.remove())
	}
	for i, start := range starts {
		front := i == len(starts)-1
		err := s.add(ctx, sys, o, start, front)
		if err == nil && !front {
			err = s.await(ctx, sys, start)
		}
		if len(sys.Parts) == 0 {
			return nil, errors.Join(err, sys.remove()) // there is nothing to stop
		}
		if err != nil {
			return sys, err
		}
	}
	return sys, nil
}

// add launches one process beside those that run.
func (s Starter) add(ctx context.Context, sys *System, o Order, start service.Start,
	front bool) error {
	spec := launch.Spec{
		Name: o.Name, Dir: o.Built.Dir, Args: start.Args, Env: start.Env, LogFile: o.LogFile,
		Cores: o.Cores, CPUs: o.CPUs, MemoryBytes: o.MemoryBytes, Port: start.Port, Give: o.Give,
		Image: start.Image, Mounts: o.Mounts, Compose: (*launch.Compose)(o.Built.Compose),
	}
	if start.Name != "" {
		spec.ShareBytes = start.MemoryBytes
		if !front {
			spec.LogFile = strings.TrimSuffix(o.LogFile, ".log") + "." + start.Name + ".log"
		}
	}
	if start.Backing {
		spec.Cores, spec.CPUs, spec.MemoryBytes = o.Back, float64(len(o.Back)), start.MemoryBytes
	}
	for _, p := range sys.Parts {
		if p.Backing == start.Backing && spec.Beside == nil {
			spec.Beside = p.Process
		}
	}
	p, err := s.Launcher.Launch(ctx, spec)
	if err != nil && start.Name != "" {
		err = fmt.Errorf("%s: %w", start.Name, err)
	}
	if err != nil {
		return err
	}
	sys.Parts = append(sys.Parts, Part{Name: start.Name, Args: start.Written, PID: p.Main(),
		Backing: start.Backing, LogFile: spec.LogFile, Process: p})
	go sys.heed(len(sys.Parts)-1, p)
	return nil
}

// await waits for the process that was started last.
func (s Starter) await(ctx context.Context, sys *System, start service.Start) error {
	part := &sys.Parts[len(sys.Parts)-1]
	_, ready, err := service.WaitReady(ctx, s.Dial, part.Addr().String(), start.Ready,
		part.Began(), sys.exited)
	if errors.Is(err, service.ErrExited) {
		return fmt.Errorf("wait for process %s: %w; ended: %s", start.Name, err, sys.Exit())
	}
	if err != nil {
		return fmt.Errorf("wait for process %s: %w", start.Name, err)
	}
	part.ReadyNs = ready
	return nil
}

// heed notes the end of a part; the first one is the system's.
func (s *System) heed(i int, p launch.Process) {
	<-p.Exited()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended < 0 {
		s.ended = i
		close(s.exited)
	}
}

func (s *System) fallen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Addr is where the last part takes requests.
func (s *System) Addr() netip.AddrPort { return s.Parts[len(s.Parts)-1].Addr() }

// Began is when the first process began.
func (s *System) Began() int64 { return s.Parts[0].Began() }

// first is the first part, whose limits all share but backing ones.
func (s *System) first() Part {
	return s.Parts[max(slices.IndexFunc(s.Parts, func(p Part) bool { return !p.Backing }), 0)]
}

// Main is the first process of those that the limits hold.
func (s *System) Main() int { return s.first().PID }

// PIDs are those of all parts that the limits hold.
func (s *System) PIDs() []int { return s.pids(false) }

// Backing are the processes of the others.
func (s *System) Backing() []int { return s.pids(true) }

func (s *System) pids(backing bool) (out []int) {
	for _, p := range s.Parts {
		if p.Backing != backing {
			continue
		}
		out = append(out, p.PIDs()...)
		if len(p.Groups()) > 0 {
			return out // they hold the others, too
		}
	}
	return out
}

// Groups are those that hold all parts but backing ones.
func (s *System) Groups() []launch.Group { return s.first().Groups() }

// Containers are the names of those parts that are one.
func (s *System) Containers() (names []string) {
	for _, p := range s.Parts {
		if c, ok := p.Process.(interface{ Container() string }); ok {
			names = append(names, c.Container())
		}
	}
	return names
}

// Pod is what a cluster made of the last part; ok is false where none started it.
func (s *System) Pod(ctx context.Context) (p record.Pod, ok bool) {
	podded, ok := s.Parts[len(s.Parts)-1].Process.(launch.Podded)
	if !ok {
		return p, false
	}
	return podded.Pod(ctx), true
}

// Limits are what holds all parts, and with its name what holds or misses one of them.
func (s *System) Limits() (inForce, missing []record.Limit) {
	retained, lacking := make([][]record.Limit, len(s.Parts)), make([][]record.Limit, len(s.Parts))
	for i, p := range s.Parts {
		retained[i], lacking[i] = p.Limits()
	}
	return s.together(retained), s.together(lacking)
}

// together lists what each part says: once what all say, with its name what one does.
func (s *System) together(item [][]record.Limit) (out []record.Limit) {
	for i, limits := range item {
		for _, l := range limits {
			all := true
			for _, peers := range item {
				all = all && slices.ContainsFunc(peers, func(second record.Limit) bool {
					return reflect.DeepEqual(second, l)
				})
			}
			if !all {
				l.Process = s.Parts[i].Name
				out = append(out, l)
			} else if i == 0 {
				out = append(out, l)
			}
		}
	}
	return out
}

// Move lets all parts but backing ones run on these cores; Limits tells what was then in force.
func (s *System) Move(cores []int) error {
	for i, p := range s.Parts {
		if p.Backing {
			continue
		}
		m, ok := p.Process.(launch.Mover)
		if !ok {
			return errors.New(s.named(i, "its launcher cannot move processes to other cores"))
		}
		if err := m.Move(cores); err != nil {
			return err
		}
	}
	return nil
}

// Freezer is the group that holds all parts but backing ones; launch.Freezable.
func (s *System) Freezer() launch.Group {
	if f, ok := s.first().Process.(launch.Freezable); ok {
		return f.Freezer()
	}
	return launch.Group{}
}

// Pauser pauses all parts but backing ones; launch.Pausable.
func (s *System) Pauser() func(paused bool) error {
	var all []func(bool) error
	for _, p := range s.Parts {
		if p.Backing {
			continue
		}
		part, ok := p.Process.(launch.Pausable)
		if !ok || part.Pauser() == nil {
			return nil
		}
		all = append(all, part.Pauser())
	}
	return func(paused bool) error {
		var errs []error
		for _, pause := range all {
			errs = append(errs, pause(paused))
		}
		return errors.Join(errs...)
	}
}

// Favour lets the compilers of all parts go first, or not any longer; launch.Favourer.
func (s *System) Favour(enabled bool) (threads int, err error) {
	for _, p := range s.Parts {
		if f, ok := p.Process.(launch.Favourer); ok {
			n, failed := f.Favour(enabled)
			threads, err = threads+n, errors.Join(err, failed)
		}
	}
	return threads, err
}

// Exited is closed when any part has ended.
func (s *System) Exited() <-chan struct{} { return s.exited }

// Exit says which part ended, and how.
func (s *System) Exit() string {
	i := s.fallen()
	if i < 0 {
		return ""
	}
	return s.named(i, s.Parts[i].Exit())
}

func (s *System) named(i int, text string) string {
	if name := s.Parts[i].Name; name != "" {
		return name + ": " + text
	}
	return text
}

// telling is the part whose words matter: the one that ended, or was started last.
func (s *System) telling() int {
	if i := s.fallen(); i >= 0 {
		return i
	}
	return len(s.Parts) - 1
}

// LogFile is where that part writes.
func (s *System) LogFile() string { return s.Parts[s.telling()].LogFile }

// LogDropped is what was not kept of what all parts wrote, in bytes, once they are stopped.
func (s *System) LogDropped() (n int64) {
	for _, p := range s.Parts {
		n += p.LogDropped()
	}
	return n
}

// Log returns up to n last lines of each part, those of the one that matters at the end.
func (s *System) Log(n int) (out []string) {
	last := s.telling()
	add := func(i int) {
		for _, line := range s.Parts[i].Log(n) {
			out = append(out, s.named(i, line))
		}
	}
	for i := range s.Parts {
		if i != last {
			add(i)
		}
	}
	add(last)
	return out
}

// Graces for Stop: of one process, of which the contract asks two seconds, and of a system, whose
// processes end side by side on its cores.
const (
	OneGrace = 3 * time.Second
	allGrace = 10 * time.Second
)

// Grace is how long Stop should wait before it uses force.
func (s *System) Grace() time.Duration {
	if len(s.Parts) > 1 {
		return allGrace
	}
	return OneGrace
}

// Stop ends all parts, the first one last: others may need it to end well, and its limits hold
// them.
func (s *System) Stop(grace time.Duration) error {
	errs := make([]error, len(s.Parts))
	var stopping sync.WaitGroup
	for i := 1; i < len(s.Parts); i++ {
		stopping.Go(func() { errs[i] = s.Parts[i].Stop(grace) })
	}
	stopping.Wait()
	errs[0] = s.Parts[0].Stop(grace)
	return errors.Join(append(errs, s.remove())...)
}

// portTries bounds the search for a port that nobody has, and that was not given yet.
const portTries = 64

// Distinct gives ports that differ from each other. It may be called from several goroutines.
func Distinct(port func() (int, error)) func() (int, error) {
	var mu sync.Mutex
	specified := map[int]bool{}
	return func() (int, error) {
		mu.Lock()
		defer mu.Unlock()
		for range portTries {
			p, err := port()
			if err != nil || !specified[p] {
				specified[p] = true
				return p, err
			}
		}
		return 0, errors.New("find free ports: the same port was offered again and again")
	}
}

// Ports are given from below those that the kernel gives to whoever connects (ip-sysctl,
// ip_local_port_range), lest a client have the port before the service listens on it, and below
// those that Kubernetes leads elsewhere (NodePorts). All have five digits, as those had.
const (
	portFirst = 10_000
	portMany  = 20_000
	portStep  = 2654435761 // Knuth's, by which labs begin far from each other
)

// portTurn is how many ports this process has tried.
var portTurn atomic.Uint32

// FreePort gives a port that nobody uses, neither of TCP nor of UDP: which of them a service takes
// is its own business.
func FreePort() (port int, err error) {
	for range portTries {
		offset := uint32(os.Getpid())*portStep + portTurn.Add(1)
		port = portFirst + int(offset%portMany)
		if err = unused(fmt.Sprintf("%s:%d", service.Loopback, port)); err == nil {
			return port, nil
		}
	}
	return 0, err
}

// unused says who has an address, if anybody.
func unused(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	return u.Close()
}
