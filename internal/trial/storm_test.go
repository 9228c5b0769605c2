package trial_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pprof "github.com/google/pprof/profile"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/launch/fake"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/observe/profile"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// storm is a world in which anything may break at any moment. The faults are a pure function of the
// seed, the trial, the seam and the number of its passes, so that a seed repeats itself in any
// order of goroutines.
type storm struct {
	t     *testing.T
	seed  uint64
	share float64 // share of moments in which a possible fault happens
	dir   string
	lab   *trial.Lab
	fills bool // the disk may be full at some time

	mu       sync.Mutex
	passed   map[string]int // passes of each seam
	blows    map[string][]blow
	notes    map[string][]string // by trial, in order
	steps    map[string]string
	on       map[int]*place // by port
	ports    int
	records  []*record.Record
	cancel   context.CancelFunc
	canceled bool
	full     bool // the disk is full
	spoilt   bool // the folder of details is unusable
}

// blow is a fault that happened.
type blow struct {
	seam, words string
	fatal       bool // no trial with it is VALID
}

// place is the place of one process of the fake world.
type place struct {
	trial    string
	launcher *fake.Launcher
	process  launch.Process
}

func newStorm(t *testing.T, seed uint64) *storm {
	m := &storm{t: t, seed: seed, dir: t.TempDir(), passed: map[string]int{},
		blows: map[string][]blow{}, notes: map[string][]string{}, steps: map[string]string{},
		on: map[int]*place{}}
	// A third of the seeds has at most one or two faults, the rest up to very many.
	m.share = []float64{0, 0.01, 0.02, 0.05, 0.1, 0.3}[seed%6]
	m.fills = m.chance("", "disk") < 0.2
	m.lab = &trial.Lab{
		Launcher: m, Dir: m.dir, Dial: m.dial, Port: m.port, Meter: m,
		Layout: host.Layout{Service: []int{1}, Load: []int{0}},
		Driver: func(string, string, *nethttp.Config) (trial.Driver, error) { return m, nil },
		Watch: func(p launch.Process, _ time.Duration) (trial.Watcher, error) {
			return m.watch(p)
		},
		Profiler: func(s profile.Subject, _, _ string) (profile.Collector, error) {
			return &shaky{m: m, pid: s.PID}, nil
		},
		Observe: m.observe,
	}
	if m.chance("", "home") < 0.5 {
		m.lab.Home = &gone{m: m}
	}
	return m
}

// chance returns a draw from [0, 1).
func (m *storm) chance(trial, seam string) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := trial + "/" + seam
	m.passed[key]++
	h := fnv.New64a()
	fmt.Fprint(h, m.seed, key, m.passed[key])
	x := h.Sum64() // FNV's high bits hardly change: mix them (Stafford's variant 13 of SplitMix64)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}

// breaks reports whether something breaks now, and notes it if it does. Faults that end no trial
// are more frequent, because few trials would otherwise see any.
func (m *storm) breaks(trial, seam, words string, fatal bool) bool {
	odds := m.share
	if !fatal {
		odds = min(4*odds, 0.5)
	}
	if m.chance(trial, seam) >= odds {
		return false
	}
	m.hit(trial, blow{seam, words, fatal})
	return true
}

func (m *storm) hit(trial string, b blow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blows[trial] = append(m.blows[trial], b)
	m.notes[trial] = append(m.notes[trial], "! "+b.seam)
}

func (m *storm) note(trial, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes[trial] = append(m.notes[trial], what)
}

// within returns a moment in a time.
func (m *storm) within(trial, seam string, d time.Duration) time.Duration {
	return time.Duration(m.chance(trial, seam+" when") * float64(d))
}

func (m *storm) observe(e trial.Event) {
	m.mu.Lock()
	m.steps[e.Trial] = e.Step
	m.mu.Unlock()
	if e.Record != nil {
		m.note(e.Trial, "record")
		return
	}
	if m.cancel != nil && m.breaks(e.Trial, "interrupt", "interrupted", false) {
		time.AfterFunc(m.within(e.Trial, "interrupt", 3*time.Second), func() {
			m.mu.Lock()
			m.canceled = true
			m.mu.Unlock()
			m.cancel()
		})
	}
	if m.breaks(e.Trial, "clock", "", false) {
		by := time.Duration((m.chance(e.Trial, "clock by") - 0.5) * float64(4*time.Hour))
		time.AfterFunc(m.within(e.Trial, "clock", 2*time.Second), func() { clock.SetWall(by) })
	}
	if e.Step == "stop" && m.fills && m.breaks(e.Trial, "disk", "free some space", false) {
		m.mu.Lock()
		if !m.full {
			fill(m.t, filepath.Join(m.dir, record.TrialsFile))
		}
		m.full = true
		m.mu.Unlock()
	}
	if e.Step == "stop" && m.breaks(e.Trial, "details", "save ", true) {
		m.spoil()
	}
}

