package enginetest

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"prony.example/internal/base/clock"
)

var nowhere = netip.MustParseAddrPort("127.0.0.1:1")

// pastDeadlines tests that Wait only polls if its deadline has passed. Nothing else would end the
// wait.
func (s *suite) pastDeadlines(t *testing.T) {
	h := s.engine(t, nowhere, 1)
	for _, d := range []int64{clock.Mono(), clock.Mono() - 1, 0, -1, math.MinInt64} {
		h.wait(d)
	}
	// Events are still delivered, at the first poll after they happened.
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

// neverEarly tests that a wait without events never ends before its deadline, at any distance; how
// late it ends depends on the machine.
func (s *suite) neverEarly(t *testing.T) {
	h := s.engine(t, nowhere, 1)
	for k := range int64(300) {
		// From 1 µs to 3 ms, in uneven steps.
		deadline := clock.Mono() + 1000 + k*k*33
		h.wait(deadline)
		if now := clock.Mono(); now < deadline {
			t.Errorf("wait %d ended %d ns before its deadline", k, deadline-now)
		}
	}
}

// noWakeUpIsMissed tests the ways in which a wake-up could get lost: a deadline that moves in,
// moves out or stays, before and after it has passed, with and without an event for it.
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
	until(clock.Mono() + 20*ms) // events of opening the connection are over

	ping()
	h.wait(clock.Mono() + 1e12) // far away, ended by the ping; then a nearer one
	until(clock.Mono() + 2*ms)

	d := clock.Mono() + 5*ms // the same deadline twice, not passed in between
	ping()
	h.wait(d)
	until(d)

	d = clock.Mono() + 2*ms // it passes during no wait; then a later one
	ping()
	h.wait(d)
	pass(d)
	until(clock.Mono() + 2*ms)

	d = clock.Mono() + 2*ms // it passes during no wait, a poll follows, and then a later one
	ping()
	h.wait(d)
	pass(d)
	h.wait(d)
	until(clock.Mono() + 2*ms)

	d = clock.Mono() + 2*ms // it fires; then the same again, and a later one
	until(d)
	h.wait(d)
	until(d + 2*ms)

	if got := len(h.slots[0].got); got != 4 {
		t.Errorf("heard %d of 4 pings", got)
	}
}

// noDeadline tests that a deadline of never does not overflow the kernel's clock: the wait must
// sleep until an event ends it.
func (s *suite) noDeadline(t *testing.T) {
	speak := make(chan bool)
	h := s.engine(t, s.listen(t, "127.0.0.1:0", func(c *peer) {
		<-speak
		time.Sleep(20 * time.Millisecond) // time for the other side to begin its wait
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
