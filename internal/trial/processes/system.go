// Package processes starts a target: its one process, or the processes of a system in order, each
// of which must be ready before the next one starts, under one budget. The result is one
// launch.Process: its usage is the usage of all, and it has ended when one of them has.
//
// service.Starts returns what to start, a launch.Launcher starts it, and service.WaitReady waits.
// Non-goals: it verifies nothing, offers no load, and does not wait for the last process, which
// receives the requests: the caller measures how long that takes.
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
	"prony.example/internal/service"
	"prony.example/record"
)

// Starter starts targets.
type Starter struct {
	Launcher launch.Launcher
	Dial     service.Dial        // nil: TCP
	Port     func() (int, error) // returns a free port on 127.0.0.1
}

// Order is a target and its resources.
type Order struct {
	Name           string // for messages, cgroups and the journal
	Service        *service.Service
	Target         service.Target
	Built          *service.Built
	Cores          []int
	Back           []int          // cores of backing processes, which are then Values.Backing
	Mounts         []launch.Mount // what containers share with the host
	Give           string         // see launch.Spec
	service.Values                // without the host and the ports, which Start sets
	// Copies is a folder in which the start gets its own copy of the service's folder until it is
	// stopped; empty: it works in the built folder. Note records the copy on disk until forget is
	// called; nil: it is not recorded.
	Copies string
	Note   func(dir string) (forget func() error, err error)
	// LogFile is the log of the process that receives the requests. The logs of others have their
	// names before .log.
	LogFile string
}

// Part is a started process of a target.
type Part struct {
	Name    string   // empty: the target is no system
	Args    []string // ports are placeholders, so that all starts have the same
	PID     int
	Backing bool // has its own cores and is outside the limits
	LogFile string
	ReadyNs int64 // from its own exec on; 0 for the last, which is not waited for here

	launch.Process
}

// System is a running target, with its parts in the order of their starts.
type System struct {
	Parts []Part
	Dir   string // working directory of its processes, unless they are containers
	// NoCopy is why the ordered copy was not made; nil: it was, or none was ordered.
	NoCopy *service.NoCopy

	folder string       // the copy; empty: none
	remove func() error // removes the copy
	mu     sync.Mutex
	exited chan struct{}
	ended  int // index of the part that ended first; -1: none
}

