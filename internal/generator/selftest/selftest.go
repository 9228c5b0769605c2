// Package selftest is the proof that a generator reads what is there: it offers loads to servers
// whose answers are known by arithmetic (internal/generator/truth) and holds each number that comes
// back against the one that must.
//
//	Case ─► start its server ─► Offer its load ─► Lines: known, measured, limit ─► Outcome
//
// What is known comes from formulas and, for queues, from Lindley's recursion over the very
// arrivals and service times of the run: both are pure functions of a seed. So a sample is compared
// with itself, not with the mean of all samples there could be, and a few seconds are enough.
//
// A number that does not hold while the machine disturbed the measurement proves nothing either
// way. Such a case is run once more, and says so.
//
// Non-goals: it does not judge services, and knows no engine: whatever can Offer a load can be
// tested, which is how its own tests show that a generator that lies is found out.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth"
	"prony.example/load"
)

// Offer offers a load, as trial.Driver does.
type Offer func(ctx context.Context, s load.Spec) (*load.Result, error)

// Start starts a server of a kind. It has heard no request yet: their numbers count.
type Start func(ctx context.Context, kind string, p truth.Params) (Server, error)

// Server is a running truth server.
type Server interface {
	Addr() netip.AddrPort
	// CPU is the processor time that the server has used so far.
	CPU() (time.Duration, error)
	// Stop ends the server and returns what it says of itself.
	Stop() (truth.Report, error)
}

// Case is one experiment with a known end.
type Case struct {
	Name   string
	Kind   string // of the server
	Params truth.Params
	Spec   load.Spec // what is offered, but for the address
	Known  string    // what must come out, in words and formulas

	useCPU  bool
	slack   time.Duration        // of a request on average, beyond which it disturbs the case
	isExtra func() (stop func()) // what is provoked meanwhile
	lines   func(*Case, *measured) []Line
}

// measured is what a case came to.
type measured struct {
	*load.Result
	server truth.Report
	cpu    time.Duration // that the server used during the load
}

// Units of lines.
const (
	Ns    = "ns"
	PerS  = "1/s"
	Plain = "1"
)

// Line is one number: as it is known and as it was measured.
type Line struct {
	What     string  `json:"what"`
	Formula  string  `json:"formula"`
	Unit     string  `json:"unit"` // "ns", "1/s" or "1"
	Known    float64 `json:"known"`
	Measured float64 `json:"measured"`
	OffBy    float64 `json:"offBy"` // share of the known; of a known 0, what was measured
	Limit    float64 `json:"limit"` // on offBy, both ways
	OK       bool    `json:"ok"`
}

// line compares. What is no number is not OK.
func line[K, G ~int | ~int64 | ~float64](subject, formula, unit string, known K, got G,
	limit float64) Line {
	l := Line{What: subject, Formula: formula, Unit: unit, Known: float64(known),
		Measured: float64(got), OffBy: float64(got), Limit: limit}
	if known != 0 {
		l.OffBy = l.Measured/l.Known - 1
	}
	// The slack is for the last bits of sums: a count that must be exact is still exact.
	l.OK = math.Abs(l.OffBy) <= limit+1e-12
	return l
}

// States of an outcome.
const (
	OK        = "ok"
	Wrong     = "wrong"     // a number is off, and nothing disturbed the measurement
	Disturbed = "disturbed" // a number is off, twice, and the machine disturbed it
)

// Outcome is what came of a case.
type Outcome struct {
	Case      string `json:"case"`
	Known     string `json:"known"`
	State     string `json:"state"`
	Disturbed string `json:"disturbed,omitempty"` // by what; also of a case that is ok
	Attempts  int    `json:"attempts"`
	TookNs    int64  `json:"tookNs"`
	Lines     []Line `json:"lines"`
}

// attempts is how often a case is tried that the machine disturbs.
const attempts = 2

