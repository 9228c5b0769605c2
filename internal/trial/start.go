package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/suite"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/arrivalcheck"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// A start launches the targets of a comparison one after another on the same service cores and
// warms each up alone. It then loads one target at a time for a slice of some tens of milliseconds,
// in rounds of random order, while the others are stopped, so that all targets meet the same
// machine. After the rounds, each target has its windows alone, which give absolute values. A
// target that does not become ready is left out. If a target fails later, all trials of the start
// fail. docs/slices.md describes the method and its simulations.

// Loader offers a load in slices. Real runs use a *load.Loader.
type Loader interface {
	Slice(ctx context.Context, s load.Slice) (load.Sliced, error)
	Reconnects() int64
	// ResponseTimes returns the times in all open slices, Sample the times of single requests.
	ResponseTimes() (all, punctual record.Dist)
	Sample() arrivalcheck.Times
	Close()
}

// Freezer stops a target while others are loaded.
type Freezer interface {
	Freeze() error
	Thaw() error
	Way() string  // one of record's Freeze names
	Close() error // thaws it
}

// Machine reads counters of the whole machine.
type Machine interface {
	Read() cpuclock.Reading
	Close()
}

// CPUClock reads the CPU time of a target, with the precision of a scheduler tick while it runs.
type CPUClock interface {
	Refresh()       // lists the target's processes again
	Read() int64    // ns; -1: unknown
	Grouped() bool  // whether it counts all processes of a control group
	Complete() bool // whether readings lack at most 1 % of the time, of ended processes
	Close()
}

// Slicing is the part of the world that starts need.
type Slicing struct {
	Open func(ctx context.Context, s load.Spec, engine string, speech *nethttp.Config) (Loader,
		error)
	// Freeze returns what stops a target. A target that must run on is never stopped.
	Freeze  func(p launch.Process, runsOn bool) (Freezer, error)
	Clock   func(pids func() []int, groups []launch.Group) CPUClock
	Machine func() (Machine, error)
	// Stalls watches cores; nil: stalls are not recorded.
	Stalls stallfree.Opener
	// Copies is the folder for the copies of services' folders in which starts work; empty: they
	// work in the built ones. Note records a copy on disk until forget is called.
	Copies string
	Note   func(dir string) (forget func() error, err error)
}

// start is a start in progress.
type start struct {
	lab   *Lab
	name  string
	all   []*side // in the order of the plan
	sides []*side // the part of all that is compared: the targets that became ready
	record.SideBySide
	slices  []record.Slice
	rng     *rand.Rand
	machine Machine
	self    CPUClock // of this program, which offers the load
	stalls  *stallfree.Log
}

// side is one target of a start.
type side struct {
	*life
	lacking error  // why there is nothing to launch; nil: there is
	loader  Loader // of the closed load
	open    Loader // of the open load; nil: no open slices
	freezer Freezer
	// stoppedNs is when the target was last stopped between slices, by clock.Mono.
	stoppedNs int64
	clock     CPUClock
	sum       record.Sliced // over closed slices
	openSum   record.Sliced // over open slices
	ended     bool
}

