package virtual

import (
	"syscall"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
)

// Ticking gives the engine a coarse timer, as many generators have: it gets no events between two
// ticks. Ticks count from the first wait.
func Ticking(tick time.Duration) func(load.Engine) load.Engine {
	return func(e load.Engine) load.Engine { return &ticking{Engine: e, tick: int64(tick)} }
}

type ticking struct {
	load.Engine
	tick, from int64
	began      bool
}

// Wait sleeps until the next tick, whatever the deadline, and then delivers the events so far.
func (e *ticking) Wait(_ int64, h load.Handler) error {
	now := clock.Mono()
	if !e.began {
		e.from, e.began = now, true
	}
	time.Sleep(time.Duration(e.tick - (now-e.from)%e.tick))
	return e.Engine.Wait(now, h) // the deadline has passed, so it only polls
}

// Sleeping stops the engine's thread once for a pause, from after on, counted from the first
// request.
func Sleeping(after, pause time.Duration) func(load.Engine) load.Engine {
	return func(e load.Engine) load.Engine {
		return &sleeping{Engine: e, after: int64(after), pause: pause}
	}
}

type sleeping struct {
	load.Engine
	after, first int64
	pause        time.Duration
	sent, slept  bool
}

// Send records when the first request is sent.
func (e *sleeping) Send(slot int, b []byte) {
	if !e.sent {
		e.first, e.sent = clock.Mono(), true
	}
	e.Engine.Send(slot, b)
}

// Wait sleeps for the pause when it is due.
func (e *sleeping) Wait(deadline int64, h load.Handler) error {
	atNs := e.first + e.after
	if e.sent && !e.slept {
		deadline = min(deadline, atNs)
		if clock.Mono() >= atNs {
			e.slept = true
			time.Sleep(e.pause)
		}
	}
	return e.Engine.Wait(deadline, h)
}

// Preempted takes the thread's core away for busy at the beginning of each period, like another
// program with priority. Periods count from the first wait.
func Preempted(busy, period time.Duration) func(load.Engine) load.Engine {
	return func(e load.Engine) load.Engine {
		return &preempted{Engine: e, busy: int64(busy), period: int64(period)}
	}
}

type preempted struct {
	load.Engine
	busy, period, from int64
	began              bool
}

// Wait sleeps while the core is taken, and then waits at most until it is taken again.
func (e *preempted) Wait(deadline int64, h load.Handler) error {
	now := clock.Mono()
	if !e.began {
		e.from, e.began = now, true
	}
	e.rest(now)
	next := e.from + ((clock.Mono()-e.from)/e.period+1)*e.period
	return e.Engine.Wait(min(deadline, next), h)
}

func (e *preempted) rest(now int64) {
	if atNs := (now - e.from) % e.period; atNs < e.busy {
		time.Sleep(time.Duration(e.busy - atNs))
	}
}

// Refusing refuses sockets for slots from most on.
func Refusing(most int) func(load.Engine) load.Engine {
	return func(e load.Engine) load.Engine { return &refusing{Engine: e, most: most} }
}

type refusing struct {
	load.Engine
	most    int
	refused []int
}

// Open refuses slots from most on.
func (e *refusing) Open(slot int) {
	if slot >= e.most {
		e.refused = append(e.refused, slot)
		return
	}
	e.Engine.Open(slot)
}

// Wait reports the refused slots.
func (e *refusing) Wait(deadline int64, h load.Handler) error {
	refused := e.refused
	e.refused = nil
	for _, slot := range refused {
		h.Closed(slot, clock.Mono(), load.Connecting, syscall.EMFILE)
	}
	return e.Engine.Wait(deadline, h)
}
