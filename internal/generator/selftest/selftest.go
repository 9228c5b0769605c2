// Package selftest tests whether a generator measures what is true: it offers loads to servers
// whose answers are known by arithmetic (internal/generator/truth) and compares each number that
// the generator reports with the one that it must report.
//
//	Case ─► start its server ─► Offer its load ─► Lines: known, measured, limit ─► Outcome
//
// Known values come from formulas. For queues they come from Lindley's recursion over the times at
// which requests really came and the service times that the server really took. So a sample is
// compared with itself, not with the mean of all possible samples, and a few seconds are enough.
//
// The machine can only delay answers. How much it can have delayed them is known without the
// generator's numbers (Machine). A number beyond that is wrong; one within is disturbed, and its
// case is run again. The rule is in judge.go.
//
// Non-goals: it does not judge services, and knows no engine: whatever can Offer a load can be
// tested, so its own tests show that faulty generators are found.
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

// Offer offers a load, as trial.Driver does.
type Offer func(ctx context.Context, s load.Spec) (*load.Result, error)

// Start starts a server of a kind. It has received no request yet: their numbers count. The server
// runs ahead of other processes only if the load may, too.
type Start func(ctx context.Context, kind string, p truth.Params, o truth.Options) (Server, error)

// Server is a running truth server.
type Server interface {
	Addr() netip.AddrPort
	// CPU is the processor time that the server has used so far.
	CPU() (time.Duration, error)
	// Stop ends the server and returns what it says of itself.
	Stop() (truth.Report, error)
}

// Watch begins to watch the cores in use; end returns what the machine did meanwhile.
type Watch func() (end func() Machine)

// Setup is what cases need.
type Setup struct {
	Offer  Offer
	Start  Start
	Watch  Watch        // nil: nothing is known of the machine but run delays
	Report func(string) // receives which case runs
}

// Case is one experiment with a known result.
type Case struct {
	Name   string
	Kind   string // of the server
	Params truth.Params
	Spec   load.Spec // what is offered, without the address
	Known  string    // the known result, in words and formulas

	useCPU  bool
	times   bool                 // it needs those of the server's requests
	slack   time.Duration        // verdicts only: a server's delay per request that disturbs
	isExtra func() (stop func()) // what is provoked meanwhile
	lines   func(*Case, *measured) []Line
}

// measured is what was recorded of a case.
type measured struct {
	*load.Result
	server  truth.Report
	cpu     time.Duration // that the server used during the load
	machine Machine
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
	State    string  `json:"state"`
	// Lowest and Highest are what the number may be if the machine did all that it can have done.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// KeptShare is the share of the arrivals that were compared, because those near stalls of the
	// machine were left out on both sides; 0: all were compared.
	KeptShare float64 `json:"keptShare,omitempty"`
}

// line compares. A value that is no number is not OK.
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
	// The slack is for the last bits of sums: a count that must be exact is still exact.
	l.OK = math.Abs(l.OffBy) <= l.Limit+1e-12
}

// States of a line and of an outcome.
const (
	OK        = "ok"
	Wrong     = "wrong"     // a number is further off than the machine can explain
	Disturbed = "disturbed" // a number is off, in each attempt, and the machine can explain it
)

// Outcome is the result of a case.
type Outcome struct {
	Case      string  `json:"case"`
	Known     string  `json:"known"`
	State     string  `json:"state"`
	Disturbed string  `json:"disturbed,omitempty"` // what disturbed it, with figures
	Attempts  int     `json:"attempts"`
	TookNs    int64   `json:"tookNs"`
	Lines     []Line  `json:"lines"`
	Machine   Machine `json:"machine"` // during the last attempt
}

// attempts is how often a case is tried that the machine disturbs. A number that is off beyond what
// the machine explains must be so in two attempts: a fault of the generator remains, and what no
// source has recorded passes.
const attempts = 3

// unexplained disturbs a case that was off once, and not again.
const unexplained = "a number was wrong in one attempt, without a recorded reason, but not in " +
	"the next attempt"

// Run runs the cases one after another. An error means that one could not be run; the outcomes are
// of those before it.
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

// try runs a case until it has an end.
func (s Setup) try(ctx context.Context, c *Case) (Outcome, error) {
	var wrong *Outcome // the first that was
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

// wrongLine says which number is off, and by how much.
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
