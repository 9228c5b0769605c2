package trial_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/suite"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/record"
	"prony.example/record/slo"
)

// mm1 responds as an M/M/1 queue that serves mu requests a second: p99 is ln(100)/(mu − rate). A
// window's value is off by up to 2 %, evenly on both sides, so that half of the steps at the
// capacity meet the objective.
func mm1(mu float64) offering {
	steps := 0
	return func(w *world, ctx context.Context, s load.Spec) (*load.Result, error) {
		res, err := w.steadyLoad(ctx, s)
		if err != nil || trialtest.IsWarmUp(s) {
			return res, err
		}
		steps++
		perS, mean := mu, float64(s.Connections)/mu
		if s.Model == record.Open {
			perS = s.Schedule.Rate.Max()
			off := 0.02 * math.Sin(float64(steps)*2.4)
			mean = (1 + off) / (mu - perS)
		}
		l := &res.Load
		l.DrainNs, l.ThroughputPerS = int64(s.Drain), perS
		if s.Model == record.Open && perS >= 0.999*mu {
			l.BacklogPerS, l.ThroughputPerS = max(perS-mu, 0.05*perS), mu
			mean = s.Window.Seconds() / 2
		}
		n := int64(l.ThroughputPerS * s.Window.Seconds())
		l.Done, l.Answered = n, n
		l.Scheduled, l.Sent = int64(perS*s.Window.Seconds()), int64(perS*s.Window.Seconds())
		at := func(q float64) int64 { return int64(-math.Log(1-q) * mean * 1e9) }
		d := record.Dist{Count: l.Scheduled, MinNs: 1, MeanNs: mean * 1e9, P50Ns: at(0.5),
			P90Ns: at(0.9), P99Ns: at(0.99), P999Ns: at(0.999), MaxNs: at(0.9999)}
		l.ResponseTime, l.ServiceTime, l.FirstByte = d, d, d
		l.InFlightMean = l.ThroughputPerS * mean
		return res, nil
	}
}

// searching is an experiment whose only load is a search.
func (w *world) searching(objectives string) experiment {
	e := w.experiment("a")
	e.Plan.Suite.Loads = []suite.Load{{Name: "users", Model: record.Capacity, Connections: 8,
		SLO: objectives, Lead: suite.Duration(200 * time.Millisecond),
		Measure: suite.Duration(2 * time.Second), Drain: suite.Duration(time.Second),
		Budget: suite.Duration(2 * time.Minute)}}
	return e
}

func TestSearchFindsTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const mu = 1000.0
		truth := mu - math.Log(100)/0.05 // 907.9/s
		w := newWorld(t)
		e := w.searching("p99<50ms")
		serve := mm1(mu)
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			return serve(w, ctx, s)
		}
		began := time.Now()
		records, err := w.run(context.Background(), e)
		if err != nil || records[0].Outcome != record.Measured {
			t.Fatal(err, records[0].Failure)
		}
		_, most := e.Plan.Estimate()
		if took := time.Since(began); took > most+10*time.Second {
			t.Errorf("the trial took %v, planned were %v", took, most)
		}
		if n := len(records[0].Loads); n != 1 {
			t.Fatalf("%d loads are recorded, want the step that decided", n)
		}
		l := records[0].Loads[0]
		s := l.Search
		if s == nil || s.Reason != "" || s.LoPerS > truth || truth > s.HiPerS ||
			math.Abs(s.RatePerS/truth-1) > 0.02 {
			t.Fatalf("found %+v, want an interval about %.1f/s", s, truth)
		}
		if l.Name != "users" || l.Model != record.Open || math.Abs(l.RatePerS/s.RatePerS-1) > 0.05 {
			t.Errorf("%s, %s at %.1f/s decided, want an open step near %.1f/s", l.Name, l.Model,
				l.RatePerS, s.RatePerS)
		}
		objectives, _ := slo.Parse(s.SLO)
		if out := slo.CheckAll(objectives, &l); len(out) != 1 || !out[0].Met {
			t.Errorf("the step that decided did not hold: %+v", out)
		}
	})
}

// A search that always meets the objectives has a lower bound.
func TestSearchReachesItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		e := w.searching("p99<10s")
		w.offer = w.steadyLoad // it keeps up with any rate
		records, err := w.run(context.Background(), e)
		if err != nil || records[0].Outcome != record.Measured {
			t.Fatal(err, records[0].Failure)
		}
		s := records[0].Loads[0].Search
		if !strings.Contains(s.Reason, "met at every rate") || s.RatePerS != 0 || s.MetPerS <= 0 {
			t.Errorf("found %+v, want a bound and why", s)
		}
	})
}
