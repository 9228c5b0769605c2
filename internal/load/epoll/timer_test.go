package epoll

import (
	"math"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"prony/internal/clock"
)

var nowhere = netip.MustParseAddrPort("127.0.0.1:1")

// guarded fails when f does not return; how long it takes is not looked at. The signal by which the
// runtime interrupts goroutines is kept from f's thread, or it would end every wait sooner or later
// and hide a wake-up that is missed.
func guarded(t *testing.T, what string, f func()) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)) // f keeps one to itself
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		var set unix.Sigset_t
		set.Val[0] = 1 << (unix.SIGURG - 1)
		if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
			t.Errorf("block SIGURG: %v", err)
		}
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Duration(bound)):
		t.Fatalf("%s: the wait does not end", what)
	}
}

// A deadline that has passed only polls: with nothing set to wake it, a wait would never end.
func TestPastDeadlinesPoll(t *testing.T) {
	e, h := engine(t, nowhere, 1)
	guarded(t, "past deadlines", func() {
		for _, d := range []int64{clock.Mono(), clock.Mono() - 1, 0, -1, math.MinInt64} {
			if err := e.Wait(d, h); err != nil {
				t.Errorf("deadline %d: %v", d, err)
			}
		}
	})
	if e.armed != 0 {
		t.Errorf("the timer is set to %d", e.armed)
	}
}

// until waits for the deadline as the load's loop does, and reports how often the timer itself
// ended a wait, and whether it did so before the deadline.
func until(t *testing.T, e *Engine, h *ear, deadline int64) (fired int, early bool) {
	for clock.Mono() < deadline {
		if err := e.Wait(deadline, h); err != nil {
			t.Error(err)
			return
		}
		// The engine forgets what the timer was set to when it has fired.
		if now := clock.Mono(); e.armed == 0 {
			fired++
			early = early || now < deadline
		}
	}
	return fired, early
}

// The timer never fires early, whatever the distance; how late it is depends on the machine.
func TestTimerIsNeverEarly(t *testing.T) {
	e, h := engine(t, nowhere, 1)
	fired := 0
	guarded(t, "timer", func() {
		for k := range int64(300) {
			// From 1 µs to 3 ms, in steps that are no whole number of anything.
			n, early := until(t, e, h, clock.Mono()+1000+k*k*33)
			if early {
				t.Errorf("wait %d ended before its deadline", k)
			}
			fired += n
		}
	})
	if fired == 0 {
		t.Error("the timer never fired")
	}
}

// A timer that fires early all the same, as it would if the two clocks drifted apart, costs turns
// of the loop, not the wake-up. Nor does one that fires late.
func TestWrongOffsets(t *testing.T) {
	e, h := engine(t, nowhere, 1)
	guarded(t, "wrong offset", func() {
		for _, off := range []int64{-1e6, 1e6} {
			e.toMono += off
			until(t, e, h, clock.Mono()+3e6)
			e.toMono -= off
		}
	})
}

// The kernel's clock and the process's differ by a constant. An offset that is too small would wake
// the loop early by as much, every time; it must not be below what any reading shows, and not above
// by more than a reading takes.
func TestClockOffset(t *testing.T) {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	for range 1000 {
		var ts unix.Timespec
		before := clock.Mono()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := clock.Mono()
		low, high = max(low, ts.Nano()-after), min(high, ts.Nano()-before)
	}
	for range 20 {
		e, _ := engine(t, nowhere, 1)
		if e.toMono < low || e.toMono > high+int64(time.Millisecond) {
			t.Errorf("offset %d, want %d to %d", e.toMono, low, high)
		}
	}
}

// The ways in which a wake-up could get lost: a deadline that moves in, out or stays as it is,
// before and after the timer has fired, with and without its event having been taken.
func TestNoWakeUpIsMissed(t *testing.T) {
	const ms = int64(time.Millisecond)
	addr := listen(t, "127.0.0.1:0", echo)
	e, h := engine(t, addr, 1)
	connected(t, e, h)
	wait := func(deadline int64) {
		if err := e.Wait(deadline, h); err != nil {
			t.Error(err)
		}
	}
	ping := func() { // something to read, so that the next wait does not sleep
		e.Send(0, []byte("x"))
		readable(t, e, 0)
	}
	pass := func(deadline int64) {
		for clock.Mono() < deadline {
			time.Sleep(time.Duration(deadline - clock.Mono()))
		}
	}
	guarded(t, "moved deadlines", func() {
		until(t, e, h, clock.Mono()+20*ms) // what opening the connection has set it to is over

		ping()
		wait(clock.Mono() + 1e12) // far away, ended by the ping; then a nearer one
		until(t, e, h, clock.Mono()+2*ms)

		d := clock.Mono() + 5*ms // the same deadline twice, not passed in between
		ping()
		wait(d)
		until(t, e, h, d)

		d = clock.Mono() + 2*ms // it passes unseen; then a later one
		ping()
		wait(d)
		pass(d)
		until(t, e, h, clock.Mono()+2*ms)

		d = clock.Mono() + 2*ms // it passes unseen, is polled for, and then a later one
		ping()
		wait(d)
		pass(d)
		wait(d)
		until(t, e, h, clock.Mono()+2*ms)

		d = clock.Mono() + 2*ms // it fires; the same again, and a later one
		until(t, e, h, d)
		wait(d)
		until(t, e, h, d+2*ms)
	})
}

// A deadline that never comes does not overflow the kernel's clock; something else ends the wait.
func TestNoDeadline(t *testing.T) {
	addr := listen(t, "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = c.Write([]byte("hello")) // a lost answer fails the test anyway
		_, _ = c.Read(make([]byte, 1))
	})
	e, h := engine(t, addr, 1)
	e.Open(0)
	guarded(t, "endless wait", func() {
		for len(h.slots[0].got) < 5 {
			if err := e.Wait(math.MaxInt64, h); err != nil {
				t.Error(err)
				return
			}
		}
	})
}
