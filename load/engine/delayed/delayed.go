// Package delayed implements an engine that adds the delay of a network to the bytes of the engine
// below it. It holds what is sent for the delay of one direction before it passes it on, and what
// is received for the delay of the other direction before it reports it. A new connection is
// reported after the delay of a round trip, as if a SYN and its answer had passed the network.
//
// Bytes of a connection stay in order in each direction. An end of a connection by the service is
// reported after the bytes before it; an end by the load is immediate.
//
// Non-goals: a limit of bandwidth or of bytes under way, loss, and the windows of TCP.
package delayed

import (
	"math"
	"math/bits"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/network"
)

// Engine implements engine.Streamer and engine.Delayer over another engine. Push needs an
// engine.Streamer below.
type Engine struct {
	below  engine.Engine
	stream engine.Streamer // the engine below, if it is one
	delay  network.Delay
	seed   uint64
	slots  []slot
	to     engine.Handler // of the Wait under way
	queue  heap
	order  uint64       // of the next item
	passed int64        // items
	pool   [33][][]byte // free buffers by the logarithm of their size
	added  *hdrhistogram.Histogram
}

// slot is the state of a connection.
type slot struct {
	gen     uint32   // distinguishes a connection from its successor
	ended   bool     // the connection below has ended, and the report is held
	full    bool     // a Push was incomplete, and Drained is still to be called
	crossed bool     // a request passed, and nothing of its response yet
	last    [2]int64 // when the last bytes of each direction are due
	draws   [2]uint64
	size    int    // of the last Send
	unsent  bool   // the last Send was not passed on; remains after the end
	sends   int    // Sends that are held
	bytes   int    // of Pushes that are held or refused
	sent    []byte // the last Send that was passed on; the engine below may still read it
	refused []byte // passed on and not accepted by the engine below

	passedNs, heldNs int64 // when the last request passed, and for how long it was held

	op  engine.Op // of the end
	err error
}

// Directions.
const (
	out = iota
	in
)

// pushMax limits the bytes of a connection that Push holds.
const pushMax = 4 << 20

// New returns an engine that delays the one below, which must have the same number of slots.
func New(below engine.Engine, slots int, d network.Delay) *Engine {
	e := &Engine{below: below, delay: d, slots: make([]slot, slots),
		queue: make(heap, 0, 4*slots), added: hdrhistogram.New(1, 1<<40, 3)}
	e.stream, _ = below.(engine.Streamer)
	return e
}

// Seed implements engine.Delayer.
func (e *Engine) Seed(seed uint64) { e.seed = seed }

// Added implements engine.Delayer.
func (e *Engine) Added() *hdrhistogram.Histogram { return e.added }

// Passed implements engine.Delayer.
func (e *Engine) Passed() int64 { return int64(e.order) + e.passed }

// Below implements engine.Layer.
func (e *Engine) Below() engine.Engine { return e.below }

// draw returns the next delay of a direction of a slot. Draws are numbered by slot, direction and
// count, so they do not depend on the order of events of different connections.
func (e *Engine) draw(i int, direction int) int64 {
	s := &e.slots[i]
	s.draws[direction]++
	return e.delay.OneWay(e.seed, uint64(i)<<40|s.draws[direction]<<1|uint64(direction))
}

// enqueue keeps something of a slot from a moment on until its delay has passed, but no shorter
// than what is before it in its direction.
func (e *Engine) enqueue(x item, i, direction int, delayNs int64) {
	s := &e.slots[i]
	x.slot, x.gen, x.order = int32(i), s.gen, e.order
	x.atNs = max(x.sinceNs+delayNs, s.last[direction])
	s.last[direction] = x.atNs
	e.order++
	e.queue.push(x)
}

// Open implements engine.Engine.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	e.reset(s)
	s.ended, s.unsent = false, false
	e.below.Open(i)
}

// reset forgets what is held for a slot. Items of earlier generations are dropped when they are
// due, and nothing leaves until the slot is opened.
func (e *Engine) reset(s *slot) {
	s.gen++
	s.ended, s.full, s.crossed, s.err = true, false, false, nil
	s.last = [2]int64{math.MinInt64, math.MinInt64}
	s.sends, s.bytes, s.refused = 0, 0, s.refused[:0]
	e.free(s.sent)
	s.sent = nil
}

// Send implements engine.Engine.
func (e *Engine) Send(i int, b []byte) {
	s := &e.slots[i]
	s.size, s.unsent = len(b), true
	s.sends++
	e.enqueue(item{kind: sending, sinceNs: clock.Mono(), b: e.copy(b)}, i, out, e.draw(i, out))
}

// Unsent implements engine.Engine.
func (e *Engine) Unsent(i int) int {
	if s := &e.slots[i]; s.unsent {
		return s.size
	}
	return e.below.Unsent(i)
}

// Push implements engine.Streamer.
func (e *Engine) Push(i int, b []byte) int {
	s := &e.slots[i]
	n := min(len(b), pushMax-s.bytes)
	if s.full = n < len(b); n > 0 {
		s.bytes += n
		x := item{kind: pushing, sinceNs: clock.Mono(), b: e.copy(b[:n])}
		e.enqueue(x, i, out, e.draw(i, out))
	}
	return n
}

// Close implements engine.Engine. What was sent before leaves at once.
func (e *Engine) Close(i int) {
	s := &e.slots[i]
	if !s.ended {
		e.flush(i, s)
		e.below.Close(i)
	}
	e.reset(s)
}

// flush passes on what is held of a connection that ends.
func (e *Engine) flush(i int, s *slot) {
	for s.sends > 0 || s.bytes > len(s.refused) {
		first := -1
		for k := range e.queue {
			x := &e.queue[k]
			if x.slot == int32(i) && x.gen == s.gen && x.kind.leaves() &&
				(first < 0 || x.order < e.queue[first].order) {
				first = k
			}
		}
		if first < 0 {
			return
		}
		x := e.queue[first]
		e.queue[first].kind, e.queue[first].b = dropped, nil
		e.leave(s, &x, x.sinceNs)
	}
}

// Release implements engine.Engine.
func (e *Engine) Release() { e.below.Release() }

// copy returns a copy of b in a buffer of the pool.
func (e *Engine) copy(b []byte) []byte {
	class := bits.Len(uint(len(b)))
	free := &e.pool[class]
	if n := len(*free); n > 0 {
		to := (*free)[n-1]
		*free = (*free)[:n-1]
		return append(to, b...)
	}
	return append(make([]byte, 0, 1<<class), b...)
}

// free returns a buffer to the pool.
func (e *Engine) free(b []byte) {
	if cap(b) > 0 {
		class := bits.Len(uint(cap(b))) - 1
		e.pool[class] = append(e.pool[class], b[:0])
	}
}

// leave passes a request, or a part of one, on to the engine below.
func (e *Engine) leave(s *slot, x *item, now int64) {
	i := int(x.slot)
	s.crossed, s.passedNs, s.heldNs = true, now, now-x.sinceNs
	if x.kind == sending {
		e.below.Send(i, x.b)
		s.sends--
		s.unsent = s.sends > 0
		e.free(s.sent) // the connection has taken it, or the engine below ends the connection
		s.sent = x.b
		return
	}
	if len(s.refused) == 0 {
		n := e.stream.Push(i, x.b)
		s.bytes -= n
		s.refused = append(s.refused, x.b[n:]...)
	} else {
		s.refused = append(s.refused, x.b...)
	}
	e.free(x.b)
}
