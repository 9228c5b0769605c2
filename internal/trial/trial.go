// Package trial runs trials, alone or side by side in starts, and turns each into a record. The
// steps of a trial are:
//
//	launch ─ ready ─ verify ─ warm up ─ measure each load ─ verify again ─ stop ─ judge ─ record
//
// A trial always ends as exactly one record and leaves no process behind. It reads logs before
// it cleans up. All access to the outside world (processes, sockets, samples) goes through the
// fields of Lab, so that a whole run also works in a fake world with a fake clock.
package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/cmdlog"
	"prony.example/internal/base/files"
	"prony.example/internal/generator/summary"
	"prony.example/internal/launch"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/observe/host"
	"prony.example/internal/observe/probe"
	"prony.example/internal/observe/profile"
	"prony.example/internal/service"
	"prony.example/internal/service/counters"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// Bounds of a trial's steps.
const (
	// ReadyBound is the time from exec to the first good response if a service sets no bound of its
	// own. Agents on a busy core double the time of a start.
	ReadyBound = 4 * time.Minute
	// launchBound is for all processes of a system except the last: six JVMs on a busy core take
	// three minutes.
	launchBound = 6 * time.Minute
	verifyWait  = 2 * time.Minute
	logTail     = 20   // last lines of a failed service's log in its record
	padMost     = 4096 // maximum bytes of random padding in the environment of a start
	lastLine    = 200  // bytes of a line of the log in an error, which must stay a sentence
)

// Driver offers a load.
type Driver interface {
	Offer(ctx context.Context, s load.Spec) (*load.Result, error)
}

// Watcher samples a trial. Real runs use a *probe.Sampler.
type Watcher interface {
	Mark() probe.Mark
	MarkPSS() probe.Mark
	Series() probe.Series
	Roles() probe.Roles
	Stop() (probe.Series, record.Cost)
}

// Lab is the world in which trials run.
type Lab struct {
	Launcher launch.Launcher
	// Containers are the launchers of containers, by their names in plans.
	Containers map[string]launch.Launcher
	// Driver returns the generator of a trial's loads. An empty name is Prony's own generator.
	// engine is a preference and may be empty; speech is a result of Speech.
	Driver func(name, engine string, speech *nethttp.Config) (Driver, error)
	// Watch samples a process with a period; 0 is the default period.
	Watch   func(p launch.Process, period time.Duration) (Watcher, error)
	Dial    service.Dial        // nil: TCP
	Port    func() (int, error) // returns a free port on 127.0.0.1
	Layout  host.Layout
	Dir     string // folder of the run
	Observe func(Event)
	// Quiet checks the host before each trial, and may wait until it is quiet; nil: no check.
	Quiet func(context.Context) record.Before
	// Slicing is what starts of several targets side by side need.
	Slicing Slicing
	// Home receives the telemetry of services; nil: there is none.
	Home Home
	// Meter receives the lab's own metrics, between windows; nil: nothing is sent.
	Meter Meter
	// Profiler returns a collector for a kind of profile; an empty tool selects the best one.
	Profiler func(s profile.Subject, kind, tool string) (profile.Collector, error)
	Tools    profile.Tools // tools that profilers need
	// Own are the PIDs of the lab's other processes, such as the collector. They do not count as
	// other load.
	Own []int
	// Ceilings are the generator limits in requests/s, measured by Calibrate.
	Ceilings map[Ceiling]float64
	null     *nullServer // nil: nothing was calibrated
	// Counter opens a counter of backend calls; nil: calls are not counted.
	Counter func(counters.Place) (counters.Counter, error)
}

// Subject is a target that is ready to be launched.
type Subject struct {
	Service *service.Service
	Target  service.Target
	Built   *service.Built
	// Commit and Dirty describe the service's own checkout, if it has one.
	Commit string
	Dirty  bool
}

