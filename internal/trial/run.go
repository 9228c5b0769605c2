package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"prony.example/internal/service"
	"prony.example/internal/suite"
	"prony.example/record"
)

// Experiment is the trials of a run, in order, and the origin of its records.
type Experiment struct {
	Trials []Spec
	Head   record.Run
	Prov   record.Provenance
	Pilots map[string]float64 // rates measured by pilots in requests/s, by target and scenario
	Done   []*record.Record   // records that a resumed run already has
	// Next chooses before each trial which of the remaining trials still run, and in which order;
	// nil: all of them.
	Next func(done []*record.Record, remaining []Spec) []Spec
	// More returns the trials of a further start when no trial remains; none: the run ends. done
	// includes the records of a resumed run. nil: there are no further starts.
	More    func(done []*record.Record) []Spec
	Reserve []Spec // all trials that More may return
	// Stop returns why the remaining trials need not run, by all records so far; nil: they run.
	Stop func(done []*record.Record) error
}

// Spec is a trial with all that it needs, resolved before it begins.
type Spec struct {
	suite.Trial
	Subject Subject
	Lacking error // why the trial cannot begin; nil: it can
	Ride    Ride

	With      suite.Variant // what is attached to the target, as the suite defines it
	Watched   suite.Observe
	Scene     suite.Scenario
	Warmup    suite.Warmup
	Loads     []suite.Load
	Sliced    time.Duration // time of each target in slices of a start; 0: the trial runs alone
	Origin    Origin        // why its start is run
	RunsOn    bool          // the target is not stopped while others are loaded
	Limits    suite.Limits
	Timeout   time.Duration // of a request
	Resolves  float64       // resolution of the suite; 0: the default
	Contract  string
	Suite     string
	SceneHash string
}

// Origin is the reason for a start, as record.SideBySide stores it; the zero value: it was planned.
type Origin struct {
	Repeats        bool
	Stage, Planned int
}

// Resolve returns what a suite defines for one of its trials. The caller adds what is launched.
func Resolve(s *suite.Suite, t suite.Trial) Spec {
	scene := s.SceneOf(t)
	return Spec{Trial: t, With: s.Variant(t.Variant), Watched: s.ObserveOf(t), Scene: scene,
		Warmup: s.WarmupOf(scene), Loads: s.OfTrial(t),
		Sliced: time.Duration(s.Slices), RunsOn: s.Freeze == suite.FreezeOff, Limits: s.Limits,
		Timeout: time.Duration(s.Timeout), Resolves: float64(s.Resolution),
		Contract: cmp.Or(scene.Contract, s.Contract), Suite: s.Name, SceneHash: s.SceneHash(scene)}
}

// Run runs all trials of an experiment in order and saves each record before the next trial starts.
// A trial that fails does not stop the others. Run returns an error if a record cannot be saved or
// ctx ends, and returns the records so far in any case.
func (l *Lab) Run(ctx context.Context, e Experiment) (records []*record.Record, err error) {
	if err := os.MkdirAll(filepath.Join(l.Dir, "logs"), 0o755); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	open := record.Create
	if len(e.Head.Resumed) > 0 {
		open = record.Resume
	}
	w, err := open(l.Dir, e.Head)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if e.Pilots == nil {
		e.Pilots = map[string]float64{}
	}
	if len(e.Done) > 0 {
		l.tell(Event{Step: "resumed", Before: len(e.Done)})
	}
	choose := e.Next
	if choose == nil {
		choose = func(_ []*record.Record, remaining []Spec) []Spec { return remaining }
	}
	remaining := e.unrecorded()
	sideBySide := l.Slicing.Open != nil
	for todo := l.orMore(e, nil, choose(nil, remaining)); len(todo) > 0; todo = l.orMore(e,
		records, choose(records, todo)) {
		if err := w.Look(); err != nil {
			return records, fmt.Errorf("run %s: stopped after %d of %d trials: %w", e.Head.ID,
				len(e.Done)+len(records), len(e.Trials), err)
		}
		var now []*record.Record
		if n := together(todo); n > 0 && sideBySide {
			now = l.startTrials(ctx, e, todo[:n])
		} else {
			now = append(now, l.one(ctx, e, todo[0]))
		}
		for _, rec := range now {
			rec.Resumed = len(e.Head.Resumed)
			if err := w.Append(rec); err != nil {
				return records, err
			}
			records = append(records, rec)
			l.tell(Event{Trial: rec.Trial, Step: "done", Record: rec}) // now that it is saved
		}
		if ctx.Err() != nil {
			return records, e.interrupted(len(records), len(todo)-len(now))
		}
		if err := noSpace(now); err != nil {
			return records, err
		}
		todo = todo[len(now):]
		if e.Stop != nil && len(todo) > 0 {
			if err := e.Stop(slices.Concat(e.Done, records)); err != nil {
				return records, err
			}
		}
	}
	return records, nil
}

