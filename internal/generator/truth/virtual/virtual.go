// Package virtual provides a network and a server in memory, for loads in the virtual time of a
// testing/synctest bubble. Computation takes no time there, so that a load measures exact values.
//
//	load ─► Engine ─► World.Serve ─► Reply ─► queue of events ─► sleep until the next ─► load
//
// Serve may be any function; Plan makes one from a truth.Plan, which truth.Serve runs on real
// sockets. Ticking, Sleeping and Refusing make the load generator faulty.
//
// A worker runs in one goroutine. With one load thread all runs are equal to the nanosecond.
// Several threads that act at the same time act in any order.
//
// Non-goals: bytes on sockets, TLS, streams, processor time.
package virtual

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/record"
)

// World is a network with one server. Its zero value connects at once and never answers.
type World struct {
	// Connect returns the duration of connection attempt n, counted from 1, and its error. If it is
	// nil, connecting takes no time.
	Connect func(n int) (time.Duration, error)
	// Serve returns the response to a request. It is called in the order of the requests.
	Serve func(Call) Reply
	// Broken is the error that Wait returns after a request was sent.
	Broken error
	// Wrap wraps each thread's engine in a faulty one.
	Wrap func(load.Engine) load.Engine

	Attempts int     // number of connection attempts
	Opened   []int64 // time of each attempt, by clock.Mono
	Calls    []Call  // tests may empty it
	Most     int     // largest number of concurrent requests
	Engines  []*Engine

	mu       sync.Mutex
	received int // requests
	underWay int
	unlock   bool // load threads have no cores or priority of their own and need no OS threads
	events   int  // counter that keeps the order of events at equal times
}

// Call is a request as the server receives it.
type Call struct {
	Slot   int
	OnConn int   // number on its connection, from 1
	N      int   // number on the server, from 1
	At     int64 // time of sending, by clock.Mono
	Text   string
}

// Reply is a response in pieces. The first is sent After the request arrived, each further one a
// Gap later. The zero Reply is no response.
type Reply struct {
	After  time.Duration
	Gap    time.Duration
	Pieces []string
	Extra  string // unrequested text, sent a Gap after the last piece
	End    bool   // the connection ends after the last piece
	Op     load.Op
	Err    error // of the end; nil: orderly close
}

// Answer returns a good response with a body.
func Answer(after time.Duration, body string) Reply {
	return Reply{After: after, Pieces: []string{fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}}
}

// After returns a Serve function that responds to each request with the body "ok" after d.
func After(d time.Duration) func(Call) Reply {
	return func(Call) Reply { return Answer(d, "ok") }
}

// Lines returns the request lines that the server received, in order.
func (w *World) Lines() (out []string) {
	for _, c := range w.Calls {
		line, _, _ := strings.Cut(c.Text, "\r\n")
		out = append(out, line)
	}
	return out
}

