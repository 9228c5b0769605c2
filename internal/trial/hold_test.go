package trial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/trial"
	"prony.example/internal/trial/trialtest"
	"prony.example/load"
	"prony.example/record"
)

// holding runs one target, which a fault may concern if it is named bad, and returns the held
// trials and the record. Hold takes an hour.
func holding(t *testing.T, name string, arrange fault) (w *world, held []trial.Held,
	rec *record.Record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t)
		w.lab.Hold = func(ctx context.Context, h trial.Held) {
			w.note("held " + h.Trial)
			held = append(held, h)
			time.Sleep(time.Hour)
		}
		e := w.experiment(name)
		arrange(w, &e)
		records, err := w.run(t.Context(), e)
		if err != nil || len(records) != 1 {
			t.Fatalf("%d records, error %v", len(records), err)
		}
		rec = records[0]
	})
	return w, held, rec
}

func TestAFailedServiceIsHeldBeforeItIsStopped(t *testing.T) {
	w, held, rec := holding(t, "bad", serves(lying(), 0, nil))
	want := []string{"unwatch", "held b1-01-bad", "stop b1-01-bad", "record failed"}
	if got := w.notes[max(0, len(w.notes)-len(want)):]; !slices.Equal(got, want) {
		t.Fatalf("the life was %q, want %q at its end", w.notes, want)
	}
	h := held[0]
	if h.Failure.Step != "verify" || !strings.Contains(h.Failure.Error, "body differs") {
		t.Errorf("the failure shown is %+v", h.Failure)
	}
	if h.Dir != w.dir || h.Service.Addr().String() != "127.0.0.1:8080" ||
		!strings.HasSuffix(h.Service.LogFile(), "logs/b1-01-bad.log") {
		t.Errorf("held %+v at %s, log %s", h, h.Service.Addr(), h.Service.LogFile())
	}
	if rec.Failure == nil || rec.DurationNs > int64(time.Minute) {
		t.Errorf("failure %+v, %d ns long: the look counts", rec.Failure, rec.DurationNs)
	}
}

func TestAServiceThatHasEndedIsShownAsSuch(t *testing.T) {
	_, held, _ := holding(t, "bad", serves(nil, 0, errors.New("address already in use")))
	if len(held) != 1 || held[0].Service.Exit() != "exit status 1" {
		t.Errorf("held %+v, want what has ended", held)
	}
}

func TestNothingElseIsHeld(t *testing.T) {
	if _, held, rec := holding(t, "good", serves(lying(), 0, nil)); len(held) > 0 ||
		rec.Outcome != record.Measured {
		t.Errorf("a measured trial was held: %+v", held)
	}
	invalid := func(w *world, _ *experiment) {
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			out, err := w.steadyLoad(ctx, s)
			if out != nil {
				trialtest.Answer(&out.Load, out.Done/2)
			}
			return out, err
		}
	}
	if _, held, rec := holding(t, "good", invalid); len(held) > 0 ||
		rec.Verdict.Grade != record.Invalid || rec.Outcome != record.Measured {
		t.Errorf("an INVALID trial (%s, %s) was held: %+v", rec.Outcome, rec.Verdict.Grade, held)
	}
	_, held, _ := holding(t, "bad", func(_ *world, e *experiment) {
		e.Lacking["bad"] = errors.New("build bad: step 1 failed")
	})
	if len(held) > 0 {
		t.Errorf("what was never started was held: %+v", held)
	}
}

// An interrupt ends the run and its current trial without Hold.
func TestAnInterruptedServiceIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Hold = func(context.Context, trial.Held) { t.Error("held") }
		ctx, cancel := context.WithCancel(t.Context())
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			cancel()
			return nil, ctx.Err()
		}
		if _, err := w.run(ctx, w.experiment("a")); err == nil {
			t.Error("the run was not interrupted")
		}
	})
}
