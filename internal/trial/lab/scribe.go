package lab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/analysis/verdict"
	"prony.example/internal/analysis/wording"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/units"
	"prony.example/internal/launch/cgroup"
	"prony.example/internal/trial"
	"prony.example/record"
	"prony.example/record/metric"
	"prony.example/stats"
)

// scribe is an observer that also writes the progress of a run into its folder, for other processes
// such as a page in a browser. A run continues without it if writing fails.
type scribe struct {
	Observer
	mu           sync.Mutex
	opened       bool                // the folder exists
	log          *record.ProgressLog // nil: it cannot be written
	retained     []record.Progress   // until there is a folder
	ended, total int
	slowStart    bool // it was reported that slices would take too long
}

// Begin implements Observer.
func (s *scribe) Begin(b Begun) {
	s.Observer.Begin(b)
	least, most := b.Plan.Estimate()
	p := record.Progress{Kind: record.Begins, PID: os.Getpid(),
		ProcessStart: cgroup.Born(os.Getpid()),
		Suite:        b.Plan.Suite.Name, Repeat: b.Plan.Repeat(),
		EstimateMinNs: int64(least), EstimateMaxNs: int64(most)}
	if b.Plan.Suite.For == 0 {
		p.Planned = outline(b.Plan.Trials)
		s.total = len(p.Planned)
	}
	p.Time = clock.Wall()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retained = slices.Insert(s.retained, 0, p) // readers expect the plan first
}

// Say implements Observer.
func (s *scribe) Say(line string) {
	s.Observer.Say(line)
	s.write(record.Progress{Kind: record.Says, Text: line})
}

// Trial implements Observer.
func (s *scribe) Trial(e trial.Event) {
	s.Observer.Trial(e)
	if e.Remark != "" {
		s.write(record.Progress{Kind: record.Says, Text: e.Remark})
		return
	}
	p := record.Progress{Kind: record.Steps, Trial: e.Trial, Step: e.Step,
		ExpectedNs: int64(e.Expect), Round: e.Round, Rounds: e.Rounds}
	switch {
	case e.Before > 0:
		s.ended = e.Before
		return
	case e.Added > 0:
		s.total = max(s.total, s.ended+e.Added)
		return
	case e.Pulse != nil:
		p.Kind, p.PerS, p.Failed = record.Pulses, e.Pulse.PerS, e.Pulse.Failed
		p.P50Ns, p.P99Ns = e.Pulse.P50Ns, e.Pulse.P99Ns
	case e.Round > 0:
		p.Kind = record.Pulses
	case e.Record != nil:
		s.ended++
		p = record.Progress{Kind: record.TrialEnds, Trial: e.Trial, Text: Digest(e.Record),
			Grade: e.Record.Verdict.Grade, Ended: s.ended, Total: s.total,
			Row: table.RowName(e.Record.Target), Results: liveResults(e.Record)}
	}
	s.write(p)
	if e.Record != nil {
		s.slow(e.Record)
	}
}

// ratio writes an intermediate ratio of two targets.
func (s *scribe) ratio(r record.LiveRatio) {
	s.write(record.Progress{Kind: record.Ratios, Ratio: &r})
}

// slow reports once that slices would take too long, so that starts have only windows.
func (s *scribe) slow(r *record.Record) {
	x := r.SideBySide
	if s.slowStart || x == nil || x.Rounds > 0 || x.WindowNs == 0 {
		return
	}
	s.slowStart = true
	s.Say(fmt.Sprintf("targets are compared only by windows: a slice would take %s (limit %s)",
		units.Duration(float64(x.MeanNs())), units.Duration(float64(trial.LongestSlice))))
}

