// Package selftest tests a generator's measurements: it runs loads on servers with computable
// responses (internal/generator/truth) and compares each number that the generator reports with the
// known value.
//
//	Case ─► start its server ─► Offer its load ─► Lines: known, measured, limit ─► Outcome
//
// Known values come from formulas. For queues they come from Lindley's recursion over the real
// arrival times and service times. So a sample is compared with itself, not with the mean of all
// possible samples, and a few seconds are sufficient.
//
// The machine can only delay responses. The largest possible delay is known without the generator's
// numbers (Machine). A number beyond that is wrong; a number within is disturbed, and its case runs
// again. The rule is in judge.go.
//
// Non-goals: it does not judge services, and is independent of engines: it can test everything with
// an Offer, so its own tests show that it detects faulty generators.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/generator/truth"
	"prony.example/load"
)

// Offer runs a load, as trial.Driver does.
type Offer func(ctx context.Context, s load.Spec) (*load.Result, error)

// Start starts a server of a kind that has received no request yet, because request numbers count.
// The server gets real-time priority only if the load may have it.
type Start func(ctx context.Context, kind string, p truth.Params, o truth.Options) (Server, error)

// Server is a running truth server.
type Server interface {
	Addr() netip.AddrPort
	// CPU returns the processor time that the server has used so far.
	CPU() (time.Duration, error)
	// Stop ends the server and returns its report.
	Stop() (truth.Report, error)
}

// Watch starts to observe the cores in use; end returns the disturbances.
type Watch func() (end func() Machine)

// Setup provides what cases need.
type Setup struct {
	Offer  Offer
	Start  Start
	Watch  Watch        // nil: only run delays are known
	Report func(string) // receives progress messages
}

// Case is one experiment with a known result.
type Case struct {
	Name   string
	Kind   string // of the server
	Params truth.Params
	Spec   load.Spec // load, without the address
	Known  string    // the known result, in words and formulas

	useCPU  bool
	times   bool                 // needs the server's times of requests
	slack   time.Duration        // verdicts only: server delay per request that disturbs the case
	isExtra func() (stop func()) // starts a provoked disturbance
	lines   func(*Case, *measured) []Line
}

// measured is the recorded result of a case.
type measured struct {
	*load.Result
	server  truth.Report
	cpu     time.Duration // used by the server during the load
	machine Machine
}

// Units of lines.
const (
	Ns    = "ns"
	PerS  = "1/s"
	Plain = "1"
)

// Line is one number: known and measured.
type Line struct {
	What     string  `json:"what"`
	Formula  string  `json:"formula"`
	Unit     string  `json:"unit"` // "ns", "1/s" or "1"
	Known    float64 `json:"known"`
	Measured float64 `json:"measured"`
	OffBy    float64 `json:"offBy"` // relative to Known; if that is 0, Measured
	Limit    float64 `json:"limit"` // of the absolute value of OffBy
	OK       bool    `json:"ok"`
	State    string  `json:"state"`
	// Lowest and Highest are the range of the number if the machine caused all possible delays.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// KeptShare is the share of arrivals that were compared, because arrivals near stalls were
	// excluded on both sides; 0: all were compared.
	KeptShare float64 `json:"keptShare,omitempty"`
}

// line returns a compared line. NaN is not OK.
func line[K, G ~int | ~int64 | ~float64](subject, formula, unit string, known K, got G,
	limit float64) Line {
	l := Line{What: subject, Formula: formula, Unit: unit, Known: float64(known),
		Lowest: float64(known), Highest: float64(known), Measured: float64(got), Limit: limit}
	l.compare()
	return l
}

func (l *Line) compare() {
	l.OffBy = l.Measured
	if l.Known != 0 {
		l.OffBy = l.Measured/l.Known - 1
	}
	// The tolerance is for rounding of sums; exact counts must still be exact.
	l.OK = math.Abs(l.OffBy) <= l.Limit+1e-12
}

// States of a line and of an outcome.
const (
	OK        = "ok"
	Wrong     = "wrong"     // a number deviates more than the machine explains
	Disturbed = "disturbed" // a number deviates in each attempt, and the machine explains it
)

