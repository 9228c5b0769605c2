package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"prony/internal/result"
	"prony/internal/service"
	"prony/internal/suite"
)

// Experiment is a plan with everything that it needs.
type Experiment struct {
	Plan     *suite.Plan
	Subjects map[string]Subject // by target
	Broken   map[string]error   // targets that could not be built, with the cause
	Twins    map[string]Subject // targets as another of their builds, by target+build
	Images   map[string]Image   // what containers are started from, by target, or target+build
	Rides    map[string]Ride    // what was fetched for variants, by name
	Head     result.Run
	Prov     result.Provenance
	Pilots   map[string]float64 // what pilots delivered a second, by target and scenario
}

// Image is what a target's containers are started from, or why there is none.
type Image struct {
	Built   *service.Built
	Lacking error
}

// Run runs all trials of an experiment in order and saves each record before the next trial starts.
// A trial that fails does not stop the others; only a record that cannot be saved and an interrupt
// do. The records so far are returned in any case.
func (l *Lab) Run(ctx context.Context, e Experiment) (records []*result.Record, err error) {
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	w, err := result.Create(l.Dir, e.Head)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if e.Pilots == nil {
		e.Pilots = map[string]float64{}
	}
	for left := e.Plan.Trials; len(left) > 0; left = e.Plan.Trials[len(records):] {
		for _, rec := range l.next(ctx, e, left) {
			rec.Run = e.Head.ID
			if err := w.Append(rec); err != nil {
				return records, err
			}
			records = append(records, rec)
		}
		if ctx.Err() != nil {
			return records, fmt.Errorf("run %s: interrupted after %d of %d trials",
				e.Head.ID, len(records), len(e.Plan.Trials))
		}
	}
	return records, nil
}

// next runs the first of the trials that are left, or the first two where they are a duet.
func (l *Lab) next(ctx context.Context, e Experiment, left []suite.Trial) []*result.Record {
	if left[0].Side != "" {
		return l.duet(ctx, e, [2]suite.Trial(left))
	}
	return []*result.Record{l.one(ctx, e, left[0])}
}

// one runs a trial, or records why there is nothing to run.
func (l *Lab) one(ctx context.Context, e Experiment, t suite.Trial) *result.Record {
	cause := e.cause(t)
	if cause == nil {
		rec := l.Trial(ctx, e, t)
		good := rec.Outcome == result.Measured && rec.Verdict.Grade != result.Invalid
		if t.Role == suite.Pilot && good {
			e.Pilots[pilotOf(t)] = rec.Loads[0].ThroughputPerS
		}
		return rec
	}
	f := l.life(e, t)
	f.step = "build"
	f.fail(context.Background(), cause)
	f.end()
	return f.judged()
}

// pilotOf names what a pilot stands for.
func pilotOf(t suite.Trial) string { return t.Target + " " + t.Scenario }

// cause is why there is nothing to run.
func (e *Experiment) cause(t suite.Trial) error {
	name := e.buildOf(t)
	if t.Launcher != "" {
		if err := e.Images[name].Lacking; err != nil {
			return err
		}
	} else if err := e.Broken[name]; err != nil {
		return err
	}
	return e.Rides[t.Variant].Lacking
}

// buildOf names what a trial launches: its target, or target+build where its variant asks for
// another one.
func (e *Experiment) buildOf(t suite.Trial) string {
	if build := e.Plan.Suite.Variant(t.Variant).Build; build != "" {
		return t.Target + "+" + build
	}
	return t.Target
}

// subject is what a trial launches: its target, or the build of it that the variant asks for.
func (e *Experiment) subject(t suite.Trial) Subject {
	s := e.Subjects[t.Target]
	if twin, ok := e.Twins[e.buildOf(t)]; ok {
		s = twin
	}
	if t.Launcher != "" {
		s.Built = e.Images[e.buildOf(t)].Built
	}
	if s.Built == nil {
		s.Built = &service.Built{}
	}
	return s
}

// life begins that of a trial.
func (l *Lab) life(e Experiment, t suite.Trial) *life {
	s := e.subject(t)
	f := &life{lab: l, plan: e.Plan, trial: t, subject: s, pilots: e.Pilots,
		ride: e.Rides[t.Variant], watched: e.Plan.Suite.ObserveOf(t),
		rec: newRecord(e.Plan, t, s, e.Prov)}
	if f.ride.Agent != nil {
		f.rec.Provenance.Agents = []result.Agent{*f.ride.Agent}
	}
	return f
}