// open begins to write into a run's folder.
func (s *scribe) open(dir string) {
	record.StopReason(dir) // discards a stop request for an earlier run
	log, err := record.FollowUp(dir)
	if err != nil {
		s.Observer.Say(fmt.Sprintf("cannot write progress.ndjson, so prony serve cannot "+
			"follow this run: %v", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened, s.log = true, log
	for _, p := range s.retained {
		s.add(p)
	}
	s.retained = nil
}

func (s *scribe) write(p record.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Time = clock.Wall()
	s.add(p)
}

// add writes or stores a line. After a failed write, it writes no more. The caller holds the lock.
func (s *scribe) add(p record.Progress) {
	if !s.opened {
		s.retained = append(s.retained, p)
	} else if s.log != nil && s.log.Append(p) != nil {
		s.close()
	}
}

func (s *scribe) close() {
	if s.log != nil {
		_ = s.log.Close() // lines are already lost, and the run goes on
		s.log = nil
	}
}

// end writes the outcome of the run, and into its head the reason if a user stopped it.
func (s *scribe) end(ctx context.Context, dir string, err error) error {
	p := record.Progress{Kind: record.Ends, Outcome: record.Done}
	if err != nil {
		p.Outcome, p.Text = record.Broke, err.Error()
	}
	var noted error
	if ctx.Err() != nil {
		p.Outcome = record.Stopped
		if why := record.StopReason(dir); why != "" {
			p.Text = "stopped: " + why
			noted = record.Remark(dir, p.Text)
		}
	}
	s.write(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	return noted
}

// Digest summarizes a trial in a line: its name, the first numbers, the verdict and the reason.
func Digest(r *record.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-32s", r.Trial)
	if r.Outcome == record.Measured {
		fmt.Fprintf(&b, " %-19s", warmth(r.Warmup))
	}
	for _, l := range r.Loads {
		if l.Model == record.Closed {
			fmt.Fprintf(&b, " %s %s/s", l.Name, units.Rate(l.ThroughputPerS))
		} else {
			p99 := units.Absent
			if verdict.Withheld(r.Verdict, l.Name) == nil {
				p99 = units.Duration(float64(l.ResponseTime.P99Ns))
			}
			fmt.Fprintf(&b, " · %s p99 %s", l.Name, p99)
		}
	}
	if r.Failure != nil && r.Failure.Interrupted {
		fmt.Fprintf(&b, "  %s: %s", table.StoppedGrade, r.Failure.Step)
		return b.String()
	}
	fmt.Fprintf(&b, "  %s", r.Verdict.Grade)
	counted := slices.DeleteFunc(slices.Clone(r.Verdict.Findings), func(f record.Finding) bool {
		return f.Grade == record.Valid
	})
	// The first of the findings that determine the grade.
	for _, f := range counted {
		if f.Grade == r.Verdict.Grade {
			subject := f.Rule
			if f.Load != "" {
				subject = f.Load + ": " + f.Rule
			}
			fmt.Fprintf(&b, ": %s: %s", subject, wording.Finding(f).Observed)
			break
		}
	}
	if n := len(counted); n > 1 {
		fmt.Fprintf(&b, " and %d more", n-1)
	}
	return b.String()
}

// liveResults returns the numbers of a trial that Digest has, and the capacities.
func liveResults(r *record.Record) (all []record.LiveResult) {
	if r.Outcome != record.Measured {
		return nil
	}
	for i := range r.Loads {
		l := &r.Loads[i]
		x := record.LiveResult{Load: l.Name, Metric: metric.Throughput, Unit: units.PerS,
			Value: l.ThroughputPerS}
		switch {
		case l.Search != nil:
			x.Metric, x.Value = metric.Capacity, l.Search.RatePerS
			x.Objective, x.Met = l.Search.SLO, l.Search.MetPerS > 0
		case l.Model == record.Open:
			x.Metric, x.Unit, x.Value = "p99", units.Ns, float64(l.ResponseTime.P99Ns)
		}
		if x.Metric == "p99" && verdict.Withheld(r.Verdict, l.Name) != nil {
			x.Value = 0
		}
		all = append(all, x)
	}
	return all
}

// warmth summarizes a warm-up.
func warmth(w record.Warmup) string {
	position := time.Duration(w.SteadyAtNs).Round(100 * time.Millisecond).Seconds()
	switch {
	case !w.Steady || w.Kind == stats.Unsteady:
		return "never steady,"
	case w.Kind == stats.Slowed:
		return "got slower,"
	case w.SteadyAtNs == 0:
		return "steady at once,"
	}
	return fmt.Sprintf("steady after %.1f s,", position)
}
