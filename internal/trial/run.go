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
	Head     result.Run
	Prov     result.Provenance
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
	cause, broken := e.Broken[t.Target]
	if !broken {
		return l.Trial(ctx, e.Plan, t, e.Subjects[t.Target], e.Prov)
	}
	s := e.Subjects[t.Target]
	s.Built = &service.Built{}
	f := &life{lab: l, plan: e.Plan, trial: t, subject: s, step: "build",
		rec: newRecord(e.Plan, t, s, e.Prov)}
	f.fail(context.Background(), cause)
	f.end()
	return f.judged()
}
