package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/launch/process"
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/trial"
	"prony.example/internal/trial/processes"
	"prony.example/load/engine/nethttp"
)

// readyBound is the maximum startup time of a service, or of a system as a whole, that is not
// measured.
const readyBound = 8 * time.Minute

// verifyMemory is the memory budget of a process that is not measured.
const verifyMemory = 1 << 30

// Seen is a running target.
type Seen struct {
	service.Checker
	Name    string // in the catalog
	Service *service.Service
	System  *processes.System
	Speaks  *nethttp.Config // protocol of its requests; nil: HTTP/1.1 in the clear
	ReadyNs int64           // from its exec to the first good response
}

// Sight checks a running target.
type Sight func(ctx context.Context, t Seen) error

// Budget is the resources of a target that runs as it would be measured.
type Budget struct {
	CPUs        float64
	MemoryBytes int64
	Cores       []int
}

// Visitor starts targets and checks them without measuring them.
type Visitor struct {
	*Lab
	Launcher string        // by its name in suites
	Of       Catalog       // nil: the checkout's
	Bound    time.Duration // on the startup of a target; 0: the default for the catalog
	Budget   Budget        // zero: targets run with little compilation, for requests only
	Doing    string        // what is done to targets, for errors; empty: verify
	Hint     string        // added to the errors of targets that were started; may be empty
	See      Sight
	// Speak returns how to check whether a target is ready; nil: in HTTP/1.1 over TCP.
	Speak   func(s *service.Service, addr netip.AddrPort) service.Speaker
	Skipped func(name string, missing []string) // called for targets that cannot run here
	// Ports collects further ports on which targets listen; nil: not recorded.
	Ports Ports
	// Spoken also starts and checks targets that are processes in each other protocol that they
	// speak beside HTTP/1.1.
	Spoken bool

	journal  *process.Journal
	launcher launch.Launcher
	copies   string // folder for copies of services' folders; empty: none are made
	missing  func(*service.Service, ...service.Target) []string
}

// Visit builds the named services, or all, starts their targets one after another and calls See for
// each. It joins errors: a target that fails does not stop the next.
func (v Visitor) Visit(ctx context.Context, names []string) (err error) {
	services, err := v.pick(names)
	if err != nil {
		return err
	}
	contained := v.Launcher != suite.Launchers[0]
	v.Spoken = v.Spoken && !contained
	journal, leave, err := v.visiting(ctx)
	if err != nil {
		return err
	}
	defer leave() //nolint:errcheck // the kernel releases the lock when the process ends
	tools := service.FindTools(ctx)
	v.journal, v.launcher = journal, &process.Launcher{Journal: journal}
	build := v.World.Build
	v.missing = func(s *service.Service, targets ...service.Target) []string {
		return v.World.Missing(tools, s, targets...)
	}
	jobs := 0 // as many as the machine can run
	if contained {
		// An image's name refers to the latest build of it until it is resolved, so builds of
		// images must not overlap. Docker itself uses several cores.
		jobs, build = 1, v.World.Image
		v.missing = func(s *service.Service, targets ...service.Target) []string {
			missing := lacksImage(s, targets...)
			if s.Made != nil && s.Made.Compose != nil {
				missing = append(missing, v.World.Missing(tools, s, targets...)...)
			}
			return missing
		}
	}
	services = v.able(services)
	if contained && len(services) > 0 {
		containers := &Launchers{By: map[string]launch.Launcher{}}
		if err := v.World.Container(ctx, v.Launcher, containers); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, containers.close()) }()
		v.launcher = containers.By[v.Launcher]
	}
	b := v.Builder(tools)
	b.Note = journal.Step
	if v.Hint != "" { // what a service writes must not change its build
		if v.copies, err = b.Copies(); err != nil {
			return err
		}
	}
	return v.visitAll(ctx, services, BuildAll(ctx, build, b, services, jobs))
}

// visitAll starts the targets of services one after another and calls See for each.
func (v Visitor) visitAll(ctx context.Context, services Catalog, outcomes []Outcome) error {
	var errs []error
	hint := ""
	for i, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, o.Err)
			continue
		}
		for _, t := range services[i].Targets {
			name := services[i].Full(t)
			if ctx.Err() != nil {
				return errors.Join(append(errs, ctx.Err())...)
			}
			if v.skips(name, services[i], t) {
				continue
			}
			if err := v.lookAll(ctx, services[i], t, o.Built); err != nil {
				errs = append(errs, err)
				if needsHint(err) && !o.Built.Attached.IsValid() { // otherwise it was not started
					hint = v.Hint
				}
			}
		}
	}
	if hint != "" {
		errs = append(errs, errors.New(hint))
	}
	return errors.Join(errs...)
}

// visiting takes the machine for a visit. It leaves reporting of an earlier lab's leftovers to a
// run, which may follow in the same turn.
func (v Visitor) visiting(ctx context.Context) (*process.Journal, func() error, error) {
	if v.used != nil {
		return v.used.journal, stayed, nil
	}
	t, err := v.enter(ctx)
	return t.journal, t.leave, err
}