// spoil puts a file in the place of the details' folder.
func (m *storm) spoil() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spoilt = true
	dir := filepath.Join(m.dir, "series")
	if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)); err != nil {
		m.t.Error(err)
	}
}

func (m *storm) port() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ports++
	return 8000 + m.ports, nil
}

func (m *storm) dial(ctx context.Context, network, address string) (net.Conn, error) {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text) // 0 belongs to no trial
	m.mu.Lock()
	p := m.on[port]
	m.mu.Unlock()
	if p == nil {
		return nil, errors.New("connection refused")
	}
	return p.launcher.Dial(ctx, network, address)
}

func (*storm) Listen() string { return "127.0.0.1" }

// Launch implements launch.Launcher.
func (m *storm) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	if m.breaks(s.Name, "launch", "no cgroup for you", true) {
		return nil, errors.New("no cgroup for you")
	}
	if m.breaks(s.Name, "launch hangs", "deadline exceeded", true) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	l := &fake.Launcher{Note: func(string) {}, Start: m.start}
	inner, err := l.Launch(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &fragile{Process: inner, m: m, trial: s.Name, pid: s.Port}
	m.mu.Lock()
	m.on[s.Port] = &place{s.Name, l, p}
	m.mu.Unlock()
	m.note(s.Name, "launch")
	if m.breaks(s.Name, "dies", "", false) {
		time.AfterFunc(m.within(s.Name, "dies", 8*time.Second), func() { m.kill(s.Name, l) })
	}
	return p, nil
}

// kill ends a service, which a trial must notice from its launch to its last load.
func (m *storm) kill(trial string, l *fake.Launcher) {
	// One lock, so that the cause is noted before the trial, which the crash wakes, can end.
	m.mu.Lock()
	defer m.mu.Unlock()
	step := m.steps[trial]
	during := step != "stop" && step != "reverify" && step != "done"
	b := blow{"died in " + step, "signal: killed", during && l.Crash("signal: killed")}
	m.blows[trial] = append(m.blows[trial], b)
	m.notes[trial] = append(m.notes[trial], "! "+b.seam)
}

// start makes a service, in most cases a sound one.
func (m *storm) start(s launch.Spec) (http.Handler, time.Duration, error) {
	delay := 40*time.Millisecond + m.within(s.Name, "starts", 2*time.Second)
	switch {
	case m.breaks(s.Name, "ends at once", "exit status 1", true):
		return nil, 0, errors.New("address already in use")
	case m.breaks(s.Name, "never ready", "404", true):
		return http.NotFoundHandler(), delay, nil
	case m.breaks(s.Name, "never listens", "refused", true):
		return fake.Hello("virtual"), 24 * time.Hour, nil
	case m.breaks(s.Name, "lies", "body differs", len(s.Args) > 0 && s.Args[0] != "back"):
		return lying(), delay, nil
	}
	return fake.Hello("virtual"), delay, nil
}

// fragile is a process that may not end.
type fragile struct {
	launch.Process
	m     *storm
	trial string
	pid   int
}

func (p *fragile) Main() int   { return p.pid }
func (p *fragile) PIDs() []int { return []int{p.pid} }

func (p *fragile) Stop(grace time.Duration) error {
	if p.m.breaks(p.trial, "stop", "cannot be ended", true) {
		p.m.note(p.trial, "left")
		return fmt.Errorf("process %d cannot be ended", p.pid)
	}
	p.m.note(p.trial, "stop")
	return p.Process.Stop(grace)
}

func (p *fragile) alive() bool {
	select {
	case <-p.Exited():
		return false
	default:
		return true
	}
}

// at returns the trial of a port.
func (m *storm) at(port int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on[port].trial
}

func (m *storm) watch(p launch.Process) (trial.Watcher, error) {
	id := m.at(int(p.Addr().Port()))
	if m.breaks(id, "watch", "no /proc", true) {
		return nil, errors.New("no /proc")
	}
	m.note(id, "watch")
	return &looker{m: m, trial: id}, nil
}

