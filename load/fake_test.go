package load

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/pace"
)

// world is a network and a server in memory. Its engines use the virtual time of a testing/synctest
// bubble, in which computing takes no time, so results are exact to the nanosecond. Tests outside
// of this package use internal/generator/truth/virtual, which this package cannot import, because
// it imports load.
type world struct {
	connect func(n int) (time.Duration, error) // outcome of the n-th attempt, from 1; nil: at once
	serve   func(call) reply
	wrap    func(*fake) Engine // what the load gets instead of the fake; nil: the fake
	broken  error              // what Wait returns once a request was sent

	mu       sync.Mutex
	attempts int
	opened   []int64 // when each attempt was made
	calls    []call
	under    int // requests under way
	most     int
	engines  []*fake
}

// call is a request as received by the server.
type call struct {
	slot   int
	onConn int // from 1
	n      int // of the whole world, from 1
	at     int64
	text   string
}

// reply is the response: pieces at equal gaps after a delay, then perhaps an end. The zero reply
// never responds.
type reply struct {
	after  time.Duration
	gap    time.Duration
	pieces []string
	extra  string // sent a gap after the last piece, without a request
	end    bool
	err    error // of the end
	op     Op
	unsent int // bytes of the request that never leave
}

func answer(after time.Duration, body string) reply {
	return reply{after: after, pieces: []string{fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)}}
}

// after serves every request alike.
func after(d time.Duration) func(call) reply {
	return func(call) reply { return answer(d, "ok") }
}

// fake is one thread's engine.
type fake struct {
	w        *world
	slots    []fakeSlot
	queue    happenings
	turns    int   // consecutive turns without any time passing
	turnedAt int64 // when
	released int
}

type fakeSlot struct {
	open   bool
	gen    int
	onConn int
	busy   bool
	unsent int
}

// happening is a future event of the engine. It is dropped if the slot has a different connection
// by then.
type happening struct {
	at        int64
	order     int
	slot, gen int
	tell      func(h Handler)
	last      bool // of the response's pieces
}

type happenings []happening

func (q happenings) Len() int { return len(q) }
func (q happenings) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q happenings) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *happenings) Push(x any)   { *q = append(*q, x.(happening)) }
func (q *happenings) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func (w *world) engine(_ netip.AddrPort, slots int) (Engine, error) {
	f := &fake{w: w, slots: make([]fakeSlot, slots)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.engines = append(w.engines, f)
	if w.wrap != nil {
		return w.wrap(f), nil
	}
	return f, nil
}

var ordered int

func (f *fake) later(at int64, slot int, last bool, tell func(Handler)) {
	ordered++ // the caller holds the world's lock
	heap.Push(&f.queue, happening{at, ordered, slot, f.slots[slot].gen, tell, last})
}

func (f *fake) Open(i int) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	s := &f.slots[i]
	if s.open {
		panic("the slot is open already")
	}
	s.open, s.onConn = true, 0
	s.gen++
	now := clock.Mono()
	f.w.attempts++
	f.w.opened = append(f.w.opened, now)
	var d time.Duration
	var err error
	if f.w.connect != nil {
		d, err = f.w.connect(f.w.attempts)
	}
	s.unsent = 0
	f.later(now+int64(d), i, false, func(h Handler) {
		if err != nil {
			f.Close(i)
			h.Closed(i, clock.Mono(), Connecting, err)
			return
		}
		h.Opened(i, clock.Mono())
	})
}

