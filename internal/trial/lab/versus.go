package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/cli"
	"prony.example/internal/base/strictyaml"
	"prony.example/internal/observe/host"
	"prony.example/internal/report/compare"
	"prony.example/internal/report/runs"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/record"
	"prony.example/stats"
)

// Comparison is what somebody wants to know of services of their own.
type Comparison struct {
	Sources  []adhoc.Source // the others are compared with the first
	Requests []suite.Request
	Options  adhoc.Options   // CPUs are half of all cores where they are 0
	Change   suite.Override  // of the suite that the options make
	Memory   strictyaml.Size // of a service, in bytes; 0: half of what is available
	Ready    string          // path that answers 200 once a service serves, or - for a connection
	Startup  time.Duration   // how long a service may take to come up
	// StatusOnly holds answers by their status alone, and Again measures the first service a second
	// time in each block, to see the noise.
	StatusOnly, Again bool
	By                string // what decides: one of compare.Decisive
	Out               string // the run's folder; empty: a new one
	Command           []string
	Version           string
}

// Answer is what a comparison came to.
type Answer struct {
	Dir string    // of the run; empty: it ended before there was one
	Run *runs.Run // what is in it; nil: it cannot be read
	// Study is the run's analysis, for its report.
	Study table.Study
	First string // what the first service is called
	// Against are the comparisons of all other services with the first, in order; none where there
	// is no other service, or the run did not end well.
	Against []Against
	// Refused is why services cannot be compared by what was measured; nil: they were.
	Refused error
	// Enough says how many blocks would find a difference of 5 %, where none was found; else empty.
	Enough string
}

// Against is a service compared with the first.
type Against struct {
	Name string
	compare.Comparison
}

// dearer is the difference that most ask for: a change that makes a service dearer by 5 %.
const dearer = 0.05

// Versus compares services: it clones and builds revisions, asks each service what it answers,
// measures all of them, and compares the others with the first. No other lab has the machine
// between these steps. The error says nothing about what trials came to. If the run was ended
// early, the answer has what was measured.
func (l *Lab) Versus(ctx context.Context, c Comparison) (a Answer, err error) {
	err = l.ready(ctx, c, func(l *Lab, w Wish) error {
		var ran error
		a.Dir, ran = l.Run(ctx, w)
		if a.Dir == "" {
			return ran
		}
		var read error
		if a.Run, read = runs.Read(a.Dir); read != nil {
			return cmp.Or(ran, read)
		}
		o := a.Run.Options()
		o.Report = filepath.Join(a.Dir, "report.html")
		a.Study = a.Run.Study(o)
		if (ran == nil || ctx.Err() != nil && ended(a.Study)) && len(w.Own.Services) > 1 {
			a.Refused = a.compare(c, w.Own.Services)
		}
		return ran
	})
	return a, err
}

// ended tells whether a run that was ended early has starts enough for an answer.
func ended(s table.Study) bool {
	return slices.ContainsFunc(s.Scenarios, func(sc *table.Scenario) bool {
		return sc.Starts != nil && sc.Starts.Count-len(sc.Starts.Lost) >= stats.LeastStarts
	})
}

// PlanVersus starts and asks each service, and gives what would be measured.
func (l *Lab) PlanVersus(ctx context.Context, c Comparison) (plan *suite.Plan, err error) {
	err = l.ready(ctx, c, func(l *Lab, w Wish) (err error) {
		plan, err = l.Plan(w)
		return err
	})
	return plan, err
}

// ready makes the wish that a comparison is, and has it fulfilled by a lab that has the machine.
// What contradicts is found before anything is started.
func (l *Lab) ready(ctx context.Context, c Comparison, do func(*Lab, Wish) error) error {
	if err := c.fill(); err != nil {
		return err
	}
	services, err := l.Services(ctx, c.Sources, c.Ready, c.Startup)
	if err != nil {
		return err
	}
	ownLab, leave, err := l.Take(ctx)
	if err != nil {
		return err
	}
	ports := Ports{}
	s, err := ownLab.suiteOf(ctx, c, services, ports)
	if err == nil {
		w := Wish{Own: &Own{Suite: s, Services: services,
			Results: filepath.Join(l.Root, record.Kept, adhoc.Name)}, Host: "any",
			Version: c.Version, Command: c.Command, Out: c.Out}
		if err = ownLab.CheckPorts(w, ports); err == nil {
			err = do(ownLab, w)
		}
	}
	return errors.Join(err, leave())
}

