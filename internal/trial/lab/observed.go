package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"prony.example/internal/analysis/table"
	"prony.example/internal/base/clock"
	"prony.example/internal/base/runtimes"
	"prony.example/internal/observe/profile"
	"prony.example/internal/suite/agents"
	"prony.example/internal/telemetry"
	"prony.example/internal/trial"
	"prony.example/record"
)

// stack checks whether Grafana's stack is reachable, before anything is built for it.
func (r *run) stack(ctx context.Context) error {
	if r.wish.Telemetry.Stack == "" {
		return nil
	}
	location := strings.TrimPrefix(r.wish.Telemetry.Stack, "http://")
	if err := r.World.Reach(ctx, location); err != nil {
		return fmt.Errorf("cannot send telemetry to Grafana's stack, because nothing listens at "+
			"%s (%w); start the stack with prony stack up", location, err)
	}
	return nil
}

// measure runs the trials, with a collector if one is wanted.
func (r *run) measure(ctx context.Context) error {
	report, requested := r.Tell.Say, r.wish.Telemetry.Wanted
	observe := r.Tell.Trial
	if live := r.live(); live != nil {
		observe = live.Trial
	}
	lab := r.World.Lab(r.turn.journal, r.launchers, r.layout, r.dir, observe)
	lab.Tools = r.profilers(ctx)
	var err error
	if lab.Slicing.Copies, err = r.Builder(r.tools).Copies(); err != nil {
		return err
	}
	lab.Slicing.Note = r.turn.journal.Copy
	if requested || r.plan.Suite.NeedsHome() {
		home, ownCores, end, err := r.World.Home(ctx, r.Root, r.homeSpec(), report)
		if err != nil { // only trials that send telemetry fail
			report("the telemetry collector did not start: " + err.Error())
		} else {
			defer func() {
				if err := end(); err != nil {
					report("telemetry may be incomplete: " + err.Error())
				}
			}()
			lab.Home, lab.Own = home, ownCores
			if meter, ok := home.(trial.Meter); ok && requested {
				lab.Meter = meter
				defer tellResults(ctx, meter, r.dir)
			}
		}
	}
	most := time.Duration(r.plan.Suite.For)
	if most == 0 {
		return r.World.Measure(ctx, lab, r.experiment, r.cores, report)
	}
	b := newBudget(most, cmp.Or(float64(r.plan.Suite.Resolution), record.Resolution),
		func(s record.Schedule) error { return record.SaveSchedule(r.dir, s) })
	r.experiment.Next = b.next
	return errors.Join(r.World.Measure(ctx, lab, r.experiment, r.cores, report), b.err)
}

// live returns the reporter of ratios to the baseline during the run; nil if there is no baseline.
// If the services are the user's own, it also prints the ratios.
func (r *run) live() *liveAnswer {
	first, prints := r.plan.Baseline, false
	if project := r.wish.Own; project != nil && len(project.Services) > 1 {
		first, prints = cmp.Or(first, project.Services[0].Name), true
	}
	if first == "" {
		return nil
	}
	a := &liveAnswer{Observer: r.Tell, first: rowOf(r.plan.Trials, first), prints: prints,
		ratio: r.reported.ratio, starts: map[startKey]*liveStart{}}
	if r.plan.Suite.For == 0 {
		a.planned = r.plan.Suite.Blocks
	}
	for _, rec := range r.experiment.Done {
		if rec.SideBySide != nil {
			a.note(rec)
		}
	}
	return a
}

// homeSpec returns the settings of the collector. Without a core of its own, it runs on the last of
// the load's cores with a lower priority.
func (r *run) homeSpec() telemetry.LaunchSpec {
	cores := r.layout.Home
	if len(cores) == 0 {
		cores = r.layout.Load[len(r.layout.Load)-1:]
	}
	out := telemetry.LaunchSpec{Dir: filepath.Join(r.dir, telemetry.Dir),
		Forward: r.wish.Telemetry.Forward, ForwardOnly: r.wish.Telemetry.ForwardOnly,
		Cores: cores}
	if r.launchers.Gateway.IsValid() {
		out.Listen = r.launchers.Gateway.String()
	}
	return out
}

// tellResults sends a run's table after its telemetry, for dashboards. A run without trials has
// none.
func tellResults(ctx context.Context, meter trial.Meter, dir string) {
	head, records, _, err := record.Read(dir)
	if err != nil {
		return // the report shows the error
	}
	run := filepath.Base(dir)
	study := table.Analyze(records, table.Options{Baseline: head.Baseline})
	meter.Points(context.WithoutCancel(ctx), telemetry.Own{Trial: telemetry.Trial{Run: run},
		Series: trial.Results(study, run, clock.Wall().UnixNano())})
}

// profilers downloads the profilers that the plan's targets need, if a trial takes profiles. If a
// download fails, it reports that, and another profiler takes its place.
func (r *run) profilers(ctx context.Context) (tools profile.Tools) {
	if !slices.ContainsFunc(r.experiment.Trials, func(t trial.Spec) bool {
		return len(t.Watched.Profile) > 0
	}) {
		return tools
	}
	catalog, err := r.Agents()
	if err != nil {
		r.Tell.Say(err.Error())
		catalog = &agents.Catalog{}
	}
	for _, name := range []string{"async-profiler", "py-spy"} {
		if !slices.ContainsFunc(r.experiment.Trials, func(t trial.Spec) bool {
			runtime := runtimes.Of(t.Subject.Target.Runtime)
			return slices.Contains(runtime.Profilers, name)
		}) {
			continue
		}
		match, err := catalog.Pick(name)
		var got trial.Ride
		if err == nil {
			got, err = r.World.Fetch(ctx, r.Root, match, r.Tell.Say)
		}
		switch {
		case err != nil:
			r.Tell.Say(fmt.Sprintf("no %s: %v", name, err))
		case name == "py-spy":
			tools.PySpy = filepath.Join(got.Path, "bin", "py-spy")
		default:
			tools.AsyncProfiler = filepath.Join(got.Path, agents.Platform(), "libasyncProfiler.so")
		}
	}
	return tools
}