// startTrials runs the trials of one start and returns their records in the order of the plan.
func (l *Lab) startTrials(ctx context.Context, e Experiment, trials []Spec) []*record.Record {
	began := clock.Mono()
	s := l.newStart(e, trials)
	var before record.Before
	if l.Quiet != nil {
		l.tell(Event{Trial: trials[0].ID, Step: "quiet"})
		before = l.Quiet(ctx)
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	failed, err := nobody, s.prepare(bounded, cancel)
	if err == nil {
		failed, err = s.run(bounded)
	}
	err = s.blame(bounded, &failed, err)
	for i, f := range s.sides {
		switch {
		case err == nil:
			f.measured()
		case i == failed || failed == nobody:
			f.fail(ctx, err)
		default:
			f.dragged = true
			f.fail(ctx, hinted("a start counts only if all of its targets succeed: fix that "+
				"target first",
				"target %s of the same start failed in step %s: %w", s.sides[failed].trial.Target,
				s.sides[failed].step, err))
		}
	}
	s.closeLoaders()
	var out []*record.Record
	for _, f := range s.all {
		f.end()
		f.rec.HostBefore = before
		f.rec.DurationNs = (clock.Mono() - began) / int64(len(s.all))
	}
	for _, f := range s.all {
		out = append(out, f.rec)
	}
	l.recalibrate(ctx, e, trials, out)
	for _, f := range s.all {
		f.judged()
	}
	return out
}

func (l *Lab) newStart(e Experiment, trials []Spec) *start {
	s := &start{lab: l, name: trials[0].Start,
		rng: rand.New(rand.NewPCG(trials[0].Seed, uint64(trials[0].Block)))}
	because := trials[0].Origin
	s.SideBySide = record.SideBySide{Repeats: because.Repeats, Stage: because.Stage,
		Planned: because.Planned, Group: trials[0].Group}
	ownLab := *l
	ownLab.Port = processes.Distinct(l.Port)
	for i, t := range trials {
		f := ownLab.life(e, t)
		ownStart := s.SideBySide
		f.rec.SideBySide = &ownStart
		for k := range trials {
			if k != i {
				f.rec.SideBySide.With = append(f.rec.SideBySide.With, trials[k].ID)
			}
		}
		s.all = append(s.all, &side{life: f, lacking: t.Lacking})
	}
	return s
}

// prepare launches all targets, one after another. A target that does not become ready fails alone,
// and the others are compared without it. An error is that of a target that could not be stopped.
func (s *start) prepare(ctx context.Context, cancel context.CancelCauseFunc) (failed error) {
	for _, f := range s.all {
		f.step = "build"
		err := f.lacking
		if err == nil && ctx.Err() == nil && failed == nil {
			idle := s.keepIdle(f)
			err = f.prepare(ctx, cancel)
			failed = idle.end()
		}
		if err == nil || ctx.Err() != nil || failed != nil { // then the whole start has ended
			s.sides = append(s.sides, f)
			continue
		}
		if f.proc != nil {
			err = f.orExit(err)
		}
		f.fail(ctx, err)
		f.end()
	}
	return failed
}

// end stops the target, once.
func (f *side) end() {
	if f.ended {
		return
	}
	f.ended = true
	if f.freezer != nil {
		if err := f.freezer.Close(); err != nil && f.rec.Failure == nil {
			f.fail(context.Background(), err)
		}
	}
	if f.clock != nil {
		f.clock.Close()
	}
	f.life.end()
}

// nobody is the index in place of a target's if the lab itself caused an error.
const nobody = -1

// run compares the targets. With an error, failed is the index of the target that caused it.
func (s *start) run(ctx context.Context) (failed int, err error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if len(s.sides) > 1 {
		if failed, err := s.interleave(ctx); err != nil {
			return failed, err
		}
	}
	s.closeLoaders()
	for i, f := range s.sides {
		if err := s.alone(ctx, f); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// blame assigns the error of a start to the target that ended, if one did.
func (s *start) blame(ctx context.Context, failed *int, err error) error {
	if err == nil || len(s.sides) == 0 {
		return err
	}
	if idle, ok := errors.AsType[idleError](err); ok {
		*failed = slices.Index(s.sides, idle.side)
	}
	if end, ok := errors.AsType[fallenSide](context.Cause(ctx)); ok {
		*failed, err = slices.Index(s.sides, end.side), end
	}
	if *failed == nobody {
		return err
	}
	if f := s.sides[*failed]; f.proc != nil {
		return f.orExit(err)
	}
	return err
}

// fallenSide is the cause that ends the context of a start: a target ended.
type fallenSide struct{ *side }

func (e fallenSide) Error() string { return e.trial.Target + " ended" }

// prepare launches a target, warms it up and stops it until its first slice. If the target ends
// after that, it ends the start.
func (f *side) prepare(ctx context.Context, cancel context.CancelCauseFunc) (err error) {
	if err := f.steps(ctx, "launch", "ready", "verify", "warmup"); err != nil {
		return err
	}
	// An attached service belongs to its user and is never stopped.
	runsOn := f.trial.RunsOn || f.trial.Subject.Built.Attached.IsValid()
	if f.freezer, err = f.lab.Slicing.Freeze(f.proc, runsOn); err != nil {
		return err
	}
	f.clock = f.lab.Slicing.Clock(f.proc.PIDs, f.proc.Groups())
	if err := f.stop(); err != nil {
		return err
	}
	go func() {
		select {
		case <-f.proc.Exited():
			cancel(fallenSide{f})
		case <-ctx.Done():
		}
	}()
	return nil
}

// sliced returns the first load that can be offered in slices. Every plan with starts has one.
func sliced(loads []suite.Load) suite.Load {
	return loads[slices.IndexFunc(loads, suite.Load.Sliceable)]
}

// alone offers a target its loads while the others stay stopped, and verifies its responses.
func (s *start) alone(ctx context.Context, f *side) (err error) {
	idle := s.keepIdle(f)
	defer func() {
		if ended := idle.end(); err == nil {
			err = ended
		}
	}()
	if err := f.freezer.Thaw(); err != nil {
		return err
	}
	f.beforeLoad, f.idle = idle.beforeLoad, s.idleClocks(f)
	if err := f.steps(ctx, "measure", "reverify"); err != nil {
		return err
	}
	if l := sliced(f.trial.Loads); f.sum.Slices > 0 {
		f.keepSlices(l.Name, &f.sum)
	}
	if l, ok := openSliced(f.trial.Loads); ok && f.openSum.Slices > 0 {
		f.keepSlices(l.Name, &f.openSum)
	}
	f.step = "idle"
	return f.stop()
}

// keepSlices adds the target's results in the slices of a load to that load's record.
func (f *side) keepSlices(name string, sum *record.Sliced) {
	for i := range f.rec.Loads {
		if f.rec.Loads[i].Name == name {
			f.rec.Loads[i].Slices = sum
		}
	}
}

// interleave runs the rounds and writes the file of slices. With an error, failed is the index of
// the target that caused it.
func (s *start) interleave(ctx context.Context) (failed int, err error) {
	if s.machine, err = s.lab.Slicing.Machine(); err != nil {
		return nobody, err
	}
	defer s.machine.Close()
	s.self = s.lab.Slicing.Clock(func() []int { return []int{os.Getpid()} }, nil)
	for i, f := range s.sides {
		f.step = "slices"
		if f.loader, err = f.connect(ctx, sliced(f.trial.Loads), load.Spec{}); err != nil {
			return i, err
		}
	}
	if failed, err := s.lengths(ctx); err != nil {
		return failed, err
	}
	report := s.reportRounds("slices", s.Rounds, time.Duration(s.MeanNs()))
	for round := 1; round <= s.Rounds; round++ {
		for _, f := range s.sides {
			f.clock.Refresh()
		}
		for place, i := range s.rng.Perm(len(s.sides)) {
			slice, err := s.closedSlice(ctx, i)
			if err != nil {
				return i, err
			}
			slice.Round, slice.Place = round, place+1
			s.add(slice)
		}
		report(round)
	}
	if failed, err := s.interleaveOpen(ctx); err != nil {
		return failed, err
	}
	s.describe()
	if s.Rounds > 0 {
		if err := s.save(); err != nil {
			return nobody, err
		}
	}
	for i, f := range s.sides {
		f.step = "idle"
		if err := f.stop(); err != nil {
			return i, err
		}
	}
	return 0, nil
}

// connect connects a load that is offered in slices, while the target runs alone. It uses only the
// schedule and the sample size of more.
func (f *side) connect(ctx context.Context, l suite.Load, more load.Spec) (Loader, error) {
	if err := f.freezer.Thaw(); err != nil {
		return nil, err
	}
	spec := f.specOf(l)
	spec.Schedule, spec.Sample, spec.Ahead = more.Schedule, more.Sample, !f.lab.Layout.Shared
	spread(&spec, f.speech)
	loader, err := f.lab.Slicing.Open(ctx, spec, l.Engine, f.speech)
	if err != nil {
		return nil, err
	}
	return loader, f.stop()
}

// describe adds to each record the start's settings, and how this target was stopped and read.
// Without rounds, the lengths are the ones that were too long.
func (s *start) describe() {
	if s.Rounds > 0 {
		s.File = record.SlicesFile(s.name)
	}
	for i, f := range s.sides {
		x := s.SideBySide
		x.With, x.Freeze = f.rec.SideBySide.With, f.freezer.Way()
		f.clock.Refresh()
		switch {
		case f.clock.Grouped():
			x.Clock = record.ClockGroup
		case !f.clock.Complete():
			s.forgetCPU(i)
		case f.clock.Read() >= 0:
			x.Clock = record.ClockProcess
		}
		f.rec.SideBySide = &x
	}
}

// forgetCPU makes a target's CPU time in slices unknown: too much of it was used by processes that
// began and ended within slices, which only a control group counts. Its window has their time.
func (s *start) forgetCPU(i int) {
	s.sides[i].sum.CPUNs, s.sides[i].openSum.CPUNs = -1, -1
	for k := range s.slices {
		if s.slices[k].Target == i {
			s.slices[k].CPUNs = -1
		}
	}
}

// closedSlice loads one target for a closed slice.
func (s *start) closedSlice(ctx context.Context, i int) (record.Slice, error) {
	// Lengths are random because bursts of responses are locked to the beginning of a slice, and
	// periodic events fall into step with slices of equal length: docs/slices.md quantifies both.
	shift := time.Duration(s.rng.Float64() * float64(s.TurnNs))
	window := time.Duration((1 + s.rng.Float64()) * float64(s.WindowNs))
	x := load.Slice{Lead: time.Duration(s.LeadInNs) + shift, Window: window, Seed: s.rng.Uint64()}
	if err := s.wakeIdle(i, x.Lead+x.Window); err != nil {
		return record.Slice{}, err
	}
	return s.slice(ctx, i, s.sides[i].loader, x)
}

// slice loads one target for a slice, while the others are stopped.
func (s *start) slice(ctx context.Context, i int, loader Loader, x load.Slice) (out record.Slice,
	err error,
) {
	f := s.sides[i]
	before, machine := s.read()
	if err := f.freezer.Thaw(); err != nil {
		return out, err
	}
	x.CPU, x.Cores = f.clock.Read, len(s.lab.Layout.Service)
	got, err := loader.Slice(ctx, x)
	if freezing := f.stop(); err == nil {
		err = freezing
	}
	if err != nil {
		return out, err
	}
	after, later := s.read()
	out = record.Slice{Target: i, BeganNs: got.BeganNs, OpenedNs: got.OpenedNs,
		ClosedNs: got.ClosedNs, EndedNs: got.EndedNs, Requests: got.Requests, Failed: got.Failed,
		CPUNs: got.CPUNs, LoadCPUNs: got.LoadCPUNs, StarvedNs: got.StarvedNs,
		StealNs:  passed(machine.StealNs, later.StealNs),
		OthersNs: passed(machine.BusyNs, later.BusyNs)}
	for k := range after {
		used := passed(before[k], after[k])
		out.OthersNs -= max(used, 0)
		out.IdleCPUNs = append(out.IdleCPUNs, used)
	}
	if machine.BusyNs < 0 {
		out.OthersNs = -1
	}
	return out, nil
}

// stop stops the target until its next slice.
func (f *side) stop() error {
	err := f.freezer.Freeze()
	f.stoppedNs = clock.Mono()
	return err
}

// wakeIdle lets all targets but the next one run for a moment, if they would be stopped for too
// long at the end of its slice. No target is loaded meanwhile.
func (s *start) wakeIdle(next int, slice time.Duration) (err error) {
	var awake []*side
	for i, f := range s.sides {
		long := clock.Mono()-f.stoppedNs+int64(slice) > int64(longestStop)
		if i != next && long && f.freezer.Way() != record.FreezeOff && err == nil {
			awake = append(awake, f)
			err = f.freezer.Thaw()
		}
	}
	if len(awake) > 0 {
		time.Sleep(wakeTime)
	}
	for _, f := range awake {
		if stopping := f.stop(); err == nil {
			err = stopping
		}
	}
	return err
}

// passed returns the difference of two readings; -1 if one is unknown.
func passed(from, to int64) int64 {
	if from < 0 || to < 0 {
		return -1
	}
	return to - from
}

// read reads all clocks at a switch. The machine's busy time excludes that of the load.
func (s *start) read() (targets []int64, machine cpuclock.Reading) {
	for _, f := range s.sides {
		targets = append(targets, f.clock.Read())
	}
	machine = s.machine.Read()
	if machine.BusyNs >= 0 {
		machine.BusyNs -= max(s.self.Read(), 0)
	}
	return targets, machine
}

// add adds a counted slice to the sums of all targets.
func (s *start) add(x record.Slice) {
	s.slices = append(s.slices, x)
	sumOf := func(i int) *record.Sliced {
		if x.Open {
			return &s.sides[i].openSum
		}
		return &s.sides[i].sum
	}
	sum := sumOf(x.Target)
	sum.Slices++
	sum.Requests += x.Requests
	sum.Failed += x.Failed
	sum.TimeNs += x.ClosedNs - x.OpenedNs
	sum.LoadCPUNs += x.LoadCPUNs
	plus(&sum.CPUNs, x.CPUNs)
	plus(&sum.StarvedNs, x.StarvedNs)
	for i, used := range x.IdleCPUNs {
		if i != x.Target {
			plus(&sumOf(i).IdleCPUNs, used)
			sumOf(i).IdleTimeNs += x.EndedNs - x.BeganNs
		}
	}
}

// plus adds part to a sum of CPU time. If one part is unknown (-1), the sum is unknown.
func plus(sum *int64, part int64) {
	if part < 0 || *sum < 0 {
		*sum = -1
		return
	}
	*sum += part
}

// save writes the slices and the recorded stalls.
func (s *start) save() error {
	head := record.SlicesHead{SideBySide: s.SideBySide}
	for _, f := range s.sides {
		head.Trials = append(head.Trials, f.trial.ID)
		if f.loader != nil {
			f.sum.Reconnects = f.loader.Reconnects()
		}
	}
	err := record.WriteSlices(s.lab.Dir, s.File, head, s.slices)
	if err == nil && s.stalls != nil && s.stalls.Recorded() {
		err = record.WriteStalls(s.lab.Dir, record.StallsFile(s.name), s.stalls.Stalls())
	}
	if err != nil {
		return fmt.Errorf("save the slices of start %s: %w", s.name, err)
	}
	return nil
}

// closeLoaders ends the loads in slices, because services may close connections that stay idle in
// the windows of others.
func (s *start) closeLoaders() {
	for _, f := range s.sides {
		f.closeLoaders()
	}
}

func (f *side) closeLoaders() {
	for _, l := range []*Loader{&f.loader, &f.open} {
		if *l != nil {
			(*l).Close()
			*l = nil
		}
	}
}
