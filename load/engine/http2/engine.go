package http2

import (
	"errors"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// Engine implements engine.Engine over another one, which has two slots for each of its
// connections: when a server goes away from one (GOAWAY), its answers come there while the next is
// in use.
type Engine struct {
	below   engine.Streamer
	streams int // lanes of a connection
	lanes   []lane
	conns   []conn
	current []uint8 // of each two connections, the one for new requests
	heads   heads
	to      engine.Handler // of the Wait under way
	dirty   []int32        // connections with something to be sent
	untold  []int32        // lanes with something to be told in the next Wait
	text    []byte         // what is being handed over
	callMax int            // bytes of a message of gRPC; 0: no calls of that are made
}

type phase uint8

const (
	shut    phase = iota
	opening       // lane: until its connection is open; connection: until the one below is
	greeted       // connection: open below, but the server has not said its settings
	idle          // lane: without a request; connection: open
	leaving       // connection: the server takes no more
	queued        // lane: its request waits for the limit of streams, or for a connection
	busy          // lane: its request has left
	ending        // lane: its connection has ended, which is being told
)

// lane is what a slot is here: a stream at a time of a connection.
type lane struct {
	phase     phase
	connIndex int32 // its connection; none: it waits for one
	id        uint32
	err       error // why it cannot go on, told in the next Wait

	request []byte // while it is queued
	tail    []byte // of the body, to be sent
	lead    int    // bytes of a message's prefix, to be sent before it
	sends   bool   // among those of the connection that have a body to send
	window  int64  // to send
	room    int64  // that the server may send

	plain     bool // no body follows the answer
	answered  bool // its head has come
	chunks    bool // the body has no length
	remaining int64
	retained  []byte // what is told with the end of the stream: a head, or the body's last byte
	call             // gRPC: its answer, of which all is held
	refused   bool   // gRPC: the call was sent again
}

const none = -1

// New returns an engine over the one below, which has as many slots as Below says, for so many
// streams on each connection. secure says that it speaks TLS.
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

// Below is how many slots the engine below must have.
func Below(slots, streams int) int { return 2 * ((slots + max(streams, 1) - 1) / max(streams, 1)) }

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

// Open implements engine.Engine.
func (e *Engine) Open(i int) {
	l := &e.lanes[i]
	l.phase, l.err = opening, nil
	e.attach(i)
	if l.connIndex != none && e.conns[l.connIndex].phase == idle {
		e.untold = append(e.untold, int32(i))
	}
}

// attach gives a lane the connection that takes new requests, and opens it if there is none. While
// the server goes away from two, there is none.
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

// Close implements engine.Engine. The connection ends with the last lane on it.
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
		l.phase = shut
		if e.detach(l); c.phase != shut && c.members == 0 {
			e.part(int(k), codeNone)
		} else if c.phase == idle {
			e.fill(int(k))
		}
	}
	l.phase, l.err = shut, nil
}

// detach takes a lane off its connection.
func (e *Engine) detach(l *lane) {
	e.conns[l.connIndex].members--
	l.connIndex = none
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
}

// part ends a connection that nobody is on.
func (e *Engine) part(k int, code uint32) {
	e.leave(k, code)
	e.revive(k)
}

// leave ends a connection, with a word to the server if it can still be said.
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

// without is a list without one that is in it.
func without(list []int32, i int32) []int32 {
	k := slices.Index(list, i)
	return slices.Delete(list, k, k+1)
}

// revive gives a connection to those that wait because there was none.
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

var errNoRequest = errors.New("HTTP/2: a request was sent amidst another")

// Send implements engine.Engine.
func (e *Engine) Send(i int, b []byte) {
	l := &e.lanes[i]
	switch l.phase {
	case ending:
		return // of which its Handler is about to hear
	case idle:
	default:
		e.fail(i, errNoRequest)
		return
	}
	l.request, l.phase = b, queued
	if l.connIndex == none || e.conns[l.connIndex].phase != idle {
		if l.connIndex != none {
			e.detach(l)
		}
		if e.attach(i); l.connIndex == none {
			return
		}
	}
	e.queue(i)
}

// queue has a lane's request leave when its connection takes it, which may be now.
func (e *Engine) queue(i int) {
	k := int(e.lanes[i].connIndex)
	c := &e.conns[k]
	c.queue = append(c.queue, int32(i))
	if c.phase == idle {
		e.fill(k)
	}
}

// fail notes that a lane is to end, told in the next Wait.
func (e *Engine) fail(i int, err error) {
	e.lanes[i].err = err
	e.untold = append(e.untold, int32(i))
}

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	e.to = h
	if n := len(e.untold); n > 0 {
		for _, i := range e.untold[:n] {
			e.tell(int(i))
		}
		e.untold = e.untold[:copy(e.untold, e.untold[n:])]
		deadline = math.MinInt64 // something has happened: only look what else
	}
	e.flush()
	return e.below.Wait(deadline, (*ear)(e))
}

// tell says what could not be said at once.
func (e *Engine) tell(i int) {
	l := &e.lanes[i]
	switch {
	case l.err != nil:
		err := l.err
		e.Close(i)
		e.to.Closed(i, clock.Mono(), engine.Writing, err)
	case l.phase == opening && l.connIndex != none && e.conns[l.connIndex].phase == idle:
		l.phase = idle
		e.to.Opened(i, clock.Mono())
	}
}
