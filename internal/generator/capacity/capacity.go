// Package capacity finds the highest rate at which a service keeps its objectives, and says how
// sure that is.
//
//	warm up, closed ─► first peak ─► bracket ─► blocks of steps about the boundary ─► interval
//	                                             └ shuffled, rising and falling ones, each step
//	                                               judged met, missed or invalid
//
// A step is one open load. Whether it holds is chance near the boundary, so that no single step
// decides: all of them are fitted by one curve, and the capacity is the rate at which half of the
// steps hold. docs/decisions/0010-capacity.md argues the method.
//
// Curve then measures latency at shares of the capacity, Concurrency and Stress sweep connections
// and rates. The load itself is offered by a function of the caller's, so that this package can be
// tested against a server that is arithmetic.
//
// Non-goals: making load, reading clocks but for the budget, and models of the server.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
	"prony.example/record/slo"
)

// Step is one load to be offered.
type Step struct {
	Phase       string        `json:"phase"`
	RatePerS    float64       `json:"ratePerS,omitempty"`    // open, Poisson; 0: closed
	Connections int           `json:"connections,omitempty"` // 0: as many as the caller has
	Lead        time.Duration `json:"leadInNs"`
	Window      time.Duration `json:"windowNs"`
	Seed        uint64        `json:"seed"`
}

// Load is the step as a load, like another but for what the step says.
func (s Step) Load(like load.Spec) load.Spec {
	like.Seed, like.Lead, like.Window, like.Model = s.Seed, s.Lead, s.Window, record.Closed
	if s.Connections > 0 {
		like.Connections = s.Connections
	}
	if s.RatePerS > 0 {
		like.Model = record.Open
		like.Schedule = pace.Schedule{Arrivals: pace.Poisson, Rate: pace.Flat(s.RatePerS)}
	}
	return like
}

// Phases.
const (
	Warmup   = "warm-up"  // closed, until two windows agree
	Quiet    = "quiet"    // closed over one connection, until answers are as fast as at rest
	Bracket  = "bracket"  // single steps, until one holds and a higher one breaks
	Shuffled = "shuffled" // about the boundary, in random order
	Rising   = "rising"   // about the boundary, from far below it
	Falling  = "falling"  // about the boundary, from far above it
	AtShare  = "curve"    // at a share of the capacity
	Sweep    = "sweep"    // of connections or rates
)

// Words about a step.
const (
	Met     = "met"
	Missed  = "missed"
	Invalid = "invalid" // the generator or the machine was at fault: it says nothing
)

// Tried is a step and what came of it.
type Tried struct {
	Step
	N              int           `json:"step"` // from 1
	Outcome        string        `json:"outcome,omitempty"`
	Reason         string        `json:"reason,omitempty"`
	ThroughputPerS float64       `json:"throughputPerS"`
	P50Ns          int64         `json:"p50Ns,omitempty"` // of response time; 0 where none is
	P99Ns          int64         `json:"p99Ns,omitempty"` // worth telling
	BacklogPerS    float64       `json:"backlogPerS,omitempty"`
	CPUPerRequest  float64       `json:"generatorNsPerRequest,omitempty"`
	Objectives     []slo.Outcome `json:"objectives,omitempty"`
	// rules of the verdict that it broke
	Suspect []string `json:"suspectRules,omitempty"`
	named   []string // rules that said something, of any grade
	rule    string   // that Why is about, if it is one of the instrument

	// How service or instrument fell behind, which makes a latency worth nothing.
	overload, instrument string
}

// Options are what all searches and sweeps want to know.
type Options struct {
	Offer func(context.Context, Step) (*record.Load, error)
	SLO   []slo.Objective
	Seed  uint64

	Lead        time.Duration // before a window of Window, before longer ones more; 0: a quarter
	Window      time.Duration // of a step at least
	Budget      time.Duration // for all of Find
	Confidence  float64       // of the interval
	Precision   float64       // half the interval's width by the capacity that is enough; 0: 0.01
	CeilingPerS float64       // of the generator against a null server; 0 unknown

	Progress func(Tried)  // after each step; nil: none
	Now      func() int64 // ns; nil: clock.Mono
}

// check fills in what was left open.
func (o *Options) check() error {
	switch {
	case o.Offer == nil:
		panic("capacity: Options.Offer is nil")
	case o.Window <= 0:
		return fmt.Errorf("find capacity: the window must be greater than 0, got %v", o.Window)
	case o.Lead < 0:
		return fmt.Errorf("find capacity: the lead-in must not be negative, got %v", o.Lead)
	}
	o.Lead = cmp.Or(o.Lead, o.Window/4)
	o.Precision = cmp.Or(o.Precision, 0.01)
	if o.Now == nil {
		o.Now = clock.Mono
	}
	return nil
}

