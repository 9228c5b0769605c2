package delayed

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/network"
)

// wire is the engine below, in virtual time: it opens connections at once and answers each request
// after 100 µs. It takes up to room bytes of a Push.
type wire struct {
	began int64
	log   []string
	due   []arrival // by time
	room  int
}

// arrival is an event that the wire reports.
type arrival struct {
	atNs   int64
	report func(engine.Handler)
}

func (w *wire) note(form string, args ...any) {
	at := time.Duration(clock.Mono() - w.began).Microseconds()
	w.log = append(w.log, fmt.Sprintf("%d ", at)+fmt.Sprintf(form, args...))
}

func (w *wire) after(d time.Duration, report func(engine.Handler)) {
	w.due = append(w.due, arrival{clock.Mono() + int64(d), report})
	slices.SortStableFunc(w.due, func(a, b arrival) int { return int(a.atNs - b.atNs) })
}

func (w *wire) Open(i int) {
	w.note("open")
	w.after(0, func(h engine.Handler) { h.Opened(i, clock.Mono()) })
}

func (w *wire) Send(i int, b []byte) {
	w.note("send %s", b)
	answer := []byte("re " + string(b))
	w.after(100*time.Microsecond, func(h engine.Handler) { h.Received(i, clock.Mono(), answer) })
}

func (w *wire) Push(_ int, b []byte) int {
	n := min(len(b), w.room)
	w.note("push %d of %d", n, len(b))
	w.room -= n
	return n
}

func (w *wire) Close(int) {
	w.note("close")
	w.due = nil
}

func (w *wire) Release()       {}
func (w *wire) Unsent(int) int { return -1 }

func (w *wire) Wait(deadline int64, h engine.Handler) error {
	if len(w.due) > 0 {
		deadline = min(deadline, w.due[0].atNs)
	}
	time.Sleep(time.Duration(deadline - clock.Mono()))
	for len(w.due) > 0 && w.due[0].atNs <= clock.Mono() {
		x := w.due[0]
		w.due = w.due[1:]
		x.report(h)
	}
	return nil
}

// Opened implements engine.Handler: it notes what the load gets.
func (w *wire) Opened(int, int64)                 { w.note("opened") }
func (w *wire) Received(_ int, _ int64, b []byte) { w.note("received %s", b) }
func (w *wire) Drained(int, int64)                { w.note("drained") }

func (w *wire) Closed(_ int, _ int64, op engine.Op, err error) { w.note("closed %d %v", op, err) }

// checkDelays plays events through a network with a round trip of 400 µs. pass lets time pass.
func checkDelays(t *testing.T, name string, do func(w *wire, e *Engine, pass func(time.Duration)),
	want ...string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := &wire{began: clock.Mono()}
		e := New(w, 2, network.Delay{RoundTrip: 400 * time.Microsecond})
		do(w, e, func(d time.Duration) {
			for end := clock.Mono() + int64(d); clock.Mono() < end; {
				if err := e.Wait(end, w); err != nil {
					t.Error(err)
				}
			}
		})
		if !slices.Equal(w.log, want) {
			t.Errorf("%s:\n %q, want\n %q", name, w.log, want)
		}
	})
}

// TestDelays checks to the microsecond when each event passes.
func TestDelays(t *testing.T) {
	const ms = time.Millisecond
	checkDelays(t, "a request", func(w *wire, e *Engine, pass func(time.Duration)) {
		e.Open(0)
		pass(ms)
		e.Send(0, []byte("a"))
		if n := e.Unsent(0); n != 1 {
			t.Errorf("%d bytes are unsent, want 1", n)
		}
		pass(ms)
		if n, added := e.Unsent(0), e.Added().Max(); n != -1 || e.Passed() != 6 ||
			math.Abs(float64(added)-400e3) > 400 {
			t.Errorf("%d bytes unsent, %d passed, %d ns added", n, e.Passed(), added)
		}
	}, "0 open", "400 opened", "1200 send a", "1500 received re a")
	checkDelays(t, "an end by the service", func(w *wire, e *Engine, pass func(time.Duration)) {
		e.Open(0)
		pass(ms)
		e.Send(0, []byte("a"))
		w.after(310*time.Microsecond, func(h engine.Handler) {
			h.Closed(0, clock.Mono(), engine.Reading, errors.New("gone"))
		})
		e.Send(0, []byte("b")) // both leave at 1200 and are answered at 1300, before the end
		pass(ms)
		e.Close(0)
		pass(ms)
	}, "0 open", "400 opened", "1200 send a", "1200 send b", "1500 received re a",
		"1500 received re b", "1510 closed 2 gone")
	checkDelays(t, "a refused connection", func(w *wire, e *Engine, pass func(time.Duration)) {
		e.Open(1)
		w.due = nil
		w.after(0, func(h engine.Handler) {
			h.Closed(1, clock.Mono(), engine.Connecting, errors.New("refused"))
		})
		pass(ms)
	}, "0 open", "400 closed 0 refused")
	checkDelays(t, "an end by the load", func(w *wire, e *Engine, pass func(time.Duration)) {
		e.Open(0)
		pass(ms)
		e.Send(0, []byte("a"))
		e.Send(0, []byte("b"))
		e.Close(0)
		e.Open(0)
		pass(ms)
	}, "0 open", "400 opened", "1000 send a", "1000 send b", "1000 close", "1000 open",
		"1400 opened")
	checkDelays(t, "a full stream", func(w *wire, e *Engine, pass func(time.Duration)) {
		e.Open(0)
		pass(ms)
		w.room = pushMax - 1
		if n := e.Push(0, make([]byte, pushMax+5)); n != pushMax {
			t.Errorf("%d bytes were accepted, want %d", n, pushMax)
		}
		pass(ms)
		w.room = 3
		w.after(0, func(h engine.Handler) { h.(engine.Drained).Drained(0, clock.Mono()) })
		pass(ms)
	}, "0 open", "400 opened", fmt.Sprintf("1200 push %d of %d", pushMax-1, pushMax),
		"1200 drained", "2000 push 1 of 1")
}