// Event reports the progress of a run.
type Event struct {
	Trial string
	Step  string // of the trial, or a load's name; "done" if Record is set
	// Expect is the approximate length of the step; 0: unknown.
	Expect time.Duration
	Record *record.Record
	// Before is the number of trials that a resumed run has already recorded. It is reported once,
	// first.
	Before int
	// Added is the number of trials that begin now beyond the planned ones.
	Added int
	Pulse *Pulse // progress of a load or warm-up, about twice a second
	// Rounds is the number of rounds of a step in slices; Round is how many are done, 0 when it
	// begins.
	Round, Rounds int
	Remark        string // a line for the user about the step, which goes on
}

// Pulse is the current state of a load, made from data that are recorded in any case.
type Pulse struct {
	PerS         float64 // good responses per second since the last pulse
	P50Ns, P99Ns int64   // latest response times; 0: no response
	Failed       int64   // latest number of failed requests
}

// life is a trial in progress.
type life struct {
	lab     *Lab
	trial   Spec
	rec     *record.Record
	proc    *processes.System
	watch   Watcher
	addr    netip.AddrPort
	speech  *nethttp.Config     // nil: HTTP/1.1 over TCP
	tls     service.Certificate // of the service, if Prony issued it
	scene   load.Scenario       // as it is sent
	details []detail
	step    string

	// beforeLoad is called with the length of each measured load before it begins; nil: nothing is
	// to be done.
	beforeLoad func(length time.Duration) error
	idle       *idleClocks // of the other targets of the start

	pilots    map[string]float64
	betweenNs []int64 // of each load of the record: from mark to mark around its window
	dumps     string  // folder for dumps of its JVMs; empty: none
	pages     []int   // further ports of its processes, for metrics or profiles
	pprof     bool    // it serves Go's profiles on these ports
	heard     bool    // the collector received the trial
	dragged   bool    // another target of its start caused its failure

	untold    []*offered       // loads not yet sent to the meter
	unsaid    []telemetry.Mark // marks not yet sent to the collector
	requested []*asked         // counters of the requests' backend calls
}

// Trial runs one trial and returns its record. It has no error result: the record describes any
// failure.
func (l *Lab) Trial(ctx context.Context, e Experiment, t Spec) *record.Record {
	began := clock.Mono()
	f := l.life(e, t)
	err := f.run(ctx)
	if err != nil {
		f.fail(ctx, err)
	} else {
		f.measured()
	}
	f.end()
	f.rec.DurationNs = clock.Mono() - began
	l.recalibrate(ctx, e, []Spec{t}, []*record.Record{f.rec})
	return f.judged()
}

// measured records that all steps succeeded, and the warm-up's result with regard to the whole
// trial.
func (f *life) measured() {
	f.rec.Outcome = record.Measured
	settle(f.rec)
	shareDependence(f.rec.Loads)
}

// judged gives the finished record its verdict.
func (f *life) judged() *record.Record {
	hush(f.rec)
	f.rec.Verdict = verdict.Judge(f.rec)
	f.rec.Prove()
	f.tellOwn()
	return f.rec
}

// hush replaces the passwords of URLs in commands, settings and messages of a record.
func hush(r *record.Record) {
	words := []*[]string{&r.Provenance.ServiceArgs, &r.Provenance.VariantEnv}
	for i := range r.Processes {
		words = append(words, &r.Processes[i].Args)
	}
	for _, list := range words {
		*list = slices.Clone(*list) // it may also be the running process's
		for i, word := range *list {
			(*list)[i] = cmdlog.Hush(word)
		}
	}
	if r.Failure != nil {
		r.Failure.Error = cmdlog.Hush(r.Failure.Error)
	}
}

