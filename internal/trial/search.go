package trial

import (
	"context"
	"fmt"
	"math"
	"time"

	"prony.example/internal/generator/capacity"
	"prony.example/internal/observe/stallfree"
	"prony.example/internal/suite"
	"prony.example/internal/telemetry"
	"prony.example/load"
	"prony.example/record"
	"prony.example/record/slo"
)

// Settings of a search within a trial. Its uncertainty follows from the scatter between trials, so
// many rough searches are better than one precise search.
const (
	searchConfidence = 0.95
	searchPrecision  = 0.02
)

// search offers open steps until it finds the highest rate that meets the load's objectives. It
// stores the deciding step, because this step describes the service at that rate and the verdict's
// rules apply to it.
func (f *life) search(ctx context.Context, l suite.Load) error {
	objectives, err := slo.Parse(l.SLO)
	if err != nil {
		panic("trial: the objectives of a checked suite are invalid: " + err.Error())
	}
	watcher := f.stallWatcher(&load.Spec{Model: record.Open, Part: load.Part{Of: l.Generators}})
	defer watcher.Close()
	var steps []*offered // of all kinds, in the order of the search
	stop := f.profile(ctx, l.Name)
	match, err := capacity.Find(ctx, capacity.Options{
		Offer: func(ctx context.Context, step capacity.Step) (*record.Load, error) {
			spec := step.Load(f.specOf(l))
			spec.Name = l.Name + " " + step.Phase
			// The collector receives only the deciding step, when it is known.
			ofStep := watcher
			if spec.Model != record.Open {
				ofStep = stallfree.Without("")
			}
			log := f.logWindow(ofStep, &spec, slo.Quantiles(objectives)...)
			o, err := f.window(ctx, spec, func(string, string, int64) {})
			if err != nil {
				return nil, err
			}
			log.keep(o)
			steps = append(steps, o)
			return &o.load, nil
		},
		SLO: objectives, Seed: f.trial.Seed, Window: time.Duration(l.Measure),
		Lead: time.Duration(l.Lead), Budget: time.Duration(l.Budget),
		Confidence: searchConfidence, Precision: searchPrecision,
		CeilingPerS: f.lab.ceiling(protocolOf(f.trial.Scene), f.trial.Scene.Streams,
			l.Connections, l.Generators) / float64(f.scene.Steps()), // a search counts flows
	})
	stop()
	if err != nil {
		return fmt.Errorf("search the capacity in load %s: %w", l.Name, err)
	}
	index := decided(match)
	if index < 0 {
		return fmt.Errorf("search the capacity in load %s: no step had a valid result: "+
			"%s", l.Name, match.Reason)
	}
	o := steps[index]
	o.load.Name, o.load.Search = l.Name, searchOf(l, match)
	f.markAt(telemetry.Open, l.Name, o.openedWall)
	f.markAt(telemetry.Close, l.Name, o.closedWall)
	f.keep(o)
	return nil
}

// decided returns the index of the step that describes the service at its capacity: among the steps
// that met the objectives, the nearest to the capacity; otherwise the last step that missed them;
// -1 if there is none.
func decided(f *capacity.Found) int {
	pos, best := -1, math.Inf(1)
	want := f.RatePerS
	if !f.Found {
		want = f.MetPerS
	}
	for i, t := range f.Steps {
		switch {
		case t.RatePerS == 0:
		case t.Outcome == capacity.Met:
			if deviation := math.Abs(t.RatePerS - want); deviation < best {
				pos, best = i, deviation
			}
		case math.IsInf(best, 1) && t.Outcome == capacity.Missed:
			pos = i
		}
	}
	return pos
}

// searchOf converts a search for the record.
func searchOf(l suite.Load, f *capacity.Found) *record.Search {
	out := &record.Search{SLO: f.SLO, RatePerS: f.RatePerS, LoPerS: f.LoPerS, HiPerS: f.HiPerS,
		MetPerS: f.MetPerS, Reason: f.Reason, Warnings: f.Warnings, BudgetNs: int64(l.Budget),
		ElapsedNs: f.ElapsedNs}
	for _, t := range f.Steps {
		if t.RatePerS > 0 {
			out.Steps = append(out.Steps, record.SearchStep{Phase: t.Phase, RatePerS: t.RatePerS,
				WindowNs: int64(t.Window), P99Ns: t.P99Ns, Outcome: t.Outcome, Reason: t.Reason})
		}
	}
	return out
}
