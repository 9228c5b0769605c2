package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/launch"
	"prony.example/internal/trial"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
)

// With two drivers each target has a trial of each in every block; records name the foreign one,
// and the warm-up is Prony's in both. A foreign driver is not requested to report progress.
func TestForeignDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var asked []string
		w.lab.Driver = func(name, engine string, _ *nethttp.Config) (trial.Driver, error) {
			asked = append(asked, name+"/"+engine)
			return w, nil
		}
		var every []time.Duration
		w.offer = func(ctx context.Context, s load.Spec) (*load.Result, error) {
			every = append(every, s.Every)
			return w.steadyLoad(ctx, s)
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
		const warm, window = 100 * time.Millisecond, 500 * time.Millisecond
		if !slices.Equal(every, []time.Duration{warm, window, window, warm, 0, 0}) {
			t.Errorf("reports every %v", every)
		}
	})
}

// A missing driver fails the trial with that reason.
func TestMissingDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lab.Driver = func(name, _ string, _ *nethttp.Config) (trial.Driver, error) {
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

// A user who ends a run during the calibration gets an error about the interrupt, not about the
// interrupted call.
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

// The null server's Unix socket is in a private folder, and nothing remains of it, however the
// calibration ends.
func TestSocketOfTheNullServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		t.Setenv("TMPDIR", t.TempDir())
		e := w.experiment("a").resolve()
		e.Trials[0].Scene.Unix = "/run/service-{port}"
		w.launcher.Start = func(s launch.Spec) (http.Handler, time.Duration, error) {
			at := s.Args[slices.Index(s.Args, "--unix")+1]
			info, err := os.Stat(filepath.Dir(at))
			if err != nil {
				t.Error(err)
			} else if info.Mode().Perm() != 0o700 || s.Dir != filepath.Dir(at) {
				t.Errorf("the socket %s: started in %s, %v", at, s.Dir, info.Mode())
			}
			err = os.WriteFile(at, nil, 0o600) // a killed server leaves it
			return nil, 0, errors.Join(err, errors.New("it cannot be started"))
		}
		if err := w.lab.Calibrate(t.Context(), e, []string{"null"}); err == nil {
			t.Error("there is no null server, and no error")
		}
		if left, err := os.ReadDir(os.TempDir()); len(left) > 0 || err != nil {
			t.Errorf("it leaves %v, error %v", left, err)
		}
	})
}