// session is a search or a sweep under way.
type session struct {
	Options
	rng    *rand.Rand
	tried  []Tried
	began  int64
	need   int64         // answers that the objectives take
	least  time.Duration // of an open window
	restNs int64         // median response time over one connection, with nothing else under way
}

func newSession(o Options) (*session, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &session{
		Options: o, rng: rand.New(rand.NewPCG(o.Seed, shuffleSalt)), began: o.Now(), need: 1,
	}
	for _, objective := range o.SLO {
		s.need = max(s.need, objective.Needs())
	}
	return s, nil
}

// shuffleSalt keeps the order of steps apart from the arrivals inside them.
const shuffleSalt = 0x9e6c63d0676a9a99

// spareNeeds is by how much more answers are planned for than are needed, for arrivals are random.
const spareNeeds = 1.3

// window of a step: long enough for the answers that the objectives take.
func (s *session) window(rate float64) time.Duration {
	return max(s.Window, s.least, time.Duration(spareNeeds*float64(s.need)/rate*1e9))
}

func (s *session) elapsed() time.Duration { return time.Duration(s.Now() - s.began) }

// offer makes a step with a seed of its own, so that no two steps meet the same arrivals, and notes
// what came of it.
func (s *session) offer(ctx context.Context, step Step) (*Tried, *record.Load, error) {
	step.Seed = pace.Mix(s.Seed, uint64(len(s.tried)))
	if step.Phase != Quiet {
		step.Lead = time.Duration(float64(s.Lead) * float64(step.Window) / float64(s.Window))
	}
	l, err := s.Offer(ctx, step)
	if err != nil && ctx.Err() != nil {
		return nil, nil, fmt.Errorf("the search was interrupted in step %d "+
			"(%s)", len(s.tried)+1, step.Phase)
	} else if err != nil {
		return nil, nil, fmt.Errorf("run step %d (%s) of the search: "+
			"%w", len(s.tried)+1, step.Phase, err)
	}
	t := judge(l, s.SLO)
	t.Step, t.N = step, len(s.tried)+1
	switch {
	case step.Phase == Warmup || step.Phase == Quiet:
		t.Outcome, t.Reason, t.Objectives = "", "", nil // they were not to keep anything
	case step.Phase == AtShare && t.overload+t.instrument == "":
		t.Outcome, t.Reason = "", "" // nor was this, once it can be told
	}
	s.tried = append(s.tried, t)
	if s.Progress != nil {
		s.Progress(t)
	}
	return &s.tried[len(s.tried)-1], l, nil
}

// Of the warm-up.
const (
	warmupsMax = 6
	warmChange = 0.05
)

// warmUp offers the closed load until two windows agree within warmChange, and returns the last
// one's throughput, of flows where the load is one of flows; steady is false when no two did.
func (s *session) warmUp(ctx context.Context) (peak float64, steady bool, err error) {
	for i := range warmupsMax {
		_, l, err := s.offer(ctx, Step{Phase: Warmup, Window: s.Window})
		if err != nil {
			return 0, false, err
		}
		before := peak
		peak = l.ThroughputPerS
		if n := l.FlowTime.Count; n > 0 {
			peak = float64(n) / s.Window.Seconds()
		}
		if peak <= 0 {
			return 0, false, fmt.Errorf("warm up: no good response within %v: %s", s.Window,
				l.Errors.Why())
		}
		if i > 0 && math.Abs(peak/before-1) < warmChange {
			return peak, true, nil
		}
	}
	return peak, false, nil
}

// Of the wait for quiet.
const (
	quietTries  = 20
	quietWindow = 100 * time.Millisecond
	quietTimes  = 3 // times the median at rest
)

// quiet waits until single requests are answered as fast as they were at rest. An overload leaves
// queues and pools behind that would be charged to the next step. It returns false when the server
// has not come to rest after all tries.
func (s *session) quiet(ctx context.Context) (bool, error) {
	for range quietTries {
		window := min(max(quietWindow, time.Duration(20*s.restNs)), s.Window)
		_, l, err := s.offer(ctx, Step{Phase: Quiet, Connections: 1, Window: window})
		if err != nil {
			return false, err
		}
		p50 := l.ResponseTime.P50Ns
		if l.Answered == 0 || l.Errors.Total() > 0 {
			continue
		}
		if s.restNs == 0 || p50 < s.restNs {
			s.restNs = p50
		}
		if p50 <= quietTimes*s.restNs {
			return true, nil
		}
	}
	return false, nil
}
