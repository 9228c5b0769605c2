package trial

import (
	"context"
	"os"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/record"
)

// interleave runs the rounds and writes the file of slices. With an error, failed is the index of
// the target that caused it.
func (s *start) interleave(ctx context.Context) (failed int, err error) {
	if s.machine, err = s.lab.Slicing.Machine(); err != nil {
		return nobody, err
	}
	defer s.machine.Close()
	s.openCores()
	defer s.closeCores()
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
	s.closeCores() // in open slices, stalls are recorded, and this would be one
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

// openCores sets the Interrupter. Without one, CPU times of slices scatter more, without a bias.
func (s *start) openCores() {
	if s.lab.Slicing.Interrupt == nil {
		return
	}
	if cores, err := s.lab.Slicing.Interrupt(s.lab.Layout.Service); err == nil {
		s.cores = cores
	}
}

func (s *start) closeCores() {
	if s.cores != nil {
		_ = s.cores.Close() // its process ends anyway
		s.cores = nil
	}
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
	if s.cores != nil {
		x.CPU = func() int64 {
			s.cores.Interrupt()
			return f.clock.Read()
		}
	}
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