func (f *fake) Send(i int, b []byte) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	s := &f.slots[i]
	if !s.open || s.busy {
		panic("sent on a slot that is not open and free")
	}
	s.busy = true
	s.onConn++
	f.w.under++
	f.w.most = max(f.w.most, f.w.under)
	c := call{slot: i, onConn: s.onConn, n: len(f.w.calls) + 1, at: clock.Mono(), text: string(b)}
	f.w.calls = append(f.w.calls, c)
	r := f.w.serve(c)
	s.unsent = r.unsent
	at := c.at + int64(r.after)
	for k, piece := range r.pieces {
		f.later(at, i, k == len(r.pieces)-1, func(h Handler) {
			h.Received(i, clock.Mono(),
				[]byte(piece))
		})
		at += int64(r.gap)
	}
	if r.extra != "" {
		f.later(at, i, false, func(h Handler) { h.Received(i, clock.Mono(), []byte(r.extra)) })
	}
	if r.end {
		f.later(at, i, true, func(h Handler) {
			f.Close(i)
			h.Closed(i, clock.Mono(), r.op, r.err)
		})
	}
}

func (f *fake) Close(i int) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.idle(i)
	f.slots[i].open = false
	f.slots[i].gen++
}

func (f *fake) idle(i int) {
	if f.slots[i].busy {
		f.slots[i].busy = false
		f.w.under--
	}
}

// Wait delivers one event after another, as an engine may, and lets time pass until the next. It
// detects a worker that turns without letting time pass.
func (f *fake) Wait(deadline int64, h Handler) error {
	f.w.mu.Lock()
	broken := f.w.broken != nil && len(f.w.calls) > 0
	f.w.mu.Unlock()
	if broken {
		return f.w.broken
	}
	now := clock.Mono()
	f.turn(now)
	if until := min(deadline, f.next()); until > now {
		time.Sleep(time.Duration(until - now))
		now = until
	}
	for f.next() <= now {
		f.turn(now)
		f.w.mu.Lock()
		e := heap.Pop(&f.queue).(happening)
		stale := f.slots[e.slot].gen != e.gen
		if e.last && !stale {
			f.idle(e.slot)
		}
		f.w.mu.Unlock()
		if !stale {
			e.tell(h)
		}
	}
	return nil
}

func (f *fake) turn(now int64) {
	if f.turns++; now != f.turnedAt {
		f.turns, f.turnedAt = 0, now
	}
	if f.turns > 10_000 {
		panic("the worker turns without end at one moment")
	}
}

func (f *fake) next() int64 {
	if len(f.queue) == 0 {
		return never
	}
	return f.queue[0].at
}

func (f *fake) Release() { f.released++ }

func (f *fake) Unsent(slot int) int { return f.slots[slot].unsent }

// simulate runs a load in virtual time against the world, with defaults for missing fields of the
// spec, and checks what must be true of every run: each engine is released once.
func simulate(t *testing.T, w *world, s Spec) (res *Result, err error) {
	t.Helper()
	if s.Scenario.Requests == nil {
		s.Scenario = Scenario{Requests: []Request{
			{Method: "GET", Path: "/", Want: "ok", HasWant: true}}}
	}
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Window == 0 {
		s.Window = time.Second
	}
	if s.Engine == nil {
		s.Engine = w.engine
	}
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	ctx := t.Context()
	synctest.Test(t, func(*testing.T) {
		res, err = Run(context.WithoutCancel(ctx), s)
	})
	for i, e := range w.engines {
		if e.released != 1 {
			t.Errorf("engine %d was released %d times", i, e.released)
		}
	}
	return res, err
}

// good is simulate for runs that must succeed.
func good(t *testing.T, w *world, s Spec) *Result {
	t.Helper()
	res, err := simulate(t, w, s)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// lines returns the request lines that the server received, in order.
func (w *world) lines() (out []string) {
	for _, c := range w.calls {
		line, _, _ := strings.Cut(c.text, "\r\n")
		out = append(out, line)
	}
	return out
}

var errRefused = errors.New("connection refused")

// refuse is a network without a listener.
func refuse(int) (time.Duration, error) { return time.Millisecond, errRefused }

// ms is a millisecond in ns.
const ms = int64(time.Millisecond)

// at returns a schedule with a constant rate.
func at(arrivals string, perS float64) pace.Schedule {
	return pace.Schedule{Arrivals: arrivals, Rate: pace.Flat(perS)}
}

// even returns a schedule with equal gaps.
func even(perS float64) pace.Schedule { return at("constant", perS) }