// Start launches all processes of a target, and waits for each but the last to be ready. If
// something of it runs or has left a log, it also returns the system with an error: the caller
// stops it in any case.
func (s Starter) Start(ctx context.Context, o Order) (*System, error) {
	if o.Built.Attached.IsValid() {
		s.Launcher = attached{o.Built.Attached}
	}
	ports := Distinct(s.Port)
	processes := o.Service.Processes(o.Target)
	values := o.Values
	values.Host, values.Backing = service.Loopback, len(o.Back)
	for i := range processes {
		port, err := ports()
		if o.Built.Port != 0 {
			port = o.Built.Port
		} else if i == len(processes)-1 && o.Service.Port != 0 {
			port, err = o.Service.Port, fixedPort(o.Service.Port)
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

// add launches one process beside the running ones.
func (s Starter) add(ctx context.Context, sys *System, o Order, start service.Start,
	front bool) error {
	spec := launch.Spec{
		Name: o.Name, Dir: o.Built.Dir, Args: start.Args, Env: start.Env, LogFile: o.LogFile,
		Cores: o.Cores, CPUs: o.CPUs, MemoryBytes: o.MemoryBytes, Port: start.Port, Give: o.Give,
		AsMe: o.Service.AsMe, Copy: sys.folder,
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

// await waits until the latest process is ready.
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

// heed records the end of a part. The first end counts as the system's.
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

// Addr returns the address at which the last part receives requests.
func (s *System) Addr() netip.AddrPort { return s.Parts[len(s.Parts)-1].Addr() }

// Began returns when the first process began.
func (s *System) Began() int64 { return s.Parts[0].Began() }

// first returns the first part under the common limits, which exclude backing parts.
func (s *System) first() Part {
	return s.Parts[max(slices.IndexFunc(s.Parts, func(p Part) bool { return !p.Backing }), 0)]
}

// Main returns the PID of the first process under the limits.
func (s *System) Main() int { return s.first().PID }

// PIDs returns the processes of all parts under the limits.
func (s *System) PIDs() []int { return s.pids(false) }

// Backing returns the processes of the other parts.
func (s *System) Backing() []int { return s.pids(true) }

func (s *System) pids(backing bool) (out []int) {
	for _, p := range s.Parts {
		if p.Backing != backing {
			continue
		}
		out = append(out, p.PIDs()...)
		if len(p.Groups()) > 0 {
			return out // they contain the other parts
		}
	}
	return out
}

// Groups returns the control groups of all parts but backing ones.
func (s *System) Groups() []launch.Group { return s.first().Groups() }

// User returns the name of the user that runs the part that explains a failure; empty: it is this
// program's.
func (s *System) User() string {
	if p, ok := s.Parts[s.telling()].Process.(interface{ User() string }); ok {
		return p.User()
	}
	return ""
}

// Pod describes the pod of the last part; ok is false if no cluster started it.
func (s *System) Pod(ctx context.Context) (p record.Pod, ok bool) {
	podded, ok := s.Parts[len(s.Parts)-1].Process.(launch.Podded)
	if !ok {
		return p, false
	}
	return podded.Pod(ctx), true
}

// Limits returns the limits in force and the missing ones. Limits of a single part have its name.
func (s *System) Limits() (inForce, missing []record.Limit) {
	retained, lacking := make([][]record.Limit, len(s.Parts)), make([][]record.Limit, len(s.Parts))
	for i, p := range s.Parts {
		retained[i], lacking[i] = p.Limits()
	}
	return s.together(retained), s.together(lacking)
}

// together merges the limits of the parts: limits that all parts have appear once, others with the
// part's name.
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

// Move moves all parts but backing ones to these cores. Limits returns what is then in force.
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

// Freezer implements launch.Freezable with the group of all parts but backing ones.
func (s *System) Freezer() launch.Group {
	if f, ok := s.first().Process.(launch.Freezable); ok {
		return f.Freezer()
	}
	return launch.Group{}
}

// Pauser implements launch.Pausable for all parts but backing ones.
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

// Favour implements launch.Favourer for the compilers of all parts.
func (s *System) Favour(enabled bool) (threads int, err error) {
	for _, p := range s.Parts {
		if f, ok := p.Process.(launch.Favourer); ok {
			n, failed := f.Favour(enabled)
			threads, err = threads+n, errors.Join(err, failed)
		}
	}
	return threads, err
}

// Exited returns a channel that is closed when any part has ended.
func (s *System) Exited() <-chan struct{} { return s.exited }

// Exit returns which part ended, and how; "" if none has.
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

// telling returns the index of the part whose output explains a failure: the part that ended, or
// the latest one.
func (s *System) telling() int {
	if i := s.fallen(); i >= 0 {
		return i
	}
	return len(s.Parts) - 1
}

// LogFile returns the log of the part that explains a failure.
func (s *System) LogFile() string { return s.Parts[s.telling()].LogFile }

// LogDropped returns the bytes of all parts' output that were not stored, once they are stopped.
func (s *System) LogDropped() (n int64) {
	for _, p := range s.Parts {
		n += p.LogDropped()
	}
	return n
}

// Log returns up to n last lines of each part. The part that explains a failure is last.
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

// Graces for Stop: for one process, to which the contract gives two seconds, and for a system,
// whose processes end in parallel on its cores.
const (
	OneGrace = 3 * time.Second
	allGrace = 10 * time.Second
)

// Grace returns how long Stop should wait before it uses force.
func (s *System) Grace() time.Duration {
	if len(s.Parts) > 1 {
		return allGrace
	}
	return OneGrace
}

// Stop ends all parts and removes the copy. The first part is last, because others may need it to
// end cleanly, and its limits contain them.
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

// portTries limits the search for a port that is free and was not returned yet.
const portTries = 64

// Distinct returns a function that returns different ports from port. It may be called from several
// goroutines.
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

// Ports lie below those that the kernel assigns to clients (ip-sysctl, ip_local_port_range),
// because a client could otherwise take a port before the service listens on it, and below
// Kubernetes' NodePorts. All have five digits, like the ephemeral ports.
const (
	portFirst = 10_000
	portMany  = 20_000
	portStep  = 2654435761 // Knuth's; separates the first ports of concurrent labs
)

// portTurn counts the ports that this process has tried.
var portTurn atomic.Uint32

// FreePort returns a port that is free for both TCP and UDP, because services may use either.
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

// fixedPort returns an error if a service's fixed port is in use.
func fixedPort(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", service.Loopback, port))
	if err != nil {
		return fmt.Errorf("the service's fixed port %d is in use; end the process that listens "+
			"there: %w", port, err)
	}
	return l.Close()
}

// unused returns an error if an address is in use.
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
