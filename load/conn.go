package load

import (
	"prony.example/load/engine"
	"prony.example/load/engine/http1"
	"prony.example/load/engine/socket"
	"prony.example/load/template"
)

// phase is the state of a connection.
type phase uint8

const (
	dead    phase = iota // closed; since is when it may be opened again
	opening              // connect is under way
	idle                 // open, no request under way
	busy                 // a request is under way
)

// task is what a connection is used for.
type task uint8

const (
	spare   task = iota // nothing: in the ring of free connections once it is open
	waiting             // a request is due and leaves as soon as the connection is open
	resting             // the turn continues when a timer fires
	working             // a request is under way
)

// oddMax bounds the bytes that are kept from where a body begins to differ.
const oddMax = 24

// conn is one connection of a worker and the turn on it: a request, or a flow of requests.
type conn struct {
	phase   phase
	task    task
	dirty   bool // the body differs from what it should be
	served  bool // has answered since it was opened
	met     bool // has been open before
	traced  bool // the request carries a trace id
	pending bool // the request waits in the engine; see engine.Queueing
	route   *route
	due     int64          // when the request was to be sent
	passed  int64          // when it was passed to the engine
	sent    int64          // when it left the engine
	first   int64          // first byte of the response, 0 before it
	since   int64          // when the connect began, when it may be retried, or when it became free
	pos     int            // bytes of the body that matched so far
	place   template.Place // position in a body with source ports that matched so far
	odds    int            // bytes in odd
	odd     [oddMax]byte
	out     []byte
	want    []byte
	sends   []byte // backing of out if it varies
	wantBuf []byte // backing of want if it varies
	resp    http1.Response

	prev, next int32 // in the list of requests under way, oldest first
	late       int64 // upper bound of the avoidable delay of its last response; see lateness
	sample     int32 // place of the request in the book's sample, from 1; 0: none
	answers    int32 // since it was opened
	repeats    int32 // how often the request was sent again; see retry.go

	step     int32  // of the flow
	k        uint64 // index of the turn
	key      uint64 // the key drawn for the turn
	begun    int64  // when the turn was due
	until    int64  // users: the moment from which this user is inactive
	pause    uint64 // users: how often this user has paused
	draw     uint64 // of the request: selects it for tracing
	vars     [][]byte
	jar      jar    // the user's cookies
	base     jar    // those of the setup
	retained []byte // body of the response, for checks, extraction or the text of an error
}

const none = -1

// Opened implements Handler.
func (w *worker) Opened(i int, atNs int64) {
	c := &w.conns[i]
	w.book.connected(atNs - c.since)
	c.resp.Reset()
	w.alive++
	if i >= w.first && !c.met {
		w.coming--
	}
	c.met = true
	c.phase, c.since, c.answers = idle, atNs, 0
	w.available(i, atNs)
}

// available continues the turn that waits for connection i, or offers the connection for a new
// turn.
func (w *worker) available(i int, now int64) {
	switch c := &w.conns[i]; {
	case c.task == waiting && c.repeats > 0:
		w.sendAgain(int32(i))
	case c.task == waiting:
		w.send(int32(i), now)
	case c.task == spare && w.cfg.users == nil:
		w.push(int32(i))
		w.more(now)
	}
}

// drop closes the connection and opens it again at once.
func (w *worker) drop(i int, now int64) {
	w.engine.Close(i)
	w.gone(i)
	w.reopen(i, now)
}

// gone removes connection i from the count of open connections.
func (w *worker) gone(i int) {
	c := &w.conns[i]
	if c.phase == idle && c.task == spare {
		w.remove(int32(i))
	}
	if c.phase == idle || c.phase == busy {
		w.alive--
	}
	c.phase = dead
}

// reopen renews a connection. It waits if the server closed it without a single response; otherwise
// client and server would loop at full speed.
func (w *worker) reopen(i int, now int64) {
	w.book.reconnected(now)
	if c := &w.conns[i]; !c.served {
		c.phase, c.since = dead, now+retryAfterNs
		return
	}
	w.open(i, now)
}

func (w *worker) open(i int, now int64) {
	c := &w.conns[i]
	c.phase, c.since, c.served = opening, now, false
	c.resp.Reset()
	w.engine.Open(i)
}

// Closed implements Handler.
func (w *worker) Closed(i int, atNs int64, op Op, err error) {
	c := &w.conns[i]
	if err == engine.ErrTruncated && !c.resp.EOF() {
		err = nil // the response has an end of its own
	}
	why := c.ending(err)
	switch c.phase {
	case busy:
		if err == nil && c.resp.EOF() {
			c.resp.Close = true
			w.finish(i, atNs, 0)
			return
		}
		f := failRead
		if op == Writing {
			f = failWrite
		}
		if b, ok := err.(engine.Unsolicited); ok {
			w.unrequested(c, atNs, []byte(b))
		}
		if untaken, sure := w.untaken(i, err); untaken {
			if c.route.repeatable || sure {
				w.retry(i, atNs)
				return
			}
			if f = failClosed; w.cfg.serial {
				why.text = notRepeatable
			} else {
				why.text += perhapsProcessed
			}
		}
		w.lost(i, atNs, f, why)
		w.gone(i)
		w.reopen(i, atNs)
		w.next(i, atNs, false)
	case opening:
		if i >= w.first && !c.met {
			w.turnedAway(i, atNs)
			return
		}
		w.book.refused(atNs, why)
		c.phase, c.since = dead, atNs+retryAfterNs
	case idle:
		if !c.served {
			w.idleNs = min(w.idleNs, atNs-c.since)
		}
		w.gone(i)
		w.reopen(i, atNs)
	}
}

// ending returns why connection c has ended; err is nil if the peer closed it in order.
func (c *conn) ending(err error) reason {
	switch {
	case err != nil:
		explained := socket.Explain(err, false)
		return reason{explained.Error(), socket.Blame(explained)}
	case c.first == 0:
		return because("the server closed the connection without an answer")
	}
	return because("the server closed the connection before the answer was whole")
}

// The ring of idle connections. The longest idle goes first, so the load spreads over all of them.

func (w *worker) push(i int32) {
	w.conns[i].phase = idle
	pos := w.freeAt + w.freeN
	if pos >= len(w.free) {
		pos -= len(w.free)
	}
	w.free[pos] = i
	w.freeN++
}

func (w *worker) pop() int32 {
	i := w.free[w.freeAt]
	w.freeAt++
	if w.freeAt == len(w.free) {
		w.freeAt = 0
	}
	w.freeN--
	return i
}

// remove takes a connection out of the middle; it happens only when an idle connection closes.
func (w *worker) remove(i int32) {
	n := w.freeN
	for range n {
		if j := w.pop(); j != i {
			w.push(j)
		}
	}
}

// The list of requests under way. All have the same timeout, so the oldest expires first and no
// request needs its own timer.

func (w *worker) link(i int32) {
	c := &w.conns[i]
	c.prev, c.next = w.newest, none
	if w.newest != none {
		w.conns[w.newest].next = i
	} else {
		w.oldest = i
	}
	w.newest = i
}

func (w *worker) unlink(i int32) {
	c := &w.conns[i]
	if c.prev != none {
		w.conns[c.prev].next = c.next
	} else {
		w.oldest = c.next
	}
	if c.next != none {
		w.conns[c.next].prev = c.prev
	} else {
		w.newest = c.prev
	}
}