// Run runs the cases one after another and tells, through say, which. An error means that one could
// not be run; the outcomes are of those before it.
func Run(ctx context.Context, cases []Case, offer Offer, start Start,
	report func(string)) ([]Outcome, error) {
	var all []Outcome
	for i := range cases {
		c := &cases[i]
		began := clock.Mono()
		report(fmt.Sprintf("%d of %d: %s", i+1, len(cases), c.Name))
		var out Outcome
		for n := 1; n <= attempts; n++ {
			m, err := c.measure(ctx, offer, start)
			if err != nil {
				return all, fmt.Errorf("selftest %s: %w", c.Name, err)
			}
			out = c.judge(m)
			out.Attempts = n
			if out.State != Disturbed {
				break
			}
			report(fmt.Sprintf("%s: disturbed: %s", c.Name, out.Disturbed))
		}
		out.TookNs = clock.Mono() - began
		all = append(all, out)
	}
	return all, nil
}

// measure runs the case once.
func (c *Case) measure(ctx context.Context, offer Offer, start Start) (m *measured, err error) {
	s, err := start(ctx, c.Kind, c.Params)
	if err != nil {
		return nil, err
	}
	m = &measured{}
	defer func() {
		var stopped error
		m.server, stopped = s.Stop()
		err = errors.Join(err, stopped)
	}()
	spec := c.Spec
	spec.Name, spec.Address = c.Name, s.Addr()
	var before time.Duration
	if c.useCPU {
		if before, err = s.CPU(); err != nil {
			return m, err
		}
	}
	if c.isExtra != nil {
		defer c.isExtra()()
	}
	m.Result, err = offer(ctx, spec)
	if err != nil || !c.useCPU {
		return m, err
	}
	after, err := s.CPU()
	m.cpu = after - before
	return m, err
}

// judge holds the lines against their limits.
func (c *Case) judge(m *measured) Outcome {
	out := Outcome{Case: c.Name, Known: c.Known, State: OK, Disturbed: c.disturbance(m),
		Lines: c.lines(c, m)}
	for _, l := range out.Lines {
		if !l.OK {
			out.State = Wrong
		}
	}
	if out.State == Wrong && out.Disturbed != "" {
		out.State = Disturbed
	}
	return out
}

// Limits of the verdict's rules lag and run delay. Judge is not asked, for it looks at no lag where
// it withholds the latency, as above capacity; here that is no reason not to.
const (
	lagFloor    = 50 * time.Microsecond // p99 of the generator's own lag
	lagShare    = 0.05                  // of the response time's p99
	runDelayMax = 0.05                  // of the window
)

// disturbance says what the machine did to a measurement: by the generator's own lateness, and by
// the server's word on its.
func (c *Case) disturbance(m *measured) string {
	if late := time.Duration(m.server.LateMeanNs); c.slack > 0 && late > c.slack {
		return fmt.Sprintf("the server answered %v late on average, limit %v",
			late.Round(time.Microsecond), c.slack.Round(time.Microsecond))
	}
	// Nobody sees the wait for a processor between a request's coming and its being read, nor that
	// of its answer. Both threads' waits for a processor, by request, are what it comes to.
	waited := time.Duration((m.server.RunDelayNs + m.Generator.RunDelayNs) /
		max(m.server.Requests, 1))
	if c.slack > 0 && waited > c.slack {
		return fmt.Sprintf("server and generator waited %v a request for a processor, limit %v",
			waited.Round(time.Microsecond), c.slack.Round(time.Microsecond))
	}
	if c.isExtra != nil { // what the generator suffers is the case
		return ""
	}
	limit := max(lagFloor, time.Duration(lagShare*float64(m.ResponseTime.P99Ns)))
	if late := time.Duration(m.OwnLag.P99Ns); late > limit {
		return fmt.Sprintf("p99 of the generator's own lag was %v, limit %v",
			late.Round(time.Microsecond), limit.Round(time.Microsecond))
	}
	delay := float64(m.Generator.RunDelayNs) / float64(max(m.WindowNs, 1)) /
		float64(max(m.Threads, 1))
	if delay > runDelayMax {
		return fmt.Sprintf("the generator waited for a processor for %.0f %% of the window, "+
			"limit %.0f %%", 100*delay, 100*runDelayMax)
	}
	return ""
}
