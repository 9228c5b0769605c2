package trial

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/launch"
	"prony.example/internal/observe/host"
	"prony.example/internal/suite"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// A duet is two trials at once, on cores of their own, that wait for each other: what the machine's
// own host does to one in a moment it does to the other (Bulej, Horký, Tůma, Farquet & Prokopec,
// "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020). It counts whole or
// not at all: when one side fails, the other ends too, since what is left would be measured beside
// an idle neighbour. docs/decisions/0016-duet.md says what else was considered.

// ahead is how long before the common beginning of a load both sides are told of it. It has to
// cover the waking of the side that waited.
const ahead = 5 * time.Millisecond

// pair is what the two sides of a duet share.
type pair struct {
	end context.CancelCauseFunc // of both sides

	mu      sync.Mutex
	meeting *meeting
	gone    bool // one has left, so nobody waits for it
	steady  int  // ends of warm-ups, of both sides
	telling sync.Mutex
}

// meeting is one point at which both sides wait for each other.
type meeting struct {
	here   int
	start  int64 // a moment shortly after both were there
	shared chan struct{}
}

func newMeeting() *meeting { return &meeting{shared: make(chan struct{})} }

// meet waits until both sides are here and returns the moment at which they go on together.
func (p *pair) meet(ctx context.Context) (start int64, err error) {
	p.mu.Lock()
	m := p.meeting
	m.here++
	if m.here == 2 || p.gone {
		p.part()
	}
	p.mu.Unlock()
	select {
	case <-m.shared:
		return m.start, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// part ends the meeting; p.mu is held.
func (p *pair) part() {
	p.meeting.start = clock.Mono() + int64(ahead)
	close(p.meeting.shared)
	p.meeting = newMeeting()
}

// leave lets the other go on alone.
func (p *pair) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	p.part()
}

// warm notes the end of a warm-up and says whether so many ends are there.
func (p *pair) warm(ended, want int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steady += ended
	return p.steady >= want || p.gone
}

// fallen is why the other side of a duet ends: this one did.
type fallen struct{ error }

func (e *fallen) Unwrap() error { return e.error }

func fell(trial, step string, err error) *fallen {
	return &fallen{hinted("a duet counts whole or not at all: mend that one first",
		"the other side of the duet, %s, failed in step %s: %w", trial, step, err)}
}

// seat is one side of a duet under way.
type seat struct {
	*life
	pair    *pair
	second  *seat
	warmups int
	opened  []int64                          // clock.Mono, of each load's window
	service atomic.Pointer[[]launch.Process] // for the other side; nil: not launched
}

// duet runs the two trials of a pair to their records, which come in the order of the plan.
func (l *Lab) duet(ctx context.Context, e Experiment, trials [2]Spec) []*record.Record {
	joint, end := context.WithCancelCause(ctx)
	defer end(nil)
	p := &pair{end: end, meeting: newMeeting()}
	seats := l.seats(p, e, trials)
	var before record.Before
	if l.Quiet != nil {
		l.tell(Event{Trial: trials[0].ID, Step: "quiet"})
		before = l.Quiet(ctx)
	}
	var playing sync.WaitGroup
	for i, s := range seats {
		s.rec.HostBefore = before
		cause := broken(trials, i)
		playing.Go(func() { s.play(ctx, joint, cause) })
	}
	playing.Wait()
	for i, s := range seats {
		s.rec.Duet.SkewNs = skew(s.opened, seats[1-i].opened)
	}
	return []*record.Record{seats[0].judged(), seats[1].judged()}
}

// broken is why a side of a pair cannot begin: its target was not built, or the other's was not.
func broken(trials [2]Spec, i int) error {
	if err := trials[i].Lacking; err != nil {
		return err
	}
	if err := trials[1-i].Lacking; err != nil {
		return fell(trials[1-i].ID, "build", err)
	}
	return nil
}

// seats are the two sides: a life each, in a lab of its own.
func (l *Lab) seats(p *pair, e Experiment, trials [2]Spec) (seats [2]*seat) {
	ports := processes.Distinct(l.Port) // the two may be launched at the same moment
	for i, t := range trials {
		f := l.life(e, t)
		seats[i] = &seat{life: f, pair: p}
		f.lab = seats[i].lab(l, from(ports))
		f.rec.Duet = &record.Duet{With: trials[1-i].ID, Side: t.Side, Shared: f.lab.Layout.Shared}
	}
	seats[0].second, seats[1].second = seats[1], seats[0]
	return seats
}

// from takes the first port at once, so that a side's does not depend on who is launched first, and
// more when they are asked for.
func from(ports func() (int, error)) func() (int, error) {
	first, err := ports()
	requested := false
	return func() (int, error) {
		if requested {
			return ports()
		}
		requested = true
		return first, err
	}
}

// lab is the lab of a side: the whole one's but for what the two must not share.
func (s *seat) lab(full *Lab, port func() (int, error)) *Lab {
	ownLab := *full
	ownLab.Layout = full.Sides.Left
	if s.trial.Side == suite.Right {
		ownLab.Layout = full.Sides.Right
	}
	ownLab.Sides, ownLab.Quiet, ownLab.Port = nil, nil, port
	ownLab.Home = nil // it hears one trial at a time
	ownLab.Driver = func(name, engine string, c *nethttp.Config) (Driver, error) {
		driver, err := full.Driver(name, engine, c)
		return &inStep{driver, s}, err
	}
	ownLab.Launcher, ownLab.Containers = &beginner{full.Launcher, s}, map[string]launch.Launcher{}
	for name, l := range full.Containers {
		ownLab.Containers[name] = &beginner{l, s}
	}
	if full.Beside != nil {
		ownLab.Watch = func(p launch.Process, _ time.Duration) (Watcher, error) {
			return full.Beside(p, ownLab.Layout, s.second.pids)
		}
	}
	ownLab.Observe = func(e Event) {
		s.pair.telling.Lock()
		defer s.pair.telling.Unlock()
		full.tell(e)
	}
	return &ownLab
}

// beginner launches a side's service and tells the other side.
type beginner struct {
	launch.Launcher
	s *seat
}

// Launch implements launch.Launcher.
func (b *beginner) Launch(ctx context.Context, spec launch.Spec) (launch.Process, error) {
	p, err := b.Launcher.Launch(ctx, spec)
	if err == nil {
		all := []launch.Process{p}
		if before := b.s.service.Load(); before != nil {
			all = append(all, *before...)
		}
		b.s.service.Store(&all)
	}
	return p, err
}

// pids are the processes of the side's service; none before it was launched. They are neighbours
// that the other side knows of, and not what a verdict calls so.
func (s *seat) pids() []int {
	var pids []int
	if all := s.service.Load(); all != nil {
		for _, p := range *all {
			pids = append(pids, p.PIDs()...)
		}
	}
	return pids
}

// play is the life of a side. The cause is why it cannot begin.
func (s *seat) play(ctx, joint context.Context, cause error) {
	began := clock.Mono()
	defer func() { s.rec.DurationNs = clock.Mono() - began - s.heldNs }()
	s.step = "build"
	err := cause
	if err == nil {
		err = s.run(joint)
	}
	if err == nil {
		_, err = s.pair.meet(joint) // so that one which fails at its very end takes this one along
	}
	if err == nil {
		s.measured()
	} else {
		s.fall(ctx, joint, err)
	}
	s.pair.leave()
	s.life.end(ctx)
	for i := range s.rec.Loads {
		// The kernel counts loopback's bytes of both sides together.
		u := &s.rec.Loads[i].Service
		u.NetworkBytes, u.NetworkBytesPerRequest = -1, -1
		s.rec.Loads[i].Host.EnergyJ = 0 // nor does the hardware tell whose energy it was
	}
}

// fall writes down why the side failed and ends the other. A side that the other has ended says so,
// unless its own service died as well.
func (s *seat) fall(ctx, joint context.Context, err error) {
	var second *fallen
	if errors.As(context.Cause(joint), &second) && errors.Is(err, context.Canceled) {
		err = second
	}
	s.fail(ctx, err)
	if s.used = errors.As(err, &second); !s.used {
		s.pair.end(fell(s.trial.ID, s.step, errors.New(s.rec.Failure.Error)))
	}
}

// inStep offers the loads of a side at the same time as those of the other.
type inStep struct {
	Driver
	s *seat
}

// Offer implements Driver. Nobody connects before both are done with the load before, and nothing
// is sent before both have connected.
func (d *inStep) Offer(ctx context.Context, spec load.Spec) (*load.Result, error) {
	s := d.s
	if _, err := s.pair.meet(ctx); err != nil {
		return nil, err
	}
	spec.Together = s.pair.meet
	warmup := spec.Watch != nil
	if warmup {
		s.warmups++
		spec.Watch = s.untilBoth(spec.Watch)
	}
	if s.life.lab.Layout.Shared {
		spec.Pacing = load.Frugal // polling would take the service's own core from it
	}
	res, err := d.Driver.Offer(ctx, spec)
	if err != nil {
		return nil, err
	}
	if !warmup {
		s.opened = append(s.opened, res.OpenedNs)
	}
	_, err = s.pair.meet(ctx)
	return res, err
}

// untilBoth keeps a load up until both sides have seen enough of theirs: neither cools down while
// the other is not there yet. What goes on beyond that is shown, so that the series has no gap
// between warm-up and first load.
func (s *seat) untilBoth(watch func(int64, time.Duration) bool) func(int64, time.Duration) bool {
	want := 2 * s.warmups
	enough := false
	return func(done int64, elapsed time.Duration) bool {
		ended := 0
		if !watch(done, elapsed) && !enough {
			enough, ended = true, 1
		}
		return !s.pair.warm(ended, want)
	}
}

// skew is how much later the windows of a opened than those of b, where they were furthest apart.
func skew(a, b []int64) (ns int64) {
	for i := range min(len(a), len(b)) {
		if d := a[i] - b[i]; a[i] != 0 && b[i] != 0 && max(d, -d) > max(ns, -ns) {
			ns = d
		}
	}
	return ns
}

// place is where one service and its load are: the whole layout, or a side of it.
func (l *Lab) place() host.Layout {
	if l.Sides != nil {
		return l.Sides.Left
	}
	return l.Layout
}
