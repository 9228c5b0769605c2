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
	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/internal/suite/adhoc"
	"prony.example/record"
	"prony.example/stats"
)

// Comparison is a request to compare services of the user's own.
type Comparison struct {
	Sources  []adhoc.Source // the first one is the baseline
	Requests []suite.Request
	Options  adhoc.Options   // CPUs: 0 is half of all cores
	Change   suite.Override  // changes to the suite that Options make
	Memory   strictyaml.Size // of a service, in bytes; 0: a share of half of the machine's
	Ready    string          // path that answers 200 once a service serves, or - for a connection
	Startup  time.Duration   // maximum startup time of a service
	// StatusOnly checks only the status of responses. Again measures the first service a second
	// time in each block, to show the noise.
	StatusOnly, Again bool
	By                string // primary metric: one of compare.Decisive
	Out               string // folder of the run; empty: a new one
	Resume            string // folder of an interrupted run that goes on; empty: a new run
	Command           []string
	Version           string
}

// Answer is the result of a comparison.
type Answer struct {
	Dir string    // folder of the run; empty: it ended before it had one
	Run *runs.Run // contents of the folder; nil: unreadable
	// Study is the run's analysis, for its report.
	Study table.Study
	First string // name of the first service
	// Against are the comparisons of all other services with the first, in order; none if there is
	// only one service, or if the run failed.
	Against []Against
	// Refused is why the results do not allow a comparison; nil: they do.
	Refused error
	// Enough is a sentence with the number of blocks that would find a difference of 5 %, if none
	// was found; otherwise empty.
	Enough string
}

// Against is the comparison of a service with the first.
type Against struct {
	Name string
	compare.Comparison
}

// dearer is the difference that most users want to detect: a cost that is 5 % higher.
const dearer = 0.05

// Versus compares services: it clones and builds revisions, checks the responses of each service,
// measures all of them, and compares the others with the first. No other lab has the machine
// between these steps. Failed or INVALID trials are not errors. If the run was ended early, the
// answer has what was measured.
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

// ended reports whether a run that was ended early has enough starts for an answer.
func ended(s table.Study) bool {
	return slices.ContainsFunc(s.Scenarios, func(sc *table.Scenario) bool {
		return sc.Starts != nil && sc.Starts.Count-len(sc.Starts.Lost) >= stats.LeastStarts
	})
}

// PlanVersus starts and checks each service, and returns the plan of the comparison.
func (l *Lab) PlanVersus(ctx context.Context, c Comparison) (plan *suite.Plan, err error) {
	err = l.ready(ctx, c, func(l *Lab, w Wish) (err error) {
		plan, err = l.Plan(w)
		return err
	})
	return plan, err
}

// ready converts a comparison to a wish and calls do with a lab that has the machine. It reports
// contradictions before it starts anything.
func (l *Lab) ready(ctx context.Context, c Comparison, do func(*Lab, Wish) error) error {
	if err := errors.Join(c.adopt(), c.fill()); err != nil {
		return err
	}
	services, err := l.Services(ctx, c.Sources, c.Ready, c.Out, c.Startup)
	if err != nil {
		return err
	}
	ownLab, leave, err := l.Take(ctx, services, c.Out)
	if err != nil {
		return err
	}
	ports := Ports{}
	s, err := ownLab.suiteOf(ctx, c, services, ports)
	if err == nil {
		w := Wish{Own: &Own{Suite: s, Services: services,
			Results: filepath.Join(l.Root, record.Kept, adhoc.Name), Decides: c.By}, Host: "any",
			Version: c.Version, Command: c.Command, Out: c.Out, Resume: c.Resume}
		if err = ownLab.CheckPorts(w, ports); err == nil {
			err = do(ownLab, w)
		}
	}
	return errors.Join(err, leave())
}

// adopt takes the memory limit of the run that goes on, because free memory may be different now.
func (c *Comparison) adopt() error {
	if c.Resume == "" || c.Memory != 0 {
		return nil
	}
	_, records, _, err := record.Read(c.Resume)
	if err == nil && len(records) > 0 {
		c.Memory = strictyaml.Size(records[0].Limits.MemoryBytes)
	}
	return err
}

// fill sets the options that depend on the machine and the sources, and returns an error for
// options that make no suite.
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
		o.MemoryBytes = usualMemory(host.TotalBytes(), host.AvailableBytes()) /
			int64(len(c.Sources)+1)
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

// usualMemory returns the memory for all services: half of the machine's, so that two runs of one
// command line have the same limits. It is halved until it is at most 3/4 of the free memory.
func usualMemory(total, available int64) int64 {
	out := total / 2
	for out > available/4*3 && out > 1 {
		out /= 2
	}
	return out
}

// unseen is a Sight that does nothing.
func unseen(context.Context, Seen) error { return nil }

// suiteOf checks the services, and makes the suite that expects what their responses have in
// common.
func (l *Lab) suiteOf(ctx context.Context, c Comparison, services Catalog, ports Ports) (
	*suite.Suite, error) {
	distinct := services
	if c.Again {
		distinct = services[:len(services)-1]
	}
	meeting := Meeting{Of: distinct, Startup: c.Startup, Requests: c.Requests,
		Speaks: c.Options.Speaks, StatusOnly: c.StatusOnly, Ports: ports,
		Connections: c.Options.Connections, CPUs: c.Options.CPUs}
	retained, err := l.Meet(ctx, meeting)
	if err != nil {
		return nil, err
	}
	if c.Again && len(ports[services[0].Name]) > 0 {
		// Only a second start shows whether a further port is fixed or depends on $PORT.
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

// effects returns the differences that a comparison should detect, the largest first. Slices detect
// smaller ones.
func effects(c compare.Comparison) []float64 {
	if c.Repeat() == "start" {
		return []float64{dearer, 0.01}
	}
	return []float64{dearer}
}

// kind returns how a service is started. Limits of different kinds differ: the answer then has a
// warning, because the user named both.
func kind(s *service.Service) string {
	if s.Made != nil && s.Made.Attached.IsValid() {
		return "attached"
	}
	return Contained(s)
}

// compare compares each other service with the first, including the first service's A/A control.
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
			Unlike:  kind(s) != kind(services[0]),
			Refused: "prony compare --allow-mismatch compares the rows of this run with a warning"})
		if err != nil {
			return err
		}
		a.Against = append(a.Against, Against{s.Name, match})
		if noise := c.Again && i == len(services)-2; !noise && a.Enough == "" {
			a.Enough = match.Enough(effects(match)...)
		}
	}
	if last := len(a.Against) - 1; c.Again && last > 0 {
		for i := range a.Against[:last] {
			a.Against[i].DoubtBy(a.Against[last].Comparison, a.Against[last].Name)
		}
	}
	return nil
}
