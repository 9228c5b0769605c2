package trial_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/record"
)

// A generator limit below a service's rate was measured beside a disturbance: it is measured again,
// and the trial is judged by the new one. A limit that stays low is measured three times again.
func TestLimitBelowAService(t *testing.T) {
	check := func(what string, limits []float64, want float64, calibrations int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			n := 0
			w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
				if s.Name != "calibration" {
					return w.steadyLoad(ctx, s)
				}
				n++
				return trialtest.Load{Rate: limits[min(n, len(limits))-1]}.Offer(ctx, s)
			}
			var remarks []string
			observe := w.lab.Observe
			w.lab.Observe = func(e trial.Event) {
				if e.Remark != "" {
					remarks = append(remarks, e.Remark)
				}
				if observe != nil {
					observe(e)
				}
			}
			e := w.experiment("a", "b", "c", "d", "e")
			if err := w.lab.Calibrate(t.Context(), e.resolve(), []string{"null"}); err != nil {
				t.Fatal(err)
			}
			records, err := w.run(t.Context(), e)
			if err != nil || len(records) != 5 {
				t.Fatal(len(records), err)
			}
			for _, r := range records {
				for _, l := range r.Loads {
					if l.Model == record.Closed && l.CeilingPerS != want {
						t.Errorf("%s: %s %s: limit %v, want %v", what, r.Trial, l.Name,
							l.CeilingPerS, want)
					}
				}
			}
			if n != calibrations {
				t.Errorf("%s: %d calibrations, want %d", what, n, calibrations)
			}
			said := strings.Join(remarks, "\n")
			last := fmt.Sprintf("measured again: %.0f requests/s", limits[len(limits)-1])
			if n > 1 && (!strings.Contains(said, " exceeded the generator limit of ") ||
				!strings.Contains(said, last)) {
				t.Errorf("%s: said %q, want %q", what, said, last)
			}
		})
	}
	check("above", []float64{10 * rate}, 10*rate, 1)
	check("disturbed", []float64{rate / 3, 10 * rate}, 10*rate, 2)
	check("low", []float64{rate / 3}, rate/3, 4)
	check("lower", []float64{rate / 3, rate / 4}, rate/3, 4) // the higher limit stays
}

// A limit that one target of a start exceeds was too low for all of them: each is judged by the
// limit that was measured again, also a target that did not exceed the first one.
func TestLimitBelowAStart(t *testing.T) {
	check := func(a, b float64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c, n := newCrew(t), 0
			c.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
				perS := a
				for _, x := range c.targets {
					if !x.frozen && strings.HasSuffix(x.name, "-b") {
						perS = b
					}
				}
				if s.Name == "calibration" {
					n++
					perS = float64(n * rate)
				}
				return trialtest.Load{Rate: perS}.Offer(ctx, s)
			}
			e := c.experiment("a", "b")
			if err := c.lab.Calibrate(t.Context(), e.resolve(), []string{"null"}); err != nil {
				t.Fatal(err)
			}
			records, err := c.run(t.Context(), e)
			if err != nil || len(records) != 2 {
				t.Fatal(len(records), err)
			}
			for _, r := range records {
				if l := r.Loads[0]; l.CeilingPerS != 2*rate {
					t.Errorf("%s: %v/s of a limit of %v, want %v", r.Trial, l.ThroughputPerS,
						l.CeilingPerS, 2*rate)
				}
			}
		})
	}
	check(0.9*rate, 1.5*rate)
	check(1.5*rate, 0.9*rate)
}
