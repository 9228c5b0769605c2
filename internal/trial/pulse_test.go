package trial_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
)

// A pulse has the good responses per second and the failures since the last one, and the latest
// percentiles. The window's ends are observed too.
func TestPulses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var got []trial.Pulse
		w.lab.Observe = func(e trial.Event) {
			if e.Pulse != nil && e.Step == "peak" {
				got = append(got, *e.Pulse)
			}
		}
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			if s.Name == "peak" {
				h := load.NewHistogram()
				if err := h.RecordValues(7, 3); err != nil {
					t.Error(err)
				}
				for i, p := range []load.Progress{
					{Elapsed: s.Every, Totals: load.Totals{Done: 500, Failed: 3}},
					{Elapsed: 2 * s.Every, Totals: load.Totals{Done: 1500, Failed: 5},
						Answers: 3, Response: h},
					{Elapsed: 2 * s.Every, Totals: load.Totals{Done: 1500, Failed: 5}},
				} {
					if !s.Observer.Progress(p) {
						t.Errorf("report %d ended the load", i)
					}
				}
				if s.Every != 500*time.Millisecond || s.Detail != load.Brief {
					t.Errorf("reports of detail %d every %v", s.Detail, s.Every)
				}
			}
			return trialtest.Load{Rate: rate}.Offer(ctx, s)
		}
		if _, err := w.run(context.Background(), w.experiment("a")); err != nil {
			t.Fatal(err)
		}
		want := []trial.Pulse{{PerS: 1000, Failed: 3},
			{PerS: 2000, Failed: 2, P50Ns: 7, P99Ns: 7}, {}}
		if !slices.Equal(got, want) {
			t.Errorf("pulses %+v, want %+v", got, want)
		}
	})
}
