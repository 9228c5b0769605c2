// Package nethttp is the engine over Go's network stack and maintained libraries. It serves
// protocols that the engine epoll lacks: HTTP/3, WebSocket and Unix sockets. For TLS, HTTP/2 and
// gRPC it is a reference implementation.
//
//	Send ─► the slot's goroutine ─► library ─► event with its moment ─► queue ─► Wait ─► Handler
//
// The load thread keeps the schedule and the books, as with any engine. Requests and responses are
// HTTP/1.1 text here too: other protocols are converted, so checks and books are the same for all.
// The four moments are taken where they happen, so the queue adds nothing to them. A goroutine per
// slot and a handover per request cost several times what epoll costs; the record has the
// engine's name and cost.
//
// Non-goals: speed.
package nethttp

import (
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/tlsconn"
)

// client is one slot's side of a protocol. Only the slot's goroutine calls its methods.
type client interface {
	// open connects. It reports the duration of a TLS handshake to the engine.
	open(ctx context.Context) error
	// exchange sends the request and passes its response to the sink, piece by piece. An error ends
	// the connection.
	exchange(ctx context.Context, request []byte, s *sink) (engine.Op, error)
	close()
}

// Engine implements engine.Engine.
type Engine struct {
	slots       []slot
	nap         nap // timer on which the load thread sleeps
	asleep      atomic.Bool
	mu          sync.Mutex
	queue, used []event
	handshakes  *hdrhistogram.Histogram
	spoken      string // TLS version and cipher of the last handshake
	resumed     int64
	sessions    tls.ClientSessionCache
	running     sync.WaitGroup
	retained    atomic.Int64 // bytes of incomplete responses
	config      Config
	shared      []shared // connections that several slots share
}

// slot is a connection, or a stream of one, and its goroutine.
type slot struct {
	gen    int32
	cancel context.CancelFunc
	work   chan []byte   // requests; closed to end the goroutine
	unsent *atomic.Int64 // bytes of the last Send, as far as the goroutine counts them
}

// event is a pending call of the Handler.
type event struct {
	slot int32
	gen  int32
	kind kind
	op   engine.Op
	atNs int64
	b    []byte
	err  error
}

type kind uint8

const (
	opened kind = iota
	received
	closed
)

// New returns an engine for a number of slots. It fails if the Config is invalid or the kernel
// refuses the timer.
func New(c Config, slots int) (*Engine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Engine{
		slots: make([]slot, slots), handshakes: newHandshakes(),
		sessions: tls.NewLRUClientSessionCache(1), // there is one server
	}
	if err := e.nap.prepare(); err != nil {
		e.nap.close()
		return nil, err
	}
	c.clients(e, slots)
	return e, nil
}

func newHandshakes() *hdrhistogram.Histogram { return hdrhistogram.New(1, 1<<40, 3) }

// Handshakes implements engine.Handshaker.
func (e *Engine) Handshakes() *hdrhistogram.Histogram { return e.handshakes }

// Session implements engine.Handshaker.
func (e *Engine) Session() (spoken string, resumed int64) { return e.spoken, e.resumed }

// shook records a TLS handshake.
func (e *Engine) shook(ns int64, state tls.ConnectionState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.spoken = tlsconn.Spoken(&state); state.DidResume {
		e.resumed++
	}
	// The timeout bounds the value, far inside the range.
	_ = e.handshakes.RecordValue(max(ns, 1))
}

// Open implements engine.Engine.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	s.gen++
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.work, s.unsent = make(chan []byte, 1), new(atomic.Int64)
	e.running.Add(1)
	to := &sink{e: e, slot: int32(i), gen: s.gen, unsent: s.unsent}
	go e.run(ctx, to, e.newClient(i), s.work)
}

// run serves one connection.
func (e *Engine) run(ctx context.Context, to *sink, c client, work <-chan []byte) {
	defer e.running.Done()
	defer c.close()
	if err := c.open(ctx); err != nil {
		to.put(event{kind: closed, op: engine.Connecting, err: err})
		return
	}
	to.put(event{kind: opened})
	for b := range work {
		if op, err := c.exchange(ctx, b, to); err != nil {
			to.put(event{kind: closed, op: op, err: ending(err)})
			return
		}
	}
}

// Send implements engine.Engine.
func (e *Engine) Send(i int, b []byte) {
	e.slots[i].unsent.Store(0) // unless the client counts
	e.slots[i].work <- b
}

// Unsent implements engine.Engine. gRPC and WebSocket clients do not count.
func (e *Engine) Unsent(i int) int {
	if n := e.slots[i].unsent; n != nil {
		return int(n.Load())
	}
	return 0
}

// Close implements engine.Engine.
func (e *Engine) Close(i int) {
	s := &e.slots[i]
	s.gen++
	if s.cancel == nil {
		return
	}
	s.cancel()
	close(s.work)
	s.cancel = nil
}

// Release implements engine.Engine.
func (e *Engine) Release() {
	for i := range e.slots {
		e.Close(i)
	}
	e.running.Wait()
	for i := range e.shared {
		e.shared[i].close()
	}
	e.nap.close()
}

// sink puts a connection's events into the queue.
type sink struct {
	e         *Engine
	slot, gen int32
	unsent    *atomic.Int64 // bytes of the request that have not left
}

func (s *sink) put(v event) {
	if v.atNs == 0 {
		v.atNs = clock.Mono()
	}
	v.slot, v.gen = s.slot, s.gen
	e := s.e
	e.mu.Lock()
	e.queue = append(e.queue, v)
	e.mu.Unlock()
	if e.asleep.Swap(false) {
		e.nap.end()
	}
}

// answer passes on a piece of a response, which came at a moment and must not change.
func (s *sink) answer(atNs int64, b []byte) { s.put(event{kind: received, atNs: atNs, b: b}) }

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	if !e.take() && deadline > clock.Mono() {
		if err := e.sleep(deadline); err != nil {
			return err
		}
		e.take()
	}
	for k := range e.used {
		v := &e.used[k]
		if e.slots[v.slot].gen != v.gen {
			continue
		}
		switch v.kind {
		case opened:
			h.Opened(int(v.slot), v.atNs)
		case received:
			h.Received(int(v.slot), v.atNs, v.b)
		case closed:
			e.Close(int(v.slot))
			h.Closed(int(v.slot), v.atNs, v.op, v.err)
		}
	}
	clear(e.used)
	e.used = e.used[:0]
	return nil
}

// take takes the queued events and reports whether there are any.
func (e *Engine) take() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue, e.used = e.used[:0], e.queue
	return len(e.used) > 0
}

// sleep returns after an event or at the deadline, and sometimes earlier.
func (e *Engine) sleep(deadline int64) error {
	if err := e.nap.set(deadline); err != nil {
		return err
	}
	e.asleep.Store(true)
	if e.waiting() { // events queued before asleep was set do not wake this thread
		e.asleep.Store(false)
		return nil
	}
	err := e.nap.take()
	e.asleep.Store(false)
	return err
}

func (e *Engine) waiting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue) > 0
}
