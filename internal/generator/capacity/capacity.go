// Package capacity finds the highest rate at which a service meets its objectives, with a
// confidence interval.
//
//	warm up, closed ─► first peak ─► bracket ─► blocks of steps about the boundary ─► interval
//	                                             └ shuffled, rising and falling ones, each step
//	                                               judged met, missed or invalid
//
// A step is one open load. Whether a step near the boundary meets the objectives depends on chance,
// so no single step decides. One curve is fitted to all steps, and the capacity is the rate at
// which half of the steps meet the objectives. docs/decisions/0010-capacity.md explains the method.
//
// Curve then measures latency at shares of the capacity; Concurrency and Stress sweep connections
// and rates. A function of the caller sends the load, so that tests can use a simulated server.
//
// Non-goals: it sends no load, reads clocks only for the budget, and models no server.
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

// Step is one load.
type Step struct {
	Phase       string        `json:"phase"`
	RatePerS    float64       `json:"ratePerS,omitempty"`    // open, Poisson; 0: closed
	Connections int           `json:"connections,omitempty"` // 0: the caller's number
	Lead        time.Duration `json:"leadInNs"`
	Window      time.Duration `json:"windowNs"`
	Seed        uint64        `json:"seed"`
}

// Load returns a load with the step's settings and all others of like.
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
	Quiet    = "quiet"    // closed over one connection, until responses are as fast as at rest
	Bracket  = "bracket"  // single steps, until one holds and a higher one fails
	Shuffled = "shuffled" // near the boundary, in random order
	Rising   = "rising"   // near the boundary, from far below it
	Falling  = "falling"  // near the boundary, from far above it
	AtShare  = "curve"    // at a share of the capacity
	Sweep    = "sweep"    // of connections or rates
)

// Outcomes of a step.
const (
	Met     = "met"
	Missed  = "missed"
	Invalid = "invalid" // no result, because of the generator or the machine
)

// Tried is a step and its result.
type Tried struct {
	Step
	N              int     `json:"step"` // from 1
	Outcome        string  `json:"outcome,omitempty"`
	Reason         string  `json:"reason,omitempty"`
	ThroughputPerS float64 `json:"throughputPerS"`
	P50Ns          int64   `json:"p50Ns,omitempty"` // of response time; 0 if unknown
	P99Ns          int64   `json:"p99Ns,omitempty"` // of response time; 0 if unknown
	// WithStalls reports whether one of them includes the machine's stalls, because it is unknown
	// without them.
	WithStalls    bool          `json:"withStalls,omitempty"`
	BacklogPerS   float64       `json:"backlogPerS,omitempty"`
	CPUPerRequest float64       `json:"generatorNsPerRequest,omitempty"`
	Objectives    []slo.Outcome `json:"objectives,omitempty"`
	// rules of the verdict that it broke with the grade SUSPECT
	Suspect []string `json:"suspectRules,omitempty"`
	named   []string // rules of all findings, of any grade
	rule    string   // the rule behind Reason, if the instrument was at fault

	// How the service or the instrument fell behind, which makes latencies meaningless.
	overload, instrument string
}

// Options are the common options of searches and sweeps.
type Options struct {
	Offer func(context.Context, Step) (*record.Load, error)
	SLO   []slo.Objective
	Seed  uint64

	Lead        time.Duration // before a window of Window; scales with windows; 0: a quarter
	Window      time.Duration // smallest length of a step's window
	Budget      time.Duration // for all of Find
	Confidence  float64       // of the interval
	Precision   float64       // sufficient half-width of the interval, relative; 0: 0.01
	CeilingPerS float64       // the generator limit, measured against a null server; 0: unknown

	Progress func(Tried)  // called after each step; may be nil
	Now      func() int64 // ns; nil: clock.Mono
}

// check returns an error for invalid options and sets defaults.
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

// session is a running search or sweep.
type session struct {
	Options
	rng    *rand.Rand
	tried  []Tried
	began  int64
	need   int64         // number of responses that the objectives need
	least  time.Duration // the smallest length of an open window
	restNs int64         // median response time over one connection at rest
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

// shuffleSalt makes the order of steps independent of the arrivals inside them.
const shuffleSalt = 0x9e6c63d0676a9a99

// spareNeeds is the ratio of planned to needed responses, because arrivals are random.
const spareNeeds = 1.3

// window returns a step's window: long enough for the responses that the objectives need.
func (s *session) window(rate float64) time.Duration {
	return max(s.Window, s.least, time.Duration(spareNeeds*float64(s.need)/rate*1e9))
}

func (s *session) elapsed() time.Duration { return time.Duration(s.Now() - s.began) }

// offer runs a step with its own seed, so that no two steps have the same arrivals, and records the
// result.
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
		t.Outcome, t.Reason, t.Objectives = "", "", nil // these steps have no objectives
	case step.Phase == AtShare && t.overload+t.instrument == "":
		t.Outcome, t.Reason = "", "" // nor has this one, if its latency is valid
	}
	s.tried = append(s.tried, t)
	if s.Progress != nil {
		s.Progress(t)
	}
	return &s.tried[len(s.tried)-1], l, nil
}

// Parameters of the warm-up.
const (
	warmupsMax = 6
	warmChange = 0.05
)

// warmUp runs the closed load until two windows agree within warmChange, and returns the last one's
// throughput, in flows if the load consists of flows. steady is false if no two windows agreed.
func (s *session) warmUp(ctx context.Context) (peak float64, steady bool, err error) {
	for range warmupsMax {
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
		if math.Abs(peak/before-1) < warmChange {
			return peak, true, nil
		}
	}
	return peak, false, nil
}

// Parameters of the wait for quiet.
const (
	quietTries  = 20
	quietWindow = 100 * time.Millisecond
	quietTimes  = 3 // times the median at rest
)

// quiet waits until the response times of single requests are as short as at rest, because an
// overload leaves queues and pools behind that would affect the next step. It returns false if the
// server is not at rest after all tries.
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