// New returns a thread's engine; it is a load.Spec.Engine.
func (w *World) New(_ netip.AddrPort, slots int) (load.Engine, error) {
	e := &Engine{world: w, slots: make([]slot, slots)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Engines = append(w.Engines, e)
	if w.unlock { // load has locked it, and each wait would cost two thread switches
		runtime.UnlockOSThread()
	}
	if w.Wrap != nil {
		return w.Wrap(e), nil
	}
	return e, nil
}

// Offer runs a load against the world inside a bubble. It fills in missing parts of the spec: one
// GET request that expects "ok", a window of 1 s and a timeout of 10 s. It sets the machine's
// figures in the result, such as processor time and run delay, to zero, because they are real and
// have no meaning in virtual time.
func (w *World) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	if s.Scenario.Requests == nil {
		s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 1, Requests: []load.Request{
			{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Window == 0 {
		s.Window = time.Second
	}
	if s.Engine == nil {
		s.Engine = w.New
	}
	w.unlock = len(s.Cores) == 0 && !s.Ahead
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	res, err := load.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	g := &res.Generator
	res.Generator = record.Gen{Engine: g.Engine, EngineReason: g.EngineReason, Pacing: g.Pacing,
		Wakeup: g.Wakeup, SpinNs: g.SpinNs, Iterations: g.Iterations, BatchMax: g.BatchMax,
		StallMaxNs: g.StallMaxNs}
	return res, nil
}

// Run calls Offer in a new bubble. It fails the test unless each engine is released exactly once.
func (w *World) Run(t *testing.T, s load.Spec) (res *load.Result, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { res, err = w.Offer(t.Context(), s) })
	for i, e := range w.Engines {
		if e.Released != 1 {
			t.Errorf("engine %d was released %d times", i, e.Released)
		}
	}
	return res, err
}

// Good calls Run and fails the test at an error.
func (w *World) Good(t *testing.T, s load.Spec) *load.Result {
	t.Helper()
	res, err := w.Run(t, s)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Engine is a load thread's engine.
type Engine struct {
	Released int

	world    *World
	slots    []slot
	queue    events
	turns    int   // consecutive turns at one time
	turnedAt int64 // that time
}

type slot struct {
	open       bool
	generation int // of its connection
	onConn     int
	ends       int64 // time at which the server ends it
	busy       bool
}

// event is a report about a slot, which is skipped if the slot's connection has changed.
type event struct {
	atNs, order      int64
	slot, generation int
	report           func(h load.Handler)
	last             bool // last piece of a response
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].atNs < q[j].atNs || q[i].atNs == q[j].atNs && q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *events) Push(x any) { *q = append(*q, x.(event)) }

// Pop implements heap.Interface.
func (q *events) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// later queues an event. The caller must have locked the world.
func (e *Engine) later(atNs int64, slot int, last bool, report func(load.Handler)) {
	e.world.events++
	heap.Push(&e.queue, event{atNs, int64(e.world.events), slot, e.slots[slot].generation, report,
		last})
}

// Open implements load.Engine.
func (e *Engine) Open(i int) {
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &e.slots[i]
	if s.open {
		panic("virtual: the slot is already open")
	}
	s.open, s.onConn, s.ends = true, 0, math.MaxInt64
	s.generation++
	now := clock.Mono()
	w.Attempts++
	w.Opened = append(w.Opened, now)
	var d time.Duration
	var err error
	if w.Connect != nil {
		d, err = w.Connect(w.Attempts)
	}
	e.later(now+int64(d), i, false, func(h load.Handler) {
		if err != nil {
			e.Close(i)
			h.Closed(i, clock.Mono(), load.Connecting, err)
			return
		}
		h.Opened(i, clock.Mono())
	})
}

// Send implements load.Engine.
func (e *Engine) Send(i int, b []byte) {
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &e.slots[i]
	if !s.open || s.busy {
		panic("virtual: a request was sent on a slot that is not open and free")
	}
	now := clock.Mono()
	s.busy = true
	w.underWay++
	if now >= s.ends {
		return // the server has closed the connection and never receives it
	}
	s.onConn++
	w.Most = max(w.Most, w.underWay)
	w.received++
	c := Call{Slot: i, OnConn: s.onConn, N: w.received, At: now, Text: string(b)}
	w.Calls = append(w.Calls, c)
	if w.Serve != nil {
		e.reply(i, c.At, w.Serve(c))
	}
}

// reply queues the parts of a response. The caller must have locked the world.
func (e *Engine) reply(i int, came int64, r Reply) {
	atNs := came + int64(r.After)
	for k, piece := range r.Pieces {
		if k > 0 {
			atNs += int64(r.Gap)
		}
		e.later(atNs, i, k == len(r.Pieces)-1, func(h load.Handler) {
			h.Received(i, clock.Mono(), []byte(piece))
		})
	}
	if r.Extra != "" {
		atNs += int64(r.Gap)
		e.later(atNs, i, false, func(h load.Handler) {
			h.Received(i, clock.Mono(), []byte(r.Extra))
		})
	}
	if r.End {
		e.slots[i].ends = atNs
		e.later(atNs, i, true, func(h load.Handler) {
			e.Close(i)
			h.Closed(i, clock.Mono(), r.Op, r.Err)
		})
	}
}

// Close implements load.Engine.
func (e *Engine) Close(i int) {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	e.idle(i)
	e.slots[i].open = false
	e.slots[i].generation++
}

func (e *Engine) idle(i int) {
	if e.slots[i].busy {
		e.slots[i].busy = false
		e.world.underWay--
	}
}

// Wait implements load.Engine: it lets time pass until the next event and reports the due events in
// sequence. It panics if the worker turns too often without letting time pass.
func (e *Engine) Wait(deadline int64, h load.Handler) error {
	e.world.mu.Lock()
	broken := e.world.Broken != nil && e.world.received > 0
	e.world.mu.Unlock()
	if broken {
		return e.world.Broken
	}
	now := clock.Mono()
	e.turn(now)
	if until := min(deadline, e.next()); until > now {
		time.Sleep(time.Duration(until - now))
		now = until
	}
	for e.next() <= now {
		e.turn(now)
		e.world.mu.Lock()
		x := heap.Pop(&e.queue).(event)
		stale := e.slots[x.slot].generation != x.generation
		if x.last && !stale {
			e.idle(x.slot)
		}
		e.world.mu.Unlock()
		if !stale {
			x.report(h)
		}
	}
	return nil
}

// turnsMax limits the turns of a worker at one time.
const turnsMax = 10_000

func (e *Engine) turn(now int64) {
	if e.turns++; now != e.turnedAt {
		e.turns, e.turnedAt = 0, now
	}
	if e.turns > turnsMax {
		panic("virtual: the worker makes no progress in virtual time; a closed load needs " +
			"responses that take time")
	}
}

func (e *Engine) next() int64 {
	if len(e.queue) == 0 {
		return math.MaxInt64
	}
	return e.queue[0].atNs
}

// Unsent implements load.Engine. Requests leave at once.
func (*Engine) Unsent(int) int { return 0 }

// Release implements load.Engine.
func (e *Engine) Release() { e.Released++ }
