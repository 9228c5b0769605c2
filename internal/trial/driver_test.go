package trial_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"prony/internal/load/stack"
	"prony/internal/trial"
)

// With two drivers each target has a trial of each in every block; records name the foreign one,
// and the warm-up is ours in both.
func TestForeignDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var asked []string
		w.lab.Driver = func(name, engine string, _ *stack.Config) (trial.Driver, error) {
			asked = append(asked, name+"/"+engine)
			return w, nil
		}
		e := w.experiment("a")
		e.Plan.Suite.Drivers = []string{"prony", "wrk"}
		other := e.Plan.Trials[0]
		other.ID, other.Order, other.Driver = "b1-02-a-wrk", 2, "wrk"
		e.Plan.Trials = append(e.Plan.Trials[:1], other)
		records, err := w.run(context.Background(), e)
		if err != nil || len(records) != 2 {
			t.Fatal(len(records), err)
		}
		if a, b := records[0].Target.Driver, records[1].Target.Driver; a != "" || b != "wrk" {
			t.Errorf("records name %q and %q, want none and wrk", a, b)
		}
		want := []string{"/", "/", "/", "/", "wrk/", "wrk/"}
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %q, want %q", asked, want)
		}
	})
}

// A driver that cannot be had fails the trial, which says so.
func TestMissingDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Driver = func(name, _ string, _ *stack.Config) (trial.Driver, error) {
			if name != "" {
				return nil, fmt.Errorf("find %s: it is not installed", name)
			}
			return w, nil
		}
		e := w.experiment("a")
		for i := range e.Plan.Trials {
			e.Plan.Trials[i].Driver = "wrk"
		}
		records, err := w.run(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		if f := records[0].Failure; f == nil || f.Error != "find wrk: it is not installed" {
			t.Errorf("failure %+v", f)
		}
	})
}

// Who ends a run while the generator is calibrated reads that, and not which call it broke off.
func TestInterruptedCalibration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, interrupt := context.WithCancel(context.Background())
		interrupt()
		err := w.lab.Calibrate(ctx, w.experiment("a").resolve(), []string{"null"})
		if err == nil || err.Error() != "interrupted before the first trial: nothing was measured" {
			t.Errorf("error %v", err)
		}
	})
}