func newRecord(t Spec, prov record.Provenance) *record.Record {
	s := t.Subject
	if t.Driver == suite.Drivers[0] {
		t.Driver = "" // Prony's own generator
	}
	if s.Commit != "" {
		prov.Commit, prov.Dirty = s.Commit, s.Dirty
	}
	prov.ScenarioHash, prov.Tools = t.SceneHash, s.Built.Versions()
	return &record.Record{
		Trial: t.ID, Time: clock.Wall(), Suite: t.Suite, Block: t.Block, Order: t.Order,
		Target: record.Target{
			Name: t.Target, Service: s.Service.Name, Language: s.Service.Language,
			Framework: s.Service.Framework, Version: s.Service.Version,
			Runtime: s.Target.Runtime, Mode: s.Target.Mode, Variant: t.Variant, Driver: t.Driver,
			Launcher: t.Launcher, Arm: t.Arm, Origin: s.Service.Origin,
			ControlOf: s.Service.ControlOf,
			Matrix:    record.MatrixRow{Connections: t.Connections, BodyBytes: int64(t.Body)},
		},
		Scenario: t.Scenario, Contract: t.Contract, Provenance: prov, Role: t.Role,
		Verdict: record.Verdict{Resolution: t.Resolves},
		Artifact: record.Artifact{
			SHA256: s.Built.SHA256, SizeBytes: s.Built.SizeBytes, BuildHash: s.Built.Hash,
			ImageBytes: s.Built.ImageBytes, Image: s.Built.Image(),
		},
	}
}

func (l *Lab) tell(e Event) {
	if l.Observe != nil {
		l.Observe(e)
	}
}

func (f *life) at(step string, expect time.Duration) {
	f.step = step
	f.mark(telemetry.Phase, step)
	f.lab.tell(Event{Trial: f.trial.ID, Step: step, Expect: expect})
}

func (f *life) run(ctx context.Context) error {
	if f.lab.Quiet != nil {
		f.at("quiet", 0)
		f.rec.HostBefore = f.lab.Quiet(ctx)
	}
	return f.steps(ctx, "launch", "ready", "verify", "warmup", "measure", "reverify")
}

