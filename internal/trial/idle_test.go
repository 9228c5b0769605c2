package trial

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/record"
)

// turns is a Freezer that notes when its target ran while it should be idle.
type turns struct {
	stopLog
	began time.Time
	runs  []time.Duration // since began
	err   error           // of Freeze
}

func (f *turns) Thaw() error {
	f.runs = append(f.runs, time.Since(f.began))
	return f.stopLog.Thaw()
}

func (f *turns) Freeze() error { return errors.Join(f.stopLog.Freeze(), f.err) }

// idleStart returns a start of two idle targets and one that is measured.
func idleStart() (s *start, a, b *turns) {
	now := time.Now()
	a, b = &turns{began: now}, &turns{began: now}
	a.way, b.way = record.FreezeCgroup, record.FreezeSignals
	running := &turns{}
	running.way = record.FreezeOff
	s = &start{}
	for _, f := range []Freezer{a, b, running, &turns{}} {
		s.all = append(s.all, &side{life: &life{}, freezer: f, stoppedNs: clock.Mono()})
	}
	s.all = append(s.all, &side{}) // not launched yet
	return s, a, b
}

// TestIdleTargets checks that idle targets run at the same moments, after 4 s each, and that none
// runs in a measured load that is shorter.
func TestIdleTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, a, b := idleStart()
		idle := s.keepIdle(s.all[3])
		time.Sleep(10 * time.Second)
		want := []time.Duration{4 * time.Second, 8100 * time.Millisecond}
		if !slices.Equal(a.runs, want) || !slices.Equal(b.runs, want) || a.stops != 2 {
			t.Errorf("they ran after %v and %v, want %v; stopped %d times", a.runs, b.runs, want,
				a.stops)
		}
		a.runs = nil
		for range 20 {
			if err := idle.beforeLoad(1500 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			before := len(a.runs)
			time.Sleep(1500 * time.Millisecond)
			if len(a.runs) != before {
				t.Errorf("an idle target ran in a load, after %v", a.runs)
			}
		}
		if len(a.runs) < 7 || len(a.runs) > 15 {
			t.Errorf("it ran %d times in 30 s", len(a.runs))
		}
		if err := idle.end(); err != nil || a.stops != a.thaws {
			t.Errorf("stopped %d times, resumed %d times, error %v", a.stops, a.thaws, err)
		}
	})
}

// TestIdleError checks that a target that can't be stopped is blamed for it.
func TestIdleError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, b := idleStart()
		b.err = errors.New("permission denied")
		idle := s.keepIdle(s.all[3])
		time.Sleep(5 * time.Second)
		err := idle.end()
		var found idleError
		if !errors.As(err, &found) || found.side != s.all[1] || !errors.Is(err, b.err) {
			t.Errorf("error %v of %v", err, found.side)
		}
		s.sides = s.all
		if failed := nobody; s.blame(t.Context(), &failed, err) == nil || failed != 1 {
			t.Errorf("target %d failed", failed)
		}
	})
}

// TestNoneIdle checks that nothing is done without other targets.
func TestNoneIdle(t *testing.T) {
	s := &start{all: []*side{{}}}
	idle := s.keepIdle(s.all[0])
	if err := errors.Join(idle.beforeLoad(time.Second), idle.end()); err != nil {
		t.Error(err)
	}
}