// fill fills in what the machine and the sources decide, and refuses what makes no suite.
func (c *Comparison) fill() error {
	cores, err := host.Cores()
	if err != nil {
		return err
	}
	o := &c.Options
	o.Interleave = c.Change.Interleave
	if o.CPUs == 0 {
		o.CPUs = float64(max(1, len(cores)/2))
	}
	if o.MemoryBytes = int64(c.Memory); c.Memory == 0 {
		o.MemoryBytes = host.AvailableBytes() / 2 / int64(len(c.Sources)+1)
	}
	for _, s := range c.Sources {
		o.Stay = o.Stay || s.Stays()
	}
	if o.Speaks.Protocol, err = adhoc.Protocol(c.Sources, o.Speaks.Protocol); err != nil {
		return cli.Usage(err)
	}
	if c.Again {
		first := c.Sources[0]
		first.Again = true
		c.Sources = append(c.Sources[:len(c.Sources):len(c.Sources)], first)
	}
	requested := make([]adhoc.Held, len(c.Requests))
	for i, r := range c.Requests {
		requested[i].Request = r
	}
	_, err = adhoc.Suite(requested, *o)
	return cli.Usage(err)
}

// unseen is a Sight that looks at nothing.
func unseen(context.Context, Seen) error { return nil }

// suiteOf asks the services, and makes the suite that holds all of them against what their answers
// have in common.
func (l *Lab) suiteOf(ctx context.Context, c Comparison, services Catalog, ports Ports) (
	*suite.Suite, error) {
	distinct := services
	if c.Again {
		distinct = services[:len(services)-1]
	}
	meeting := Meeting{Of: distinct, Startup: c.Startup, Requests: c.Requests,
		Speaks: c.Options.Speaks, StatusOnly: c.StatusOnly, Ports: ports}
	retained, err := l.Meet(ctx, meeting)
	if err != nil {
		return nil, err
	}
	if c.Again && len(ports[services[0].Name]) > 0 {
		// Whether a further port is fixed or follows from $PORT, only a second start shows.
		meeting.Of = services[len(services)-1:]
		speaks := c.Options.Speaks
		speaks.Requests = c.Requests
		if err := l.meetAll(ctx, meeting, speechOf(speaks), unseen); err != nil {
			return nil, err
		}
	}
	if len(services) > 1 {
		c.Options.Baseline = services[0].Name
	}
	s, err := adhoc.Suite(retained, c.Options)
	if err == nil {
		err = s.Override(c.Change)
	}
	return s, cli.Usage(err)
}

// effects are the differences that a comparison is asked about, the largest first. Slices detect
// smaller ones.
func effects(c compare.Comparison) []float64 {
	if c.Repeat() == "start" {
		return []float64{dearer, 0.01}
	}
	return []float64{dearer}
}

// compare compares each other service with the first, the first's second self among them.
func (a *Answer) compare(c Comparison, services Catalog) error {
	if len(a.Run.Records) == 0 {
		return fmt.Errorf("read run %s: the run has no records; it may have ended before its "+
			"first trial",
			a.Dir)
	}
	side := a.Run.Side("")
	side.Dir, side.Study = a.Dir, &a.Study
	a.First = services[0].Name
	measures := compare.DecidedBy(c.By)
	for i, s := range services[1:] {
		from, to := side, side
		from.Target, to.Target = services[0].Name, s.Name
		match, err := compare.Compare(from, to, compare.Options{Metrics: measures, First: measures,
			Refused: "prony compare --allow-mismatch compares the rows of this run with a warning"})
		if err != nil {
			return err
		}
		a.Against = append(a.Against, Against{s.Name, match})
		if noise := c.Again && i == len(services)-2; !noise && a.Enough == "" {
			a.Enough = match.Enough(effects(match)...)
		}
	}
	return nil
}
