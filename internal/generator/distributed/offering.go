package distributed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// Time between the agreement and the start. The message must arrive in time, and messages to many
// generators take longer.
const (
	startIn   = 300 * time.Millisecond
	startEach = time.Millisecond
)

// offering is a running load.
type offering struct {
	lab      *Lab
	spec     load.Spec
	members  []*member
	startNs  int64         // clock.Mono
	longest  time.Duration // until the last message
	floor    chan struct{} // held while books are sent
	hash     func(index int) string
	ownPulse *pulse // of the lab itself
	tardy    bool   // the lab stalled while it agreed the start

	mu            sync.Mutex
	sum           *load.Ledger
	response, lag *hdrhistogram.Histogram // since the last report
}

// ErrNoReport means that the load began, and no generator reported its measurements at the end.
var ErrNoReport = errors.New("no generator reported its measurements")

// Offer runs a load with the generators and returns the result. It returns an error if the load
// could not start or no generator reported its books. Faults of single generators are in the
// result. Spec.Observer gets a full report each second, if Spec.Every is set, and the window's ends
// by the lab's clock. Cancelling the context stops the load.
func (l *Lab) Offer(ctx context.Context, o Order) (*load.Result, error) {
	l.Limits.fill()
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &offering{lab: l, spec: o.Spec, floor: make(chan struct{}, 1),
		response: load.NewHistogram(), lag: load.NewHistogram()}
	p.spec.Cores, p.spec.Part = nil, load.Part{}
	var err error
	if p.sum, err = load.NewLedger(p.spec); err != nil {
		return nil, err
	}
	if err := p.divides(&o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // unblocks readers
	if p.members, err = l.gather(ctx); err != nil {
		return nil, err
	}
	p.ownPulse = &pulse{last: clock.Mono(), report: p.stood}
	for _, m := range p.members {
		m.ownPulse = p.ownPulse
	}
	go p.ownPulse.beat(ctx)
	if err := p.prepare(ctx, &o); err != nil {
		return nil, err
	}
	p.begin()
	if err := p.follow(ctx); err != nil {
		return nil, err
	}
	return p.result()
}

// divides checks that each generator gets a part, with equal numbers of threads.
func (p *offering) divides(o *Order) error {
	s, n, streams := &o.Spec, p.lab.number, 1
	if o.By.Stack != nil {
		streams = max(o.By.Stack.Streams, 1)
	}
	links := (s.Connections + streams - 1) / streams
	switch {
	case s.Connections < n:
		return fmt.Errorf("%d connections are too few for %d generators, because each generator "+
			"needs at least one: raise -c",
			s.Connections, n)
	case streams > 1 && links%n != 0:
		return fmt.Errorf("%d connections of %d streams cannot be divided among %d generators; "+
			"set -c to a multiple of both numbers", links, streams, n)
	case len(s.Cores)%n != 0:
		return fmt.Errorf("%d cores cannot be divided among %d generators; list the same number "+
			"of --cores for each generator", len(s.Cores), n)
	}
	return nil
}

func (p *offering) part(m *member) load.Part {
	return load.Part{Index: m.generator.Index, Of: p.lab.number}
}

// askedAtOnce limits concurrent clock requests, because responses that wait for each other are
// slow.
const askedAtOnce = 8

// prepare sends all orders, waits until all are ready, and then measures their clock offsets.
func (p *offering) prepare(ctx context.Context, o *Order) error {
	perItem := len(o.Spec.Cores) / len(p.members)
	err := p.all(ctx, len(p.members), func(i int, m *member) error {
		cores := o.Spec.Cores[i*perItem : (i+1)*perItem]
		return m.prepare(o, p.part(m), cores, p.lab.Limits.Ready)
	})
	if err != nil {
		return err
	}
	return p.all(ctx, askedAtOnce, func(_ int, m *member) error { return m.set() })
}

// all calls a function for all generators, with limited concurrency. The first error cancels the
// load, because it needs all generators.
func (p *offering) all(ctx context.Context, atOnce int, do func(int, *member) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, m := range p.members {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := do(i, m); err != nil {
				cancel(fmt.Errorf("%s: %w", who(i, m.generator.Name), err))
				_ = p.lab.Close() // unblocks the others
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// stood reports that the lab itself stalled, which is not a generator's fault.
func (p *offering) stood(from, ns int64) {
	when := ""
	if p.lab.Begun() {
		when = ", " + sinceBeginning(from-p.startNs)
	}
	p.lab.say(fmt.Sprintf("the coordinator stalled for %.1f s%s: generators continued, and their "+
		"reports came late", float64(ns)/1e9, when))
}

// begin agrees the start of the load.
func (p *offering) begin() {
	s := &p.spec
	s.Describe = p.members[0].engine
	p.sum.Describe(s.Describe)
	n := len(p.members)
	agreed := clock.Mono()
	p.startNs = agreed + int64(startIn+time.Duration(n)*startEach)
	openAt := p.startNs + int64(s.Lead)
	p.sum.Opens(openAt, clock.Wall().UnixNano()+openAt-clock.Mono())
	p.longest = time.Duration(p.startNs-clock.Mono()) + s.Lead + s.Window + s.Drain +
		s.Timeout + p.lab.Limits.End + time.Duration(n)*wordEach
	p.hash = p.hashes(n)
	p.lab.begun.Store(true)
	for _, m := range p.members {
		// A generator that does not get the message is gone, which its reader detects.
		_ = m.tell(start, startForm{p.startNs + m.generator.Clock.OffsetNs})
	}
	p.tardy = p.ownPulse.stood(agreed)
}

// wordEach is the time that each generator's books may make the next generator wait.
const wordEach = 100 * time.Millisecond

// hashes returns a function for the hashes of the generators' parts of the schedule.
func (p *offering) hashes(n int) func(int) string {
	s := &p.spec
	if s.Model != record.Open {
		return func(int) string { return "" }
	}
	all := sync.OnceValue(func() []string {
		process, err := s.Schedule.Process(s.Seed)
		if err != nil {
			panic("generators: a checked schedule is invalid: " + err.Error())
		}
		return pace.Hashes(process, n, int64(s.Lead+s.Window))
	})
	go all() // concurrently with the load
	return func(i int) string { return all()[i] }
}

func (p *offering) untilStart() time.Duration {
	return time.Duration(p.startNs - clock.Mono())
}

// take adds a piece.
func (p *offering) take(m *member, body []byte) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.reported, m.next, err = p.sum.Take(body, m.next, p.response, p.lag)
	if err != nil {
		return err
	}
	g := &m.generator
	g.Sent, g.Done = m.reported.Sent, m.reported.Totals.Done
	g.LagMaxNs = max(g.LagMaxNs, m.reported.LagMaxNs)
	g.MemoryBytes = max(g.MemoryBytes, m.reported.MemoryBytes)
	return nil
}

// follow processes the messages of all generators to their end.
func (p *offering) follow(ctx context.Context) error {
	var all sync.WaitGroup
	for _, m := range p.members {
		all.Go(func() { p.hear(ctx, m) })
	}
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	opens := p.startNs + int64(p.spec.Lead)
	edges := load.NewEdges(p.spec.Lead, opens, opens+int64(p.spec.Window),
		load.Observers{p.spec.Observer}.Window)
	defer edges.Stop()
	halted := false
	for {
		select {
		case <-ctx.Done():
			<-over
			return context.Cause(ctx)
		case <-over:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			edges.Rest()
			p.show()
			return nil
		case <-edges.C:
			edges.Cross()
		case <-tick.C:
			if p.untilStart() > 0 || p.show() || halted {
				continue
			}
			halted = true
			for _, m := range p.members {
				_ = m.send(stop, nil) // an error means that it is gone
			}
		}
	}
}

// show calls Observer.Progress, and reports whether to continue.
func (p *offering) show() bool {
	return p.spec.Observer == nil || p.spec.Every == 0 || p.spec.Observer.Progress(p.look())
}

// look returns the state of all generators, at the latest time that all running generators have
// reported.
func (p *offering) look() load.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := load.Progress{Answers: p.response.TotalCount(), Response: p.response, Lag: p.lag}
	enabled := false // some are running
	for _, m := range p.members {
		t := &m.reported
		s.Totals.Add(&t.Totals)
		switch {
		case m.ended && !enabled:
			s.Elapsed = max(s.Elapsed, t.Elapsed)
		case !m.ended && (!enabled || t.Elapsed < s.Elapsed):
			s.Elapsed, s.Window, enabled = t.Elapsed, t.Window, true
		}
	}
	p.response, p.lag = load.NewHistogram(), load.NewHistogram()
	return s
}

// result returns the sum of all reports.
func (p *offering) result() (*load.Result, error) {
	sound := 0
	for _, m := range p.members {
		if m.sound {
			sound++
		}
	}
	if sound == 0 {
		m := p.members[0]
		return nil, fmt.Errorf("%w; %s %s", ErrNoReport,
			who(m.generator.Index, m.generator.Name), m.generator.Fault)
	}
	res := p.sum.Result()
	for _, m := range p.members {
		res.Generators = append(res.Generators, m.generator)
	}
	return res, nil
}
