package clock

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestMonoNeverGoesBack checks that Mono is independent of the wall clock: it uses the kernel's
// monotonic clock only if its base has a monotonic reading.
func TestMonoNeverGoesBack(t *testing.T) {
	if base == base.Round(0) { // Round strips the monotonic reading
		t.Error("the base has no monotonic reading: Mono follows every step of the wall clock")
	}
	last := Mono()
	for range 100_000 {
		now := Mono()
		if now < last {
			t.Fatalf("went from %d back to %d", last, now)
		}
		last = now
	}
}

func TestMonoAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Mono() }); n != 0 {
		t.Errorf("%g allocations a call", n)
	}
}

// TestBothFollowTheBubble checks that only sleeping moves both clocks in a bubble, and exactly by
// the duration of the sleep. The bubble begins at midnight, UTC, 2000-01-01 (package
// testing/synctest).
func TestBothFollowTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, start := Mono(), Wall()
		if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !start.Equal(want) {
			t.Errorf("the bubble begins at %v, want %v", start, want)
		}
		check := func(d time.Duration) {
			t.Helper()
			mono, wall := Mono(), Wall()
			time.Sleep(d)
			if got := Mono() - mono; got != int64(d) {
				t.Errorf("Mono moved by %d ns, want %d", got, d)
			}
			if got := Wall().Sub(wall); got != d {
				t.Errorf("Wall moved by %v, want %v", got, d)
			}
		}
		check(0)
		check(time.Nanosecond)
		check(36 * time.Hour)
		// 0 + 1 ns + 36 h
		if got, want := Mono()-began, int64(36*time.Hour)+1; got != want {
			t.Errorf("Mono moved by %d ns in all, want %d", got, want)
		}
		if day := Wall().Format(time.RFC3339Nano); day != "2000-01-02T12:00:00.000000001Z" {
			t.Errorf("it is %s now", day)
		}
	})
}

// TestEvery checks that a loop runs at once and then at each interval, until its context ends or it
// breaks.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		began, times := Mono(), 0
		for range Every(ctx, 10*time.Second) {
			if at := Mono() - began; at != int64(times)*10e9 {
				t.Errorf("turn %d at %d ns", times, at)
			}
			times++
		}
		if at := Mono() - began; times != 4 || at != 35e9 { // at 0, 10, 20 and 30 s
			t.Errorf("%d turns until %d ns", times, at)
		}
		for range Every(ctx, time.Hour) { // the context has ended: runs once nevertheless
			times++
		}
		for range Every(t.Context(), time.Hour) {
			break
		}
		if at := Mono() - began; times != 5 || at != 35e9 {
			t.Errorf("%d turns until %d ns", times, at)
		}
	})
}

// TestKernel checks that the offset is constant. An offset that is too small would wake the loop
// early each time, so it must not be below any single reading, and not above by more than the
// duration of a reading.
func TestKernel(t *testing.T) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	for range 1000 {
		var ts unix.Timespec
		before := Mono()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := Mono()
		low, high = max(low, ts.Nano()-after), min(high, ts.Nano()-before)
	}
	for range 20 {
		offset, err := Kernel()
		if err != nil || offset < low || offset > high+int64(time.Millisecond) {
			t.Errorf("offset %d, %v, want %d to %d", offset, err, low, high)
		}
	}
}

// TestNanoseconds checks conversions for clocks of any rate, also after years.
func TestNanoseconds(t *testing.T) {
	for _, row := range []struct{ ticks, perSecond, want int64 }{
		{0, 10_000_000, 0}, {1, 10_000_000, 100}, {12_345_678, 10_000_000, 1_234_567_800},
		{7, 3_000_000, 2333}, {-1, 10_000_000, -100},
		{100 * 365 * 86400 * 10_000_000, 10_000_000, 100 * 365 * 86400 * 1e9},
	} {
		if got := nanoseconds(row.ticks, row.perSecond); got != row.want {
			t.Errorf("%d ticks of %d a second are %d ns, want %d", row.ticks, row.perSecond, got,
				row.want)
		}
	}
}
