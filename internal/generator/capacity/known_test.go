package capacity

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

// TestKnown checks the limits of a search that ends early: steps that held above a failed step are
// not a limit.
func TestKnown(t *testing.T) {
	step := func(word string, perS float64) Tried {
		return Tried{Step: Step{RatePerS: perS}, Outcome: word}
	}
	for _, row := range []struct {
		steps          []Tried
		atLeast, broke float64
	}{
		{nil, 0, 0},
		{[]Tried{step(Met, 300), step(Met, 372)}, 372, 0},
		{[]Tried{step(Met, 300), step(Met, 372), step(Missed, 400)}, 372, 400},
		{[]Tried{step(Met, 300), step(Missed, 350), step(Met, 372), step(Missed, 400)}, 300, 350},
		{[]Tried{step(Missed, 300), step(Met, 372)}, 0, 300},
		{[]Tried{step(Invalid, 300), step("", 0)}, 0, 0},
	} {
		if atLeast, broke := known(row.steps); atLeast != row.atLeast || broke != row.broke {
			t.Errorf("%v: at least %v, broke %v", row, atLeast, broke)
		}
	}
}

// TestEarlyEnds compares the limits with the server's computable capacity: it must lie between
// them, whether the budget ended or the search was interrupted.
func TestEarlyEnds(t *testing.T) {
	check := func(name string, f *Found, truth float64) {
		t.Helper()
		var b bytes.Buffer
		if err := f.Text(&b); err != nil {
			t.Fatal(err)
		}
		if f.Found || !(f.AtLeastPerS > 0 && f.AtLeastPerS < 1.05*truth) ||
			f.MissedPerS > 0 && f.MissedPerS < 0.95*truth ||
			!strings.Contains(b.String(), "capacity    at least ") {
			t.Errorf("%s: at least %v, broke %v of %v:\n%s", name, f.AtLeastPerS, f.MissedPerS,
				truth, &b)
		}
	}
	s := newServer(1, 1000, 0)
	o := s.options("p99<50ms", 1)
	o.Budget = 20 * time.Second
	f, err := Find(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	check("budget", f, s.capacity(50*time.Millisecond))

	s = newServer(1, 1000, 0)
	o = s.options("p99<50ms", 1)
	offer, held := o.Offer, 0
	o.Offer = func(ctx context.Context, step Step) (*record.Load, error) {
		if step.Phase == Bracket {
			if held++; held > 1 {
				return nil, context.Canceled
			}
		}
		return offer(ctx, step)
	}
	f, err = Find(context.Background(), o)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	check("signal", f, s.capacity(50*time.Millisecond))
}
