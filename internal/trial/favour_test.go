package trial_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"prony.example/internal/launch"
)

// favoured starts processes that record when their compilers have priority.
type favoured struct {
	launch.Launcher
	w *world
}

type favouredProcess struct {
	launch.Process
	w *world
}

func (f favoured) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p, err := f.Launcher.Launch(ctx, s)
	return favouredProcess{p, f.w}, err
}

func (f favouredProcess) Favour(on bool) (int, error) {
	f.w.note(fmt.Sprintf("favour %t", on))
	return 2, f.w.unfavoured(on)
}

// Compilers have priority from before the warm-up until its end, set again every half second; never
// in a window. If the priority cannot be removed, there is no result.
func TestCompilersFirst(t *testing.T) {
	check := func(turn string, took int, back error, want []string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.lab.Launcher = favoured{w.lab.Launcher, w}
			w.unfavoured = func(on bool) error {
				if on {
					return nil
				}
				return back
			}
			e := w.experiment("a")
			e.Plan.Suite.Warmup.Compilers = turn
			records, err := w.run(context.Background(), e)
			if err != nil {
				t.Fatal(err)
			}
			r := records[0]
			favours := 0
			for _, s := range w.notes {
				if s == "favour true" {
					favours++
				}
			}
			// Once before the warm-up, and then in every fifth interval of it.
			if n := 1 + (len(r.Warmup.RatePerS)+4)/5; took > 0 && back == nil && favours != n {
				t.Errorf("set %d times in %d intervals, want %d", favours,
					len(r.Warmup.RatePerS), n)
			}
			got := slices.DeleteFunc(slices.Compact(w.notes), func(s string) bool {
				return !strings.HasPrefix(s, "favour ") && !strings.HasPrefix(s, "load ")
			})
			if !slices.Equal(got, want) || r.Warmup.PrioritizedThreads != took ||
				(r.Failure != nil) != (back != nil) {
				t.Errorf("%q, want %q; %+v, %+v", got, want, r.Warmup, r.Failure)
			}
		})
	}
	first := []string{"favour true", "load warmup", "favour true", "favour false"}
	loads := []string{"load peak", "load half"}
	check("", 2, nil, append(slices.Clone(first), loads...))
	check("equal", 0, nil, append([]string{"load warmup"}, loads...))
	check("", 2, errors.New("not taken back"), first)
}

// bound starts processes that cannot be moved.
type bound struct{ launch.Launcher }

func (b bound) Launch(ctx context.Context, s launch.Spec) (launch.Process, error) {
	p, err := b.Launcher.Launch(ctx, s)
	return struct{ launch.Process }{p}, err
}
