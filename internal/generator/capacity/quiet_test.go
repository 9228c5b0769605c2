package capacity

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"prony.example/record"
)

// TestQuiet checks when a server is at rest: after a window with responses only, whose median is at
// most three times the shortest median so far.
func TestQuiet(t *testing.T) {
	good := func(ns int64) *record.Load {
		return &record.Load{Answered: 9, ResponseTime: record.Dist{P50Ns: ns}}
	}
	failing := &record.Load{Answered: 9, ResponseTime: record.Dist{P50Ns: 1},
		Errors: record.Errors{Status: 1}}
	silent := &record.Load{}
	check := func(what string, restNs, wantRestNs int64, quiet bool, tries int,
		loads ...*record.Load) {
		t.Helper()
		n := 0
		s := &session{restNs: restNs, Options: Options{Window: time.Second, Offer: func(
			_ context.Context, step Step) (*record.Load, error) {
			l := loads[min(n, len(loads)-1)]
			n++
			if step.Phase != Quiet || step.Connections != 1 || step.Window < quietWindow {
				t.Errorf("%s: step %+v", what, step)
			}
			return l, nil
		}}}
		got, err := s.quiet(t.Context())
		if got != quiet || err != nil || n != tries || s.restNs != wantRestNs {
			t.Errorf("%s: %v, %v after %d windows, at rest %d ns; want %v after %d, %d ns", what,
				got, err, n, s.restNs, quiet, tries, wantRestNs)
		}
	}
	check("the first median", 0, 5, true, 1, good(5))
	check("a shorter one", 5, 4, true, 1, good(4))
	check("three times", 5, 5, true, 1, good(15))
	check("more, then less", 5, 5, true, 3, good(16), good(90), good(14))
	check("no response, then an error", 5, 5, true, 3, silent, failing, good(5))
	check("never", 5, 5, false, quietTries, good(16))
	failed := errors.New("gone")
	s := &session{Options: Options{Window: time.Second, Offer: func(context.Context, Step) (
		*record.Load, error) {
		return nil, failed
	}}}
	if got, err := s.quiet(t.Context()); got || !errors.Is(err, failed) ||
		!strings.HasPrefix(err.Error(), "run step 1 (") {
		t.Errorf("an error: %v, %v", got, err)
	}
}