// noSpace returns the error of a trial that ended because a disk was full; nil: there is none. All
// later trials would end in the same way.
func noSpace(records []*record.Record) error {
	for _, r := range records {
		if r.Failure != nil && r.Failure.Interrupted {
			return fmt.Errorf("trial %s: %s: %s; %s", r.Trial, r.Failure.Step, r.Failure.Error,
				r.Failure.Hint)
		}
	}
	return nil
}

// orMore returns the trials of a further start if no trial remains.
func (l *Lab) orMore(e Experiment, records []*record.Record, todo []Spec) []Spec {
	if len(todo) > 0 || e.More == nil {
		return todo
	}
	done := slices.Concat(e.Done, records)
	if todo = e.More(done); l.Slicing.Open == nil || len(todo) == 0 {
		return nil
	}
	l.tell(Event{Step: "more", Added: added(done, todo)})
	return todo
}

// added returns how many trials are still to run with a further start: those of all starts planned
// with it.
func added(done []*record.Record, todo []Spec) int {
	begun := map[int]bool{}
	for _, r := range done {
		if r.Scenario == todo[0].Scenario && r.SideBySide != nil && !r.SideBySide.Repeats {
			begun[r.Block] = true
		}
	}
	return len(todo) * max(1, todo[0].Origin.Planned-len(begun))
}

// interrupted returns the error of a run that its user ended after this many records.
func (e Experiment) interrupted(records, remaining int) error {
	if e.Next != nil { // their number is unknown
		return fmt.Errorf("run %s: interrupted after %d trials", e.Head.ID, records)
	}
	all := len(e.Done) + records
	return fmt.Errorf("run %s: interrupted after %d of %d trials", e.Head.ID, all,
		max(len(e.Trials), all+remaining))
}

// together returns how many of the first trials belong to one start; 0: the first one runs alone.
func together(todo []Spec) (n int) {
	for todo[0].Start != "" && n < len(todo) && todo[n].Start == todo[0].Start {
		n++
	}
	return n
}

// unrecorded returns the trials that have no record yet. It learns from the records of pilots.
func (e Experiment) unrecorded() []Spec {
	return slices.DeleteFunc(slices.Clone(e.Trials), func(t Spec) bool {
		r := e.recordOf(t)
		if r != nil {
			e.learn(t, r)
		}
		return r != nil
	})
}

// recordOf returns the record of a trial in a resumed run; nil: it has none.
func (e Experiment) recordOf(t Spec) *record.Record {
	i := slices.IndexFunc(e.Done, func(r *record.Record) bool { return r.Trial == t.ID })
	if i < 0 {
		return nil
	}
	return e.Done[i]
}

// learn stores the rate that a pilot measured.
func (e Experiment) learn(t Spec, rec *record.Record) {
	good := rec.Outcome == record.Measured && rec.Verdict.Grade != record.Invalid
	if t.Role == record.Pilot && good {
		e.Pilots[pilotOf(t)] = rec.Loads[0].ThroughputPerS
	}
}

// one runs a trial, or records why it cannot run.
func (l *Lab) one(ctx context.Context, e Experiment, t Spec) *record.Record {
	if t.Lacking == nil {
		rec := l.Trial(ctx, e, t)
		e.learn(t, rec)
		return rec
	}
	f := l.life(e, t)
	f.step = "build"
	f.fail(context.Background(), t.Lacking)
	f.end()
	return f.judged()
}

// pilotOf returns the key under which a pilot's rate is stored.
func pilotOf(t Spec) string { return t.Target + " " + t.Scenario }

// life begins the life of a trial.
func (l *Lab) life(e Experiment, t Spec) *life {
	if t.Subject.Built == nil { // the build failed or was not started
		t.Subject.Built = &service.Built{}
	}
	f := &life{lab: l, trial: t, pilots: e.Pilots, rec: newRecord(t, e.Prov)}
	if t.Ride.Agent != nil {
		f.rec.Provenance.Agents = []record.Agent{*t.Ride.Agent}
	}
	return f
}
