package http2

import (
	"errors"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// Engine implements engine.Engine over another engine, which has two slots for each connection:
// after a GOAWAY, pending responses arrive on one while the other takes new requests.
type Engine struct {
	below   engine.Streamer
	streams int // lanes per connection
	lanes   []lane
	conns   []conn
	current []uint8 // of each pair of connections, the one for new requests
	heads   heads
	to      engine.Handler    // of the Wait under way
	departs engine.Departures // the same, if it is one
	dirty   []int32           // connections with something to send
	batch   batch
	untold  []int32 // lanes with an event for the next Wait
	text    []byte  // buffer for text passed to the Handler
	callMax int     // maximum bytes of a gRPC message; 0: no gRPC
	short   int     // see Shortage
}

type phase uint8

const (
	shut    phase = iota
	opening       // lane: until its connection is open; connection: until the one below is open
	greeted       // connection: open below, but the server's settings have not come
	idle          // lane: no request; connection: open
	leaving       // connection: the server accepts no more requests
	queued        // lane: its request waits for the stream limit or a connection
	busy          // lane: its request was sent
	ending        // lane: its connection has ended, and the Handler is being called
)

// lane is the state of a slot: a connection's stream, one at a time.
type lane struct {
	phase     phase
	connIndex int32 // its connection; none: it waits for one
	id        uint32
	err       error // why it must end; reported in the next Wait

	request []byte // while it is queued
	tail    []byte // rest of the body to send
	lead    int    // bytes of a message's prefix to send before tail
	sends   bool   // in the connection's list of bodies
	size    int    // of the request
	unsent  int    // bytes of the request that have no frame yet; remains after its end
	window  int64  // send window
	room    int64  // receive window that is left

	waits  bool  // the request did not leave at once
	fresh  bool  // the request has a stream, and its frames are not pushed yet
	freeNs int64 // when the stream that it waited for was permitted, or engine.AtOnce

	plain     bool // the response has no body
	answered  bool // the response's head has come
	chunks    bool // the body has no length
	remaining int64
	retained  []byte // held until the stream ends: a head, or the body's last byte
	call             // gRPC: the response, which is held completely
	refused   bool   // gRPC: the call was sent again
}

const none = -1

// New returns an engine over the one below, which must have Below(slots, streams) slots, with this
// number of streams per connection. secure reports whether the engine below uses TLS.
func New(below engine.Streamer, slots, streams int, secure bool) *Engine {
	streams = max(streams, 1)
	groups := (slots + streams - 1) / streams
	e := &Engine{below: below, streams: streams, lanes: make([]lane, slots),
		conns: make([]conn, 2*groups), current: make([]uint8, groups)}
	if e.heads.scheme = placeHTTP; secure {
		e.heads.scheme = placeHTTPS
	}
	for i := range e.lanes {
		e.lanes[i].connIndex = none
	}
	places := 4
	for places < 4*streams {
		places *= 2
	}
	for k := range e.conns {
		e.conns[k].places = make([]int32, places)
	}
	return e
}

// Below returns the number of slots that the engine below must have.
func Below(slots, streams int) int { return 2 * ((slots + max(streams, 1) - 1) / max(streams, 1)) }

// Below implements engine.Layer.
func (e *Engine) Below() engine.Engine { return e.below }

// Handshakes implements engine.Handshaker.
func (e *Engine) Handshakes() *hdrhistogram.Histogram {
	if h, ok := e.below.(engine.Handshaker); ok {
		return h.Handshakes()
	}
	return hdrhistogram.New(1, 2, 1)
}

// Session implements engine.Handshaker.
func (e *Engine) Session() (spoken string, resumed int64) {
	if h, ok := e.below.(engine.Handshaker); ok {
		return h.Session()
	}
	return "", 0
}

// Shortage implements engine.Limited.
func (e *Engine) Shortage() int { return e.short }

// Queues implements engine.Queueing.
func (e *Engine) Queues() bool { return true }

// Open implements engine.Engine.
func (e *Engine) Open(i int) {
	l := &e.lanes[i]
	l.phase, l.err, l.unsent = opening, nil, 0
	e.attach(i)
	if l.connIndex != none && e.conns[l.connIndex].phase == idle {
		e.untold = append(e.untold, int32(i))
	}
}

// attach attaches a lane to the connection for new requests, and opens the connection if necessary.
// If the server is leaving both connections, the lane gets none.
func (e *Engine) attach(i int) {
	g := i / e.streams
	k := 2*g + int(e.current[g])
	if e.conns[k].phase == leaving {
		e.current[g] ^= 1
		k ^= 1
	}
	l, c := &e.lanes[i], &e.conns[k]
	if c.phase == leaving {
		l.connIndex = none
		return
	}
	l.connIndex = int32(k)
	c.members++
	if c.phase == shut {
		c.reset(e.callMax > 0)
		e.below.Open(k)
	}
}

// Close implements engine.Engine. A connection is closed with the last lane on it.
func (e *Engine) Close(i int) {
	l := &e.lanes[i]
	if k := l.connIndex; k != none {
		c := &e.conns[k]
		switch l.phase {
		case queued:
			c.queue = without(c.queue, int32(i))
		case busy:
			c.out = appendNumber(c.out, typeReset, l.id, codeCancel)
			e.free(i)
			e.soil(int(k))
		}
		l.phase, e.batch.atNs = shut, clock.Mono()
		if e.detach(l); c.phase != shut && c.members == 0 {
			e.part(int(k), codeNone)
		} else if c.phase == idle {
			e.fill(int(k))
		}
	}
	l.phase, l.err, l.refused = shut, nil, false
}

// detach removes a lane from its connection.
func (e *Engine) detach(l *lane) {
	e.conns[l.connIndex].members--
	l.connIndex = none
}

// quit removes a lane without a stream from its connection, which ends with its last lane.
func (e *Engine) quit(l *lane) {
	k := int(l.connIndex)
	if e.detach(l); e.conns[k].members == 0 {
		e.part(k, codeNone)
	}
}

// free ends a lane's stream.
func (e *Engine) free(i int) {
	l := &e.lanes[i]
	c := &e.conns[l.connIndex]
	c.places[c.place(l.id)] = 0
	c.active--
	if l.sends {
		l.sends = false
		c.bodies = without(c.bodies, int32(i))
	}
	l.phase, l.tail = idle, nil
	l.withdraw()
}

// withdraw marks the request of a lane that loses its stream as unsent if its frames were not
// pushed.
func (l *lane) withdraw() {
	if l.fresh {
		l.fresh, l.unsent = false, l.size
	}
}

// part ends a connection without lanes.
func (e *Engine) part(k int, code uint32) {
	e.leave(k, code)
	e.revive(k)
}

// leave closes a connection, after a GOAWAY if it can still be sent.
func (e *Engine) leave(k int, code uint32) {
	c := &e.conns[k]
	if c.phase != opening {
		c.out = appendGoAway(c.out, code)
		if !c.full {
			e.below.Push(k, c.out[c.sent:])
		}
	}
	c.phase = shut
	c.gen++
	e.below.Close(k)
}

// without removes i, which must be in the list.
func without(list []int32, i int32) []int32 {
	k := slices.Index(list, i)
	return slices.Delete(list, k, k+1)
}

// revive attaches lanes that wait for a connection.
func (e *Engine) revive(k int) {
	g := k / 2
	for i := g * e.streams; i < min((g+1)*e.streams, len(e.lanes)); i++ {
		l := &e.lanes[i]
		if l.connIndex == none && (l.phase == opening || l.phase == queued) {
			if e.attach(i); l.connIndex != none && l.phase == queued {
				e.queue(i)
			}
		}
	}
}

// Release implements engine.Engine.
func (e *Engine) Release() { e.below.Release() }

var errNoRequest = errors.New("HTTP/2: a request was sent within another")

// Send implements engine.Engine.
func (e *Engine) Send(i int, b []byte) {
	l := &e.lanes[i]
	l.size, l.unsent = len(b), len(b)
	switch l.phase {
	case ending:
		return // the Handler is about to get its Closed
	case idle:
	default:
		e.fail(i, errNoRequest)
		return
	}
	if l.connIndex != none && e.conns[l.connIndex].phase != idle {
		e.quit(l)
	}
	l.request, l.phase, l.waits = b, queued, false
	if l.connIndex == none {
		e.attach(i)
	}
	if l.connIndex != none {
		e.queue(i)
	}
	l.waits = l.phase == queued
}

// Unsent implements engine.Engine. Of a connection's frames, up to outMax bytes can wait for the
// kernel.
func (e *Engine) Unsent(i int) int { return e.lanes[i].unsent }

// queue queues a lane's request, which leaves as soon as its connection accepts it.
func (e *Engine) queue(i int) {
	k := int(e.lanes[i].connIndex)
	c := &e.conns[k]
	c.queue = append(c.queue, int32(i))
	if c.phase == idle {
		e.fill(k)
	}
}

// fail ends a lane in the next Wait with an error.
func (e *Engine) fail(i int, err error) {
	e.lanes[i].err = err
	e.untold = append(e.untold, int32(i))
}

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	e.to = h
	e.departs, _ = h.(engine.Departures)
	if n := len(e.untold); n > 0 {
		for _, i := range e.untold[:n] {
			e.tell(int(i))
		}
		e.untold = e.untold[:copy(e.untold, e.untold[n:])]
		deadline = math.MinInt64 // an event was delivered: only poll for more
	}
	e.flush()
	err := e.below.Wait(deadline, (*ear)(e))
	e.flush() // what the events of this Wait led to, in one write for each connection
	return err
}

// tell reports an event that could not be reported at once.
func (e *Engine) tell(i int) {
	l := &e.lanes[i]
	switch {
	case l.err != nil:
		err := l.err
		e.Close(i)
		e.to.Closed(i, clock.Mono(), engine.Writing, err)
	case l.phase != opening || l.connIndex == none:
	case e.conns[l.connIndex].phase == idle:
		l.phase = idle
		e.to.Opened(i, clock.Mono())
	case e.conns[l.connIndex].phase == leaving:
		l.phase = shut
		e.quit(l)
		e.Open(i)
	}
}
