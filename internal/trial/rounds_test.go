package trial_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/trial"
)

// TestRoundsAreReported requires that a start reports its rounds while all targets are stopped, at
// most twice a second, up to the last one.
func TestRoundsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(t)
		last, reports := map[string]trial.Event{}, map[string]int{}
		began, ended := map[string]int64{}, map[string]int64{}
		other := c.lab.Observe
		c.lab.Observe = func(e trial.Event) {
			other(e)
			if e.Rounds == 0 {
				return
			}
			if c.running > 0 {
				t.Errorf("%s, round %d: %d targets run", e.Step, e.Round, c.running)
			}
			before, seen := last[e.Step]
			switch {
			case !seen && e.Round == 0 && e.Expect > 0:
				began[e.Step] = clock.Mono()
			case !seen || e.Round <= before.Round || e.Rounds != before.Rounds:
				t.Errorf("%s: round %d of %d follows %+v", e.Step, e.Round, e.Rounds, before)
			}
			last[e.Step], ended[e.Step] = e, clock.Mono()
			reports[e.Step]++
		}
		if _, err := c.run(context.Background(), c.experiment("a", "b")); err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"slices", "open slices"} {
			if e := last[step]; e.Round == 0 || e.Round != e.Rounds {
				t.Errorf("%s end with round %d of %d", step, e.Round, e.Rounds)
			}
			took := time.Duration(ended[step] - began[step])
			if n := reports[step]; n < 3 || n > 2+int(took/(500*time.Millisecond)) {
				t.Errorf("%s: %d reports in %v", step, n, took)
			}
		}
	})
}