// steps runs the named steps of a trial.
func (f *life) steps(ctx context.Context, names ...string) error {
	do := map[string]func(context.Context) error{
		"launch": f.launch, "ready": f.ready, "verify": f.verify, "warmup": f.warmUp,
		"measure": f.measure, "reverify": f.verify,
	}
	for _, name := range names {
		f.at(name, 0)
		if err := do[name](ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// fail records an error as the record's failure: the step, the cause, a hint, and the last lines of
// the service's log.
func (f *life) fail(ctx context.Context, err error) {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	out := &record.Failure{Step: f.step, Error: cmdlog.Hush(err.Error()),
		Interrupted: ctx.Err() != nil || full}
	if f.dragged {
		out.Step = record.StepPeer
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		out.Hint = hinted.Hint()
	}
	if ctx.Err() != nil {
		out.Error, out.Hint = "interrupted", "run it again"
	} else if full {
		out.Hint = "free some space"
	} else if rides := f.trial.With.Agent; rides != "" && f.proc != nil {
		out.Error += "; agent " + rides + " was attached"
	}
	if f.proc != nil {
		log := f.proc.Log(logTail)
		out.Log = log[max(0, len(log)-logTail):]
		out.Hint = cmp.Or(out.Hint, "see "+f.proc.LogFile())
	}
	f.rec.Outcome, f.rec.Failure = record.Failed, out
}

// end stops the service and writes the details beside the record. A failure here makes a good trial
// a failed one, because something may still be running.
func (f *life) end() {
	f.unpodded()
	for _, a := range f.requested {
		if a.counter != nil {
			a.counter.Close()
		}
	}
	if f.watch != nil {
		series, cost := f.watch.Stop()
		f.rec.Probe = cost
		f.details = append(f.details, detail{name: "probe", value: series})
	}
	if f.proc != nil {
		f.at("stop", 0)
		err := f.proc.Stop(f.proc.Grace())
		f.rec.LogDroppedBytes = f.proc.LogDropped()
		if err != nil && f.rec.Failure == nil {
			f.fail(context.Background(), err)
		} else if err != nil { // what may still run disturbs all later trials
			f.rec.Failure.Error += "; and " + cmdlog.Hush(err.Error())
		}
	}
	f.hear()
	if err := f.collectDumps(); err != nil && f.rec.Failure == nil {
		f.fail(context.Background(), err)
	}
	if err := f.tls.Remove(); err != nil && f.rec.Failure == nil {
		f.fail(context.Background(), fmt.Errorf("remove the service's TLS key: %w", err))
	}
	if err := f.saveDetails(); err != nil && f.rec.Failure == nil {
		f.step = "save"
		f.fail(context.Background(), err)
	}
}

// launch starts the target's processes. Of a system, all except the last are then ready.
func (f *life) launch(ctx context.Context) error {
	limits := f.trial.Limits
	f.rec.Limits = record.Limits{
		CPUs: limits.CPUs, MemoryBytes: int64(limits.Memory),
		ServiceCores: f.lab.Layout.Service, LoadCores: f.lab.Layout.Load,
		TelemetryCores: f.lab.Layout.Home,
	}
	bounded, cancel := context.WithTimeout(ctx, launchBound)
	defer cancel()
	ports := processes.Distinct(f.lab.Port)
	starter := processes.Starter{Launcher: f.launcher(), Dial: f.lab.Dial, Port: ports}
	order := processes.Order{
		Name: f.trial.ID, Service: f.trial.Subject.Service, Target: f.trial.Subject.Target,
		Built: f.trial.Subject.Built, Cores: f.lab.Layout.Service,
		LogFile: filepath.Join(f.lab.Dir, "logs", f.trial.ID+".log"),
		Values:  service.Values{CPUs: limits.CPUs, MemoryBytes: int64(limits.Memory)},
	}
	if f.trial.Start != "" || f.trial.Contract == "" { // otherwise as earlier blocks were measured
		order.Copies, order.Note = f.lab.Slicing.Copies, f.lab.Slicing.Note
	}
	if f.trial.Start != "" {
		order.Pad = rand.New(rand.NewPCG(f.trial.Seed, uint64(f.trial.Order))).IntN(padMost)
	}
	if f.trial.Subject.Service.Backed(f.trial.Subject.Target) {
		order.Back = f.lab.Layout.Backing
		f.rec.Limits.BackingCores = order.Back
	}
	if err := f.board(bounded, &order, ports); err != nil {
		return err
	}
	if err := errors.Join(f.certify(&order), f.mayDump(&order)); err != nil {
		return err
	}
	if err := f.contain(&order); err != nil {
		return err
	}
	sys, err := starter.Start(bounded, order)
	if sys == nil {
		return err
	}
	f.proc, f.addr = sys, sys.Addr()
	if sys.NoCopy != nil {
		f.rec.Artifact.NoCopy, f.rec.Artifact.NoCopyDetail = sys.NoCopy.Reason, sys.NoCopy.Detail
	}
	f.trial.Scene = f.trial.Scene.To(order.Built.Host)
	f.speech = Speech(f.trial.Scene, f.trial.Subject.Target.Mode, f.addr)
	f.scene = f.scenario()
	for _, p := range sys.Parts {
		args := cmdlog.Hushed(p.Args)
		f.rec.Provenance.ServiceArgs = args
		if p.Name != "" {
			f.rec.Processes = append(f.rec.Processes,
				record.Started{Name: p.Name, Args: args, ReadyNs: p.ReadyNs})
		}
	}
	if err != nil {
		return f.orExit(err)
	}
	f.rec.Limits.InForce, f.rec.Limits.Missing = f.proc.Limits()
	f.rec.Limits.Privileges = cgroup.Rights(f.proc.Main())
	return f.scrape(ctx)
}

// ready waits until the service responds, and records the time of each stage from exec on.
func (f *life) ready(ctx context.Context) error {
	bound := cmp.Or(f.trial.Subject.Service.Run.Startup, ReadyBound)
	bounded, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not within %v", bound))
	defer cancel()
	stop := f.reportWait(bound)
	listen, ready, err := service.WaitReadyIn(bounded,
		Speaker(f.speech, f.trial.Subject.Built.Host, f.addr), f.lab.Dial, f.addr.String(),
		f.trial.Subject.Service.ReadyIn(f.trial.Scene.Protocol), f.proc.Began(), f.proc.Exited())
	stop()
	if err != nil {
		return f.orExit(hinted("see "+f.proc.LogFile()+"; to wait longer, set run.startup of "+
			"a service.yaml, or startup of a prony.yaml",
			"wait until %s is ready: %w%s", f.trial.Target, err, f.lastSaid()))
	}
	if f.speech != nil {
		if err := load.Messages(bounded, *f.speech, f.scene.Requests); err != nil {
			return f.orExit(err)
		}
	}
	if n := len(f.rec.Processes); n > 0 {
		front := f.proc.Parts[n-1].Began() - f.proc.Began()
		f.rec.Processes[n-1].ReadyNs = ready - front
	}
	f.rec.Start.ListenNs, f.rec.Start.ReadyNs = listen, ready
	if err := f.firstAnswer(bounded); err != nil {
		return f.orExit(err)
	}
	f.podded(bounded)
	watch, err := f.lab.Watch(f.proc, time.Duration(f.trial.Watched.Period))
	if err != nil {
		return f.orEnd(ctx, err)
	}
	f.watch = watch // only a valid one: a watcher that comes with an error must not be stopped
	f.rec.Start.RSSBytes = watch.Mark().RSSBytes
	return nil
}

// endWait is how long a launcher may take to report that the service has ended: a cluster reports
// it some seconds after the kernel.
const endWait = 5 * time.Second

// orEnd is orExit for an error that the end of the service may just have caused.
func (f *life) orEnd(ctx context.Context, err error) error {
	select {
	case <-f.proc.Exited():
	case <-time.After(endWait):
	case <-ctx.Done():
	}
	return f.orExit(err)
}

// orExit returns an error that the service ended if it has, because this explains any other error.
func (f *life) orExit(err error) error {
	select {
	case <-f.proc.Exited():
		return hinted("the last lines of the service's log are below; the whole log is "+
			f.proc.LogFile(),
			"the service ended (%s) during step %s%s", f.proc.Exit(), f.step, f.lastSaid())
	default:
		return err
	}
}

type hintError struct {
	error
	hint string
}

func (e *hintError) Unwrap() error { return e.error }
func (e *hintError) Hint() string  { return e.hint }

// hinted returns an error, formatted as by fmt.Errorf, with a hint on what to do.
func hinted(hint, format string, args ...any) error {
	return &hintError{fmt.Errorf(format, args...), hint}
}

// verify checks the contract before the load and after it: a service that gives wrong responses
// once it is warm must not appear in a table either.
func (f *life) verify(ctx context.Context) error {
	if f.trial.Contract == "" {
		return nil // the scenario's expectations are checked on every response
	}
	bounded, cancel := context.WithTimeout(ctx, verifyWait)
	defer cancel()
	report, err := service.Quick(bounded, Checker(f.speech, f.lab.Dial, f.addr,
		f.trial.Subject.Target.Mode), f.trial.Contract)
	if err != nil {
		return f.orEnd(ctx, fmt.Errorf("verify %s: %w", f.trial.Target, err))
	}
	if bad := report.Failures(); len(bad) > 0 {
		return hinted("run prony verify "+f.trial.Subject.Service.Name+" to list every "+
			"response",
			"%s violates the contract %s: %s", f.trial.Target, f.trial.Contract,
			strings.Join(bad, "; "))
	}
	return nil
}

// detail is data of a trial that do not belong in its record: series and histograms. Results do not
// depend on them.
type detail struct {
	name      string
	value     any             // saved as JSON in series/TRIAL.NAME.json
	intervals []load.Interval // saved as an HdrHistogram log in hdr/TRIAL.NAME.hlog
}

func (f *life) saveDetails() error {
	for _, d := range f.details {
		var err error
		if d.intervals != nil {
			err = summary.SaveHLog(f.lab.Dir, f.trial.ID, d.name, d.intervals)
		} else {
			err = f.saveJSON(d)
		}
		if err != nil {
			return fmt.Errorf("save %s of %s: %w", d.name, f.trial.ID, err)
		}
	}
	return nil
}

func (f *life) saveJSON(d detail) error {
	b, err := json.Marshal(d.value)
	if err != nil {
		return err
	}
	dir := filepath.Join(f.lab.Dir, "series")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return files.Put(filepath.Join(dir, f.trial.ID+"."+d.name+".json"), append(b, '\n'))
}
