package enginetest

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

var nowhere = netip.MustParseAddrPort("127.0.0.1:1")

// A deadline that has passed only polls: with nothing set to wake it, a wait would never end.
func (s *suite) pastDeadlines(t *testing.T) {
	h := s.engine(t, nowhere, 1)
	for _, d := range []int64{clock.Mono(), clock.Mono() - 1, 0, -1, math.MinInt64} {
		h.wait(d)
	}
	// What has happened is delivered all the same, at the first poll after it has.
	speak, spoken := make(chan bool), make(chan bool)
	h = s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		for range speak {
			say(t, c, "hello")
			spoken <- true
		}
	}), 1)
	t.Cleanup(func() { close(speak) })
	h.open()
	h.quiet()
	for range 3 {
		speak <- true
		<-spoken
		h.slots[0].got = nil
		if h.wait(0); string(h.slots[0].got) != "hello" {
			t.Errorf("a poll heard %v", h)
		}
	}
}

// A wait in which nothing happens never ends before its deadline, whatever the distance; how late
// it is depends on the machine.
func (s *suite) neverEarly(t *testing.T) {
	h := s.engine(t, nowhere, 1)
	for k := range int64(300) {
		// From 1 µs to 3 ms, in steps that are no whole number of anything.
		deadline := clock.Mono() + 1000 + k*k*33
		h.wait(deadline)
		if now := clock.Mono(); now < deadline {
			t.Errorf("wait %d ended %d ns before its deadline", k, deadline-now)
		}
	}
}

// The ways in which a wake-up could get lost: a deadline that moves in, out or stays as it is,
// before and after it has passed, with and without its passing having been seen.
func (s *suite) noWakeUpIsMissed(t *testing.T) {
	const ms = int64(time.Millisecond)
	speak, spoken := make(chan bool), make(chan bool)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		for range speak {
			say(t, c, "x")
			spoken <- true
		}
	}), 1)
	t.Cleanup(func() { close(speak) })
	h.open()
	until := func(deadline int64) {
		for clock.Mono() < deadline {
			h.wait(deadline)
		}
	}
	ping := func() { // something to read, so that the next wait does not sleep
		speak <- true
		<-spoken
	}
	pass := func(deadline int64) {
		for clock.Mono() < deadline {
			time.Sleep(time.Duration(deadline - clock.Mono()))
		}
	}
	until(clock.Mono() + 20*ms) // what opening the connection has set is over

	ping()
	h.wait(clock.Mono() + 1e12) // far away, ended by the ping; then a nearer one
	until(clock.Mono() + 2*ms)

	d := clock.Mono() + 5*ms // the same deadline twice, not passed in between
	ping()
	h.wait(d)
	until(d)

	d = clock.Mono() + 2*ms // it passes unseen; then a later one
	ping()
	h.wait(d)
	pass(d)
	until(clock.Mono() + 2*ms)

	d = clock.Mono() + 2*ms // it passes unseen, is polled for, and then a later one
	ping()
	h.wait(d)
	pass(d)
	h.wait(d)
	until(clock.Mono() + 2*ms)

	d = clock.Mono() + 2*ms // it fires; the same again, and a later one
	until(d)
	h.wait(d)
	until(d + 2*ms)

	if got := len(h.slots[0].got); got != 4 {
		t.Errorf("heard %d of 4 pings", got)
	}
}

// A deadline that never comes does not overflow the kernel's clock: the wait sleeps until something
// else ends it.
func (s *suite) noDeadline(t *testing.T) {
	speak := make(chan bool)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		<-speak
		time.Sleep(20 * time.Millisecond) // until the other side waits, or longer
		say(t, c, "hello")
		_, _ = c.Read(make([]byte, 1))
	}), 1)
	h.open()
	h.quiet()
	close(speak)
	waits := 0
	for ; len(h.slots[0].got) < 5; waits++ {
		h.wait(math.MaxInt64)
	}
	if waits > 5 {
		t.Errorf("one answer took %d waits", waits)
	}
}