// Outcome is the result of a case.
type Outcome struct {
	Case      string  `json:"case"`
	Known     string  `json:"known"`
	State     string  `json:"state"`
	Disturbed string  `json:"disturbed,omitempty"` // description of the disturbance, with figures
	Attempts  int     `json:"attempts"`
	TookNs    int64   `json:"tookNs"`
	Lines     []Line  `json:"lines"`
	Machine   Machine `json:"machine"` // during the last attempt
}

// attempts is the largest number of runs of a disturbed case. A deviation that the machine does not
// explain counts only if it occurs in two attempts: a fault of the generator remains, an unrecorded
// disturbance disappears.
const attempts = 3

// unexplained is the disturbance of a case that deviated once, but not again.
const unexplained = "a number was wrong in one attempt, without a recorded reason, but not in " +
	"the next attempt"

// Run runs the cases in sequence. If a case cannot be run, it returns an error and the earlier
// outcomes.
func (s Setup) Run(ctx context.Context, cases []Case) ([]Outcome, error) {
	var all []Outcome
	for i := range cases {
		c := &cases[i]
		began := clock.Mono()
		s.Report(fmt.Sprintf("%d of %d: %s", i+1, len(cases), c.Name))
		out, err := s.try(ctx, c)
		if err != nil {
			return all, fmt.Errorf("selftest %s: %w", c.Name, err)
		}
		out.TookNs = clock.Mono() - began
		all = append(all, out)
	}
	return all, nil
}

// try runs a case until its outcome is final.
func (s Setup) try(ctx context.Context, c *Case) (Outcome, error) {
	var wrong *Outcome // first wrong outcome
	for n := 1; ; n++ {
		m, err := c.measure(ctx, s)
		if err != nil {
			return Outcome{}, err
		}
		out := c.judge(m)
		out.Attempts = n
		switch {
		case out.State == Wrong && wrong == nil:
			wrong = &out
			s.Report(c.Name + ": " + wrongLine(out.Lines) + ", without a recorded reason")
		case out.State == OK && wrong != nil:
			wrong.State, wrong.Disturbed, wrong.Attempts = Disturbed, unexplained, n
			return *wrong, nil
		case out.State != Disturbed || n >= attempts:
			return out, nil
		default:
			s.Report(fmt.Sprintf("%s: disturbed: %s", c.Name, out.Disturbed))
		}
	}
}

// wrongLine describes the wrong number.
func wrongLine(lines []Line) string {
	i := slices.IndexFunc(lines, func(l Line) bool { return l.State == Wrong })
	if i < 0 {
		return "a number is wrong"
	}
	l := lines[i]
	return fmt.Sprintf("%s is %.10g instead of %.10g", l.What, l.Measured, l.Known)
}

// measure runs the case once.
func (c *Case) measure(ctx context.Context, setup Setup) (m *measured, err error) {
	s, err := setup.Start(ctx, c.Kind, c.Params,
		truth.Options{Ahead: c.Spec.Ahead, Times: c.times})
	if err != nil {
		return nil, err
	}
	m = &measured{}
	end := func() Machine { return Machine{} }
	if setup.Watch != nil {
		end = setup.Watch()
	}
	defer func() {
		tookNs := m.machine.TimeNs
		m.machine = end()
		m.machine.TimeNs = tookNs
		var stopped error
		m.server, stopped = s.Stop()
		err = errors.Join(err, stopped)
		if m.Result != nil {
			m.machine.LoadWaitNs = m.Generator.RunDelayNs
		}
		m.machine.Ahead = c.Spec.Ahead && m.server.Ahead
		m.machine.ServerWaitNs = m.server.RunDelayNs
		m.machine.ServerLateNs = int64(m.server.LateMeanNs * float64(m.server.Delayed))
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
	began := clock.Mono()
	m.Result, err = setup.Offer(ctx, spec)
	m.machine.TimeNs = clock.Mono() - began
	if err != nil || !c.useCPU {
		return m, err
	}
	after, err := s.CPU()
	m.cpu = after - before
	return m, err
}
