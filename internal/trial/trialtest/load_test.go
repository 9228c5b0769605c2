package trialtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/load/pace"
	"prony.example/record"
)

// A load takes its lead and its window, and calls back at both ends of the window.
func TestOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := clock.Mono()
		var edges []time.Duration
		s := load.Spec{Model: record.Open, Lead: time.Second, Window: 2 * time.Second,
			Schedule: pace.Schedule{Rate: pace.Flat(300)},
			Observer: load.WindowFunc(func(bool) {
				edges = append(edges, time.Duration(clock.Mono()-began))
			}),
			Together: func(context.Context) (int64, error) { return began + 5e9, nil }}
		l := trialtest.Load{Rate: 1000, Connect: time.Second}
		r, err := l.Offer(t.Context(), s)
		if err != nil || !slices.Equal(edges, []time.Duration{6 * time.Second, 8 * time.Second}) {
			t.Errorf("error %v, edges at %v", err, edges)
		}
		if r.FromNs != began+6e9 || r.Answered != 600 || r.ResponseTime.P99Ns != 1e6 {
			t.Errorf("%+v", r.Load)
		}
		s.Model, s.Together = record.Closed, nil
		if r, _ := l.Offer(t.Context(), s); r.Answered != 2000 || r.InFlightMean != 1 {
			t.Errorf("%+v", r.Load)
		}
		gone := errors.New("gone")
		s.Together = func(context.Context) (int64, error) { return 0, gone }
		if _, err := l.Offer(t.Context(), s); !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
	})
}

// A warm-up reports its responses until its observer ends it.
func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []int64
		s := load.Spec{Name: "warmup", Window: time.Minute, Every: 100 * time.Millisecond,
			Observer: load.ProgressFunc(func(p load.Progress) bool {
				done = append(done, p.Done)
				return p.Elapsed < 300*time.Millisecond
			})}
		l := trialtest.Load{RateAt: func(elapsed time.Duration) float64 {
			if elapsed > 200*time.Millisecond {
				return 500
			}
			return 1000
		}}
		r, err := l.Offer(t.Context(), s)
		want := []int64{100, 200, 250}
		if err != nil || !slices.Equal(done, want) || r.Done != 250 {
			t.Errorf("error %v, %v, %d in the end; want %v", err, done, r.Done, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Observer = load.Observers{}
		if _, err := l.Offer(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