func (v Visitor) skips(name string, s *service.Service, t ...service.Target) bool {
	missing := v.missing(s, t...)
	if len(missing) > 0 {
		v.Skipped(name, missing)
	}
	return len(missing) > 0
}

// lacksImage returns why targets cannot be containers.
func lacksImage(s *service.Service, targets ...service.Target) (out []string) {
	if len(targets) == 0 {
		targets = s.Targets[:1] // enough to check whether the service can have one
	}
	for _, t := range targets {
		if why := s.NoImage(t); why != "" {
			out = append(out, why)
		}
	}
	return out
}

// pick returns the services with the given names.
func (v Visitor) pick(names []string) (Catalog, error) {
	catalog := v.Of
	if catalog == nil {
		var err error
		if catalog, err = v.Catalog(); err != nil {
			return nil, err
		}
	}
	return catalog.Pick(names)
}

// able returns the services that can run here, with their builds for further protocols. If a
// service is available and such a build is not, it reports that.
func (v Visitor) able(services Catalog) (out Catalog) {
	for _, s := range services {
		if v.skips(s.Label(), s) {
			continue
		}
		out = append(out, s)
		for _, candidate := range s.ProtocolBuilds() {
			if v.Spoken && !v.skips(candidate.Label(), candidate) {
				out = append(out, candidate)
			}
		}
	}
	return out
}

// lookAll checks a target in each protocol that its build speaks; the empty one is HTTP/1.1.
func (v Visitor) lookAll(ctx context.Context, s *service.Service, t service.Target,
	built *service.Built) error {
	var protocols []string
	if !s.Alone() {
		protocols = []string{""}
	}
	if v.Spoken {
		protocols = append(protocols, s.Protocols...)
	}
	var errs []error
	for _, protocol := range protocols {
		if err := v.look(ctx, s, t, built, protocol); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", cmp.Or(v.Doing, "verify"),
				spokenName(s.Full(t), protocol), err))
		}
	}
	return errors.Join(errs...)
}

// spokenName returns the name of a target in a protocol.
func spokenName(name, protocol string) string {
	if protocol == "" {
		return name
	}
	return name + " in " + protocol
}

// speech returns how requests reach a target at an address in a protocol; nil: in HTTP/1.1.
func speech(protocol string, c service.Certificate, addr netip.AddrPort) *nethttp.Config {
	return trial.Speech(suite.Scenario{Protocol: protocol, TLS: suite.TLS{PEM: c.PEM},
		Requests: []suite.Request{{Request: "GET /"}}}, "", addr)
}

// look starts one target, calls See for it and stops it.
func (v Visitor) look(ctx context.Context, s *service.Service, t service.Target,
	built *service.Built, protocol string) (err error) {
	dir, err := os.MkdirTemp("", "prony-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only the log of a service that was not measured

	// The service may run as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	bound := cmp.Or(v.Bound, readyBound)
	bounded, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not within %v", bound))
	defer cancel()
	n := len(s.Processes(t)) // a system of many processes starts in minutes on one core
	starter := processes.Starter{Launcher: v.launcher, Port: processes.FreePort}
	order := processes.Order{
		Name: s.Name, Service: s, Target: t, Built: built, LogFile: filepath.Join(dir, "prony.log"),
		Values: service.Values{CPUs: float64(min(n, runtime.NumCPU())),
			MemoryBytes: verifyMemory * int64(n), Listen: v.launcher.Listen(),
			Append: s.Brief(t)},
		Copies: v.copies, Note: v.journal.Copy,
	}
	if b := v.Budget; b.CPUs > 0 {
		order.Cores, order.CPUs, order.MemoryBytes = b.Cores, b.CPUs, b.MemoryBytes
		order.Append = nil
	}
	var certificate service.Certificate
	if nethttp.Secure(nethttp.Schemes[protocol]) {
		if err := v.journal.Keys(dir); err != nil {
			return err
		}
		if certificate, err = service.NewCertificate(filepath.Join(dir, "verify.tls")); err != nil {
			return err
		}
		order.Give = certificate.Dir
	}
	order.Env = certificate.Env(protocol)
	defer v.watch(s.Full(t), built)()
	p, err := starter.Start(bounded, order)
	if p == nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop(p.Grace())) }()
	var ready int64
	speaks := speech(protocol, certificate, p.Addr())
	if err == nil {
		speak := trial.Speaker(speaks, "", p.Addr())
		if v.Speak != nil {
			speak = v.Speak(s, p.Addr())
		}
		err = v.patient(bounded, s.Full(t), bound, func(ctx context.Context) (err error) {
			_, ready, err = service.WaitReadyIn(ctx, speak, nil, p.Addr().String(),
				s.ReadyIn(protocol), p.Began(), p.Exited())
			return err
		}, candidate{s, s.Full(t), s.ReadyIn(protocol), p, built})
	}
	if err != nil {
		return v.explained(err, p)
	}
	v.reportPorts(s.Full(t), built, p)
	checker := trial.Checker(speaks, nil, p.Addr(), t.Mode)
	checker.Logs = func() []string { return p.Log(10000) }
	return v.See(ctx, Seen{Name: spokenName(s.Full(t), protocol), Service: s, System: p,
		Speaks: speaks, ReadyNs: ready, Checker: checker})
}