// looker samples nothing.
type looker struct {
	watcher
	m     *storm
	trial string
}

func (x *looker) Stop() (probe.Series, record.Cost) {
	x.m.note(x.trial, "unwatch")
	return probe.Series{}, record.Cost{}
}

// Points implements trial.Meter.
func (m *storm) Points(context.Context, telemetry.Own) {}

// Offer implements trial.Driver.
func (m *storm) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	id := m.at(int(s.Address.Port()))
	m.note(id, "load")
	together := s.Together
	s.Together = func(ctx context.Context) (start int64, err error) {
		start = clock.Mono()
		if together != nil {
			start, err = together(ctx)
		}
		if err == nil && m.breaks(id, "load", "no descriptors left", true) {
			err = errors.New("no descriptors left")
		}
		return start, err
	}
	l := trialtest.Load{Rate: rate}
	if trialtest.IsWarmUp(s) && m.breaks(id, "cold", "no good response", true) {
		l.Rate = 0
	}
	if s.Observer != nil {
		s.Observer = load.Observers{s.Observer, load.WindowFunc(func(open bool) {
			if open && m.breaks(id, "clock at the edge", "", false) {
				clock.SetWall(time.Hour)
			}
		})}
	}
	l.Result = func(s load.Spec, rate float64) record.Load {
		out := trialtest.Good(s, rate)
		m.flaw(id, &out)
		return out
	}
	return l.Offer(ctx, s)
}

// flaw spoils a load's result.
func (m *storm) flaw(id string, out *record.Load) {
	if m.breaks(id, "wrong answers", "", true) {
		out.Errors.Body = out.Done - out.Done/2
		trialtest.Answer(out, out.Done/2)
	}
	if m.breaks(id, "nothing answered", "no good response", true) {
		trialtest.Answer(out, 0)
		out.Errors = record.Errors{Timeout: out.Sent}
	}
	if out.Model == record.Open && m.breaks(id, "not sent", "", true) {
		out.Sent /= 2
		trialtest.Answer(out, out.Done/2)
	}
}

// gone is a collector that may be unavailable at any moment.
type gone struct {
	m     *storm
	trial string
}

func (*gone) Endpoints() telemetry.Endpoints { return telemetry.Endpoints{} }

func (h *gone) tell(ctx context.Context, seam string) error {
	if h.m.breaks(h.trial, seam, "", false) {
		return errors.New("connection refused")
	}
	if h.m.breaks(h.trial, seam+" hangs", "", false) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (h *gone) Begin(ctx context.Context, t telemetry.Trial) error {
	h.trial = t.ID
	h.m.note(t.ID, "begin")
	return h.tell(ctx, "begin")
}

func (h *gone) Scrape(ctx context.Context, _ telemetry.Trial) error { return h.tell(ctx, "scrape") }
func (h *gone) Mark(telemetry.Mark)                                 {}

func (h *gone) End(ctx context.Context) telemetry.Report {
	h.m.note(h.trial, "end")
	if err := h.tell(ctx, "end"); err != nil {
		return telemetry.Report{}
	}
	return telemetry.Report{Loads: map[string]record.WindowTelemetry{"peak": {Spans: rate},
		"half": {}}}
}

// shaky is a profiler.
type shaky struct {
	m   *storm
	pid int
}

func (*shaky) Name() string               { return "shaky" }
func (*shaky) Kinds() []string            { return []string{"cpu"} }
func (*shaky) Fits(profile.Subject) error { return nil }

func (s *shaky) Start(ctx context.Context, _ profile.Subject, _ string) (profile.Session, error) {
	id := s.m.at(s.pid)
	if s.m.breaks(id, "profile", "", false) {
		return nil, errors.New("not permitted")
	}
	if s.m.breaks(id, "profile hangs", "", false) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.m.note(id, "profile")
	return s, nil
}

func (s *shaky) Stop(ctx context.Context) (*pprof.Profile, error) {
	id := s.m.at(s.pid)
	s.m.note(id, "profiled")
	if s.m.breaks(id, "profiled", "", false) {
		return nil, errors.New("no samples")
	}
	if s.m.breaks(id, "profiled hangs", "", false) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return profile.NewStacks(profile.CPU).Profile(), nil
}

// sum describes the events of a seed that failed.
func (m *storm) sum() string {
	var b strings.Builder
	for id, notes := range m.notes {
		fmt.Fprintf(&b, "\n%s: %s", id, strings.Join(notes, ", "))
	}
	return b.String()
}
