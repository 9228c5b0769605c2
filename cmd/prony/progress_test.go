//go:build linux && !portable

package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/trial"
	"prony.example/record"
)

// TestProgressOfTheRun follows a run of 4 trials that is estimated at 80 s, on a pipe. They take
// 10, 100, 10 and 10 s.
func TestProgressOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		s := &progressLine{w: &out, total: 4, estimate: 80 * time.Second}
		step := func(after time.Duration, e trial.Event) {
			time.Sleep(after)
			synctest.Wait()
			s.Trial(e)
		}
		check := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			if got := s.status(clock.Mono(), 10); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		ended := trial.Event{Step: "done", Record: &record.Record{Trial: "b1-01-a"}}
		step(0, trial.Event{Trial: "b1-01-a", Step: "peak", Expect: 10 * time.Second})
		check(0, "──────────  0 % · 80 s left · 0/4 · b1-01-a · peak 10 s")
		check(8*time.Second, "━───────── 10 % · 72 s left · 0/4 · b1-01-a · peak 2 s")
		step(2*time.Second, ended) // after 10 s instead of 20
		step(0, trial.Event{Trial: "b1-02-b", Step: "peak"})
		check(0, "━━──────── 25 % · 30 s left · 1/4 · b1-02-b · peak")
		check(5*time.Second, "━━━─────── 37 % · 25 s left · 1/4 · b1-02-b · peak")
		check(45*time.Second, "━━━━────── 48 % · 20 s left · 1/4 · b1-02-b · peak")
		step(50*time.Second, ended) // 55 s each
		step(0, trial.Event{Trial: "b1-03-c", Step: "peak"})
		check(0, "━━━━━───── 50 % · 110 s left · 2/4 · b1-03-c · peak")
		step(10*time.Second, ended)
		step(10*time.Second, ended)
		s.end()
		var lines []string
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		silent := " 48 % · 20 s left · 1/4 · b1-02-b · peak"
		if n := strings.Count(out.String(), silent); n != 1 || len(lines) != 5 {
			t.Errorf("%d lines, want 5, after a minute of silence %q once:\n%s", len(lines), silent,
				out.String())
		}
	})
}

// TestProgressOfStarts follows starts of two targets, whose trials end together, and a run that
// lasts for a given time.
func TestProgressOfStarts(t *testing.T) {
	s := &progressLine{total: 8, together: 2, estimate: 80 * time.Second}
	check := func(after, left time.Duration, share float64) {
		t.Helper()
		gotShare, gotLeft := s.course(int64(after))
		if gotShare != share || gotLeft.Round(time.Millisecond) != left {
			t.Errorf("after %v: %v and %v left, want %v and %v", after, gotShare, gotLeft, share,
				left)
		}
	}
	check(15*time.Second, 65*time.Second, 1.5/8)
	check(30*time.Second, 61*time.Second, 1.9/8) // a start takes longer than 20 s
	s.ended, s.endedAt = 2, int64(40*time.Second)
	check(50*time.Second, 110*time.Second, 2.5/8)
	s.total, s.estimate = 0, 100*time.Second
	check(25*time.Second, 75*time.Second, 0.25)
}
