package trial

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/observe/cpuclock"
	"prony.example/internal/observe/stallfree"
	"prony.example/load"
	"prony.example/record"
)

// Long slices come in fewer rounds, at least four.
func TestRounds(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		slice, planned time.Duration
		want           int
	}{
		{80 * ms, 2 * time.Second, 25}, {285 * ms, 2 * time.Second, 7},
		{400 * ms, 2 * time.Second, 7}, {600 * ms, 2 * time.Second, 6},
		{960 * ms, 2 * time.Second, 4}, {2 * time.Second, 2 * time.Second, 4},
		{2 * time.Second, 18 * time.Second, 9},
	} {
		if got := rounds(row.slice, row.planned); got != row.want {
			t.Errorf("slices of %v in %v: %d rounds, want %d", row.slice, row.planned, got,
				row.want)
		}
	}
}

// stopLog is a Freezer that counts its calls.
type stopLog struct {
	way          string
	thaws, stops int
}

func (f *stopLog) Freeze() error { f.stops++; return nil }
func (f *stopLog) Thaw() error   { f.thaws++; return nil }
func (f *stopLog) Way() string   { return f.way }
func (f *stopLog) Close() error  { return nil }

// Before a slice, targets that would be stopped for too long at its end run for a moment.
func TestWakeIdle(t *testing.T) {
	ago := func(d time.Duration) int64 { return clock.Mono() - int64(d) }
	for _, row := range []struct {
		name    string
		way     string
		stopped time.Duration
		next    int
		wakes   int
	}{
		{"overdue at the end of the slice", record.FreezeSignals, 3500 * time.Millisecond, 1, 1},
		{"in time", record.FreezeSignals, 2 * time.Second, 1, 0},
		{"loaded next", record.FreezeSignals, 3500 * time.Millisecond, 0, 0},
		{"never stopped", record.FreezeOff, 3500 * time.Millisecond, 1, 0},
	} {
		f := &stopLog{way: row.way}
		s := start{sides: []*side{
			{freezer: f, stoppedNs: ago(row.stopped)},
			{freezer: &stopLog{way: row.way}, stoppedNs: clock.Mono()},
		}}
		before := clock.Mono()
		if err := s.wakeIdle(row.next, time.Second); err != nil {
			t.Fatal(err)
		}
		if f.thaws != row.wakes || f.stops != row.wakes {
			t.Errorf("%s: it ran %d times and was stopped %d times, want %d", row.name, f.thaws,
				f.stops, row.wakes)
		}
		if ran := clock.Mono() - before; row.wakes > 0 && (ran < int64(wakeTime) ||
			s.sides[0].stoppedNs < before+int64(wakeTime)) {
			t.Errorf("%s: it ran for %v", row.name, time.Duration(ran))
		}
	}
}

// quickLoader is a Loader whose slices take no time.
type quickLoader struct{ Loader }

func (quickLoader) Slice(context.Context, load.Slice) (out load.Sliced, err error) { return }

// noClock is a CPUClock, and noMachine a Machine, that read nothing.
type noClock struct{}

func (noClock) Refresh()       {}
func (noClock) Read() int64    { return 0 }
func (noClock) Grouped() bool  { return false }
func (noClock) Complete() bool { return true }
func (noClock) Close()         {}

type noMachine struct{ Machine }

func (noMachine) Read() cpuclock.Reading { return cpuclock.Reading{} }

// Closed and open slices wake other targets that would be stopped for too long.
func TestSlicesWakeIdle(t *testing.T) {
	long := int64(3 * time.Second)
	for name, slice := range map[string]func(*start) (record.Slice, error){
		"closed": func(s *start) (record.Slice, error) { return s.closedSlice(t.Context(), 0) },
		"open":   func(s *start) (record.Slice, error) { return s.openSlice(t.Context(), 0, 1) },
	} {
		other := &stopLog{way: record.FreezeSignals}
		s := start{lab: &Lab{}, rng: rand.New(rand.NewPCG(1, 1)), machine: noMachine{},
			self:   noClock{},
			stalls: new(stallfree.Watcher).Log(), SideBySide: record.SideBySide{WindowNs: long,
				Open: &record.OpenSlices{WindowNs: long}}}
		for _, f := range []*stopLog{{way: record.FreezeSignals}, other} {
			s.sides = append(s.sides, &side{freezer: f, clock: noClock{}, loader: quickLoader{},
				open: quickLoader{}, stoppedNs: clock.Mono() - int64(2*time.Second)})
		}
		if _, err := slice(&s); err != nil {
			t.Fatal(err)
		}
		if other.thaws != 1 || other.stops != 1 {
			t.Errorf("%s: the other target ran %d times and was stopped %d times, want 1", name,
				other.thaws, other.stops)
		}
	}
}

// Windows have fewer turns if slices would be too long, or rounds longer than planned.
func TestClosedLengths(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		planned            time.Duration
		turn, lead, window time.Duration
		fits               bool
	}{
		{18 * time.Second, 1 * ms, 10 * ms, 20 * ms, true},
		{18 * time.Second, 20 * ms, 100 * ms, 200 * ms, true},
		{18 * time.Second, 95 * ms, 475 * ms, 950 * ms, true},
		{18 * time.Second, 100 * ms, 500 * ms, 900 * ms, true},
		{18 * time.Second, 120 * ms, 600 * ms, 840 * ms, true},
		{18 * time.Second, 140 * ms, 700 * ms, 980 * ms, false},
		{2 * time.Second, 13 * ms, 65 * ms, 130 * ms, true},
		{2 * time.Second, 17 * ms, 85 * ms, 119 * ms, true},
		{2 * time.Second, 20 * ms, 100 * ms, 140 * ms, true},
		{2 * time.Second, 60 * ms, 300 * ms, 420 * ms, true},
	} {
		lead, window := closedLengths(row.turn, min(LongestSlice, row.planned/leastRounds), 1)
		x := record.SideBySide{LeadInNs: int64(lead), WindowNs: int64(window),
			TurnNs: int64(row.turn)}
		if lead != row.lead || window != row.window ||
			(time.Duration(x.MeanNs()) <= LongestSlice) != row.fits {
			t.Errorf("%+v: lead-in %v, window %v", row, lead, window)
		}
	}
	// Without exact CPU times, short windows are longer.
	if lead, window := closedLengths(ms, LongestSlice, inexact); lead != 20*ms || window != 40*ms {
		t.Errorf("lead-in %v, window %v", lead, window)
	}
}
