package trial

import (
	"context"
	"math"
	"slices"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/suite"
	"prony.example/load"
	"prony.example/record"
)

// Lengths of open slices. They are longer than closed ones because a quantile needs many arrivals,
// and because the queue must reach its steady length within the lead-in.
const (
	openLead, openWindow = 30 * time.Millisecond, 150 * time.Millisecond
	openArrivals         = 100 // minimum in the shortest window
	leastOpenRounds      = 2
)

// openSliced returns the load that is offered in open slices; ok is false if there is none.
func openSliced(loads []suite.Load) (l suite.Load, ok bool) {
	closed := sliced(loads).Name
	i := slices.IndexFunc(loads, func(l suite.Load) bool { return l.OpenSliceable(closed) })
	if i < 0 {
		return l, false
	}
	return loads[i], true
}

// interleaveOpen offers the open load in rounds of slices, at the same rate to all targets: the
// load's own rate, or its share of the slowest target's throughput in closed slices. With an error,
// failed is the index of the target that caused it.
func (s *start) interleaveOpen(ctx context.Context) (failed int, err error) {
	l, ok := openSliced(s.sides[0].trial.Loads)
	if !ok || s.Rounds == 0 {
		return 0, nil
	}
	slowest := math.Inf(1)
	for _, f := range s.sides {
		slowest = min(slowest, f.sum.ThroughputPerS())
	}
	schedule := l.Schedule(slowest)
	s.Open = s.openLengths(l.Rate.Profile(slowest).At(0))
	if s.Open == nil {
		return 0, nil
	}
	for i, f := range s.sides {
		if err := f.connectOpen(ctx, l, load.Spec{Schedule: schedule,
			Sample: s.sampled()}); err != nil {
			return i, err
		}
		f.openSum.RatePerS = s.Open.RatePerS
	}
	watcher := s.lab.watchStalls(record.Open, s.processes)
	defer watcher.Close()
	s.stalls = watcher.Log()
	planned := s.Open.Rounds
	report := s.reportRounds("open slices", planned, time.Duration(s.Open.MeanNs()))
	for round := 1; round <= s.Open.Rounds; round++ {
		for _, f := range s.sides {
			f.clock.Refresh()
		}
		seed := s.rng.Uint64() // the same arrivals for all targets of a round
		for place, i := range s.rng.Perm(len(s.sides)) {
			slice, err := s.openSlice(ctx, i, seed)
			if err != nil {
				return i, err
			}
			slice.Round, slice.Place, slice.Open = round, place+1, true
			s.add(slice)
		}
		if s.Open.Disturbed < planned && s.disturbed(round) {
			s.Open.Disturbed++
			s.Open.Rounds++
		}
		report(min(round-s.Open.Disturbed, planned))
	}
	s.keepOpen()
	return 0, nil
}

// disturbed marks the slices of a round of all targets if the machine stalled for too long in it.
// Only the machine decides, so what is left out does not depend on what a target did.
func (s *start) disturbed(round int) bool {
	if s.stalls.Share(s.spans(func(x record.Slice) bool { return x.Round == round })) <=
		stallfree.StallLimit {
		return false
	}
	for i := range s.slices {
		if x := &s.slices[i]; x.Open && x.Round == round {
			x.Disturbed = true
		}
	}
	return true
}

// keepOpen computes the results of the open slices.
func (s *start) keepOpen() {
	s.Open.Stalls = s.stalls.Summary()
	for i, f := range s.sides {
		sum := &f.openSum
		sum.Reconnects = f.open.Reconnects()
		sum.ResponseTime, sum.PunctualTime = f.open.ResponseTimes()
		if sample := f.open.Sample(); len(sample.Due) < s.sampled() {
			calm := s.spans(func(x record.Slice) bool { return x.Target == i && !x.Disturbed })
			sum.StallFree = s.stalls.Percentiles(sample, 0, calm,
				f.utilization(len(s.lab.Layout.Service)))
			sum.Unseen = s.stalls.Unseen(calm)
		}
	}
}

// utilization returns the share of its cores that a target used in the windows of open slices; -1:
// it is unknown, also if processes began and ended within slices.
func (f *side) utilization(cores int) float64 {
	f.clock.Refresh()
	if f.openSum.CPUNs < 0 || !f.clock.Grouped() && !f.clock.Complete() {
		return -1
	}
	return float64(f.openSum.CPUNs) / float64(max(f.openSum.TimeNs, 1)) / float64(max(cores, 1))
}

// spans returns the times of some open slices.
func (s *start) spans(are func(record.Slice) bool) (all []stallfree.Span) {
	for _, x := range s.slices {
		if x.Open && are(x) {
			all = append(all, stallfree.Span{FromNs: x.BeganNs, ToNs: x.EndedNs})
		}
	}
	return all
}

// sampled returns how many requests of each target are stored one by one: more than twice as many
// rounds as planned have, so that all fit.
func (s *start) sampled() int {
	most := 2 * (s.Open.Rounds - s.Open.Disturbed)
	expected := s.Open.RatePerS * float64(2*s.Open.WindowNs) / 1e9 * float64(most)
	return stallfree.Sample(expected)
}

// openLengths returns the lengths of open slices at a rate, or nil if slices would be too long.
func (s *start) openLengths(perS float64) *record.OpenSlices {
	if !(perS > 0) {
		return nil
	}
	window := max(openWindow, time.Duration(openArrivals/perS*1e9))
	o := &record.OpenSlices{RatePerS: perS, LeadInNs: max(int64(openLead), s.LeadInNs),
		WindowNs: int64(window)}
	mean := time.Duration(o.MeanNs())
	if mean > LongestSlice {
		return nil
	}
	o.Rounds = max(leastOpenRounds, int(s.sides[0].trial.Sliced/2/mean))
	return o
}

// connectOpen connects the open load. It ends the closed load's connections first, because a
// service may limit the number of connections.
func (f *side) connectOpen(ctx context.Context, l suite.Load, more load.Spec) (err error) {
	f.sum.Reconnects = f.loader.Reconnects()
	f.loader.Close()
	f.loader = nil
	f.open, err = f.connect(ctx, l, more)
	return err
}

// openSlice offers a target one open slice.
func (s *start) openSlice(ctx context.Context, i int, seed uint64) (record.Slice, error) {
	window := time.Duration((1 + s.rng.Float64()) * float64(s.Open.WindowNs))
	x := load.Slice{Lead: time.Duration(s.Open.LeadInNs), Window: window, Seed: seed}
	if err := s.wakeIdle(i, x.Lead+x.Window); err != nil {
		return record.Slice{}, err
	}
	s.stalls.Begin()
	defer s.stalls.End()
	return s.slice(ctx, i, s.sides[i].open, x)
}

// processes returns the processes of all targets of the start.
func (s *start) processes() (all []launch.Process) {
	for _, f := range s.sides {
		all = append(all, f.proc)
	}
	return all
}
