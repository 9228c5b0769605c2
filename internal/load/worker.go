package load

import (
	"bytes"

	"prony/internal/clock"
	"prony/internal/load/h1"
	"prony/internal/pace"
)

// phase of a connection.
type phase uint8

const (
	dead    phase = iota // closed; retryAt says when it may be opened again
	opening              // connect is under way
	idle                 // open and free
	busy                 // a request is under way
)

// conn is one connection of a worker.
type conn struct {
	phase  phase
	dirty  bool // the body differs from what it should be
	served bool // has answered since it was opened
	route  *route
	due    int64 // when the request was to be sent
	sent   int64
	first  int64 // first byte of the answer, 0 before it
	since  int64 // when the connect began, when it may be retried, or when it became free
	at     int   // bytes of the body compared so far
	out    []byte
	want   []byte
	sends  []byte // backing of out when it carries a key
	wants  []byte // likewise of want
	resp   h1.Response

	prev, next int32 // in the list of requests under way, oldest first
}

// worker is one load thread: its connections, its share of the schedule, its books. Nothing in it
// is shared while it runs, but for the two counters in live.
type worker struct {
	cfg    *config
	engine Engine
	plan   *plan
	conns  []conn
	book   *book
	live   *live

	free   []int32 // idle connections, a ring, longest idle first
	freeAt int
	freeN  int

	oldest, newest int32 // requests under way, in the order they were sent
	inFlight       int

	arrivals pace.Process
	nextDue  int64  // the schedule's next arrival, absolute
	k        uint64 // index of the next request, over all workers
	alive    int    // connections that are idle or busy

	stop      bool
	schedstat int // descriptor of the thread's, -1 for none
}

const none = -1

// retryAfterNs spaces attempts to reconnect, so that a dead server does not turn the thread into a
// busy loop.
const retryAfterNs = 20e6

// tickNs bounds how late timeouts, retries and a stop are noticed.
const tickNs = 10e6

func newWorker(cfg *config, p *plan, id, conns int) *worker {
	w := &worker{
		cfg: cfg, plan: p, conns: make([]conn, conns), free: make([]int32, conns),
		oldest: none, newest: none, k: uint64(id), schedstat: -1,
	}
	for i := range w.conns {
		c := &w.conns[i]
		c.sends = make([]byte, 0, p.outMax)
		c.wants = make([]byte, 0, p.inMax)
	}
	return w
}

// connect opens all connections and serves the engine until each is open or has failed, or the
// bound is hit.
func (w *worker) connect(deadline int64) error {
	for i := range w.conns {
		w.open(i, clock.Mono())
	}
	for w.pending() && clock.Mono() < deadline {
		if err := w.engine.Wait(clock.Mono()+tickNs, w); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) pending() bool {
	for i := range w.conns {
		if w.conns[i].phase == opening {
			return true
		}
	}
	return false
}

// loop is the hot loop: what is due goes out on what is free, then wait for whichever comes first,
// an answer or the next moment.
func (w *worker) loop() error {
	if w.arrivals != nil {
		w.nextDue = w.cfg.start + w.arrivals.Next()
	} else {
		w.nextDue = w.cfg.start
	}
	nextTick := w.cfg.start
	for {
		now := clock.Mono()
		if now >= nextTick {
			w.tick(now)
			nextTick = now + tickNs
		}
		if now >= w.book.boundary {
			w.book.cross(now)
		}
		w.live.done.Store(w.book.total)
		if w.over(now) {
			w.book.end(now, w.inFlight)
			return nil
		}
		w.more(now)
		if err := w.engine.Wait(w.deadline(nextTick), w); err != nil {
			return err
		}
	}
}

// over reports whether nothing is left to wait for.
func (w *worker) over(now int64) bool {
	if now < w.cfg.closeAt {
		return w.stop
	}
	if now >= w.cfg.endAt || w.stop {
		return true
	}
	unsent := w.arrivals != nil && w.nextDue < w.cfg.closeAt
	return w.inFlight == 0 && !unsent
}

// dispatch sends what is due on connections that are free. In the open model a due arrival that
// finds none stays at the head of the schedule: the schedule itself is the queue, so it can neither
// overflow nor drop anything.
func (w *worker) dispatch(now int64) {
	if w.arrivals == nil {
		for w.freeN > 0 {
			w.send(w.pop(), now)
		}
		return
	}
	for w.freeN > 0 && w.nextDue <= now && w.nextDue < w.cfg.closeAt {
		w.send(w.pop(), w.nextDue)
		w.nextDue = w.cfg.start + w.arrivals.Next()
	}
}

func (w *worker) deadline(nextTick int64) int64 {
	d := min(nextTick, w.book.boundary, w.cfg.endAt)
	if w.arrivals != nil && w.freeN > 0 && w.nextDue < w.cfg.closeAt {
		d = min(d, w.nextDue)
	}
	return d
}

// send writes the next request of the scenario on connection i.
func (w *worker) send(i int32, due int64) {
	c := &w.conns[i]
	r, key := w.plan.draw(w.k)
	w.k += uint64(w.cfg.threads)
	c.route = r
	if r.out.fixed {
		c.out = r.out.parts[0]
	} else {
		c.sends = r.out.render(c.sends[:0], key)
		c.out = c.sends
	}
	if r.want.fixed {
		c.want = r.want.parts[0]
	} else {
		c.wants = r.want.render(c.wants[:0], key)
		c.want = c.wants
	}
	c.phase, c.due, c.first, c.at, c.dirty = busy, due, 0, 0, false
	w.link(i)
	now := clock.Mono()
	c.sent = now
	if w.arrivals == nil {
		c.due = now
	}
	w.flow(now, +1)
	w.book.sent(c.due, c.since, now, len(c.out))
	w.engine.Send(int(i), c.out)
}

// flow books how many requests were under way until now, then changes the number.
func (w *worker) flow(now int64, change int) {
	w.book.level(now, w.inFlight)
	w.inFlight += change
}

// Opened implements Handler.
func (w *worker) Opened(i int) {
	c := &w.conns[i]
	now := clock.Mono()
	w.book.connected(now - c.since)
	c.resp.Reset()
	w.alive++
	c.since = now
	w.push(int32(i))
	w.more(now)
}

// more sends what may be sent now. Whatever becomes free calls it, without waiting for the next
// turn of the loop.
func (w *worker) more(now int64) {
	if now >= w.cfg.start && !w.stop && (now < w.cfg.closeAt || w.arrivals != nil) {
		w.dispatch(now)
	}
}

// Received implements Handler.
func (w *worker) Received(i int, b []byte) {
	c := &w.conns[i]
	now := clock.Mono()
	w.book.bytesIn(now, len(b))
	if c.phase != busy {
		w.drop(i, now) // bytes that no request asked for: the stream cannot be trusted
		return
	}
	if c.first == 0 {
		c.first = now
	}
	for len(b) > 0 {
		n, body, done, err := c.resp.Next(b)
		if err != nil {
			w.fail(i, now, failParse, err.Error())
			return
		}
		if len(body) > 0 {
			w.compare(c, body)
		}
		b = b[n:]
		if done {
			w.finish(i, now, len(b) == 0)
			return
		}
	}
}

// compare holds a piece of the body against what it should be. The first difference marks the
// answer; the rest is read on, so that the connection stays usable.
func (w *worker) compare(c *conn, body []byte) {
	if !c.route.check || c.dirty {
		return
	}
	end := c.at + len(body)
	if end > len(c.want) || !bytes.Equal(body, c.want[c.at:end]) {
		c.dirty = true
		return
	}
	c.at = end
}

// finish books a whole answer and frees the connection, or renews it when the server will close it
// or has sent more than the answer.
func (w *worker) finish(i int, now int64, clean bool) {
	c := &w.conns[i]
	w.unlink(int32(i))
	w.flow(now, -1)
	r := c.route
	bad := c.dirty || r.check && c.at != len(c.want) ||
		!r.check && r.size >= 0 && c.resp.Bytes != r.size
	switch {
	case c.resp.Status != r.status:
		w.book.failed(c, now, failStatus, "")
	case bad:
		w.book.failed(c, now, failBody, "")
	default:
		w.book.done(c, now)
	}
	c.served = true
	again := !c.resp.Close && clean
	c.resp.Reset()
	if !again {
		w.drop(i, now)
		return
	}
	c.since = now
	w.push(int32(i))
	w.more(now)
}

// fail books a request that broke its connection.
func (w *worker) fail(i int, now int64, f class, cause string) {
	c := &w.conns[i]
	w.unlink(int32(i))
	w.flow(now, -1)
	w.book.failed(c, now, f, cause)
	w.drop(i, now)
}

// drop closes the connection and opens it again at once.
func (w *worker) drop(i int, now int64) {
	w.engine.Close(i)
	w.gone(i)
	w.reopen(i, now)
}

// gone takes connection i out of the books of the living.
func (w *worker) gone(i int) {
	c := &w.conns[i]
	if c.phase == idle {
		w.remove(int32(i))
	}
	if c.phase == idle || c.phase == busy {
		w.alive--
	}
	c.phase = dead
}

// reopen renews a connection: at once when it has been of use, after a pause when the server closed
// it without a single answer, or the two would keep each other busy.
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
func (w *worker) Closed(i int, op Op, err error) {
	c := &w.conns[i]
	now := clock.Mono()
	cause := "the server closed the connection before the answer was whole"
	if err != nil {
		cause = err.Error()
	}
	switch c.phase {
	case busy:
		if err == nil && c.resp.EOF() {
			w.endByClose(i, now)
			return
		}
		f := failRead
		if op == Writing {
			f = failWrite
		}
		w.unlink(int32(i))
		w.flow(now, -1)
		w.book.failed(c, now, f, cause)
		w.gone(i)
		w.reopen(i, now)
	case opening:
		w.book.refused(now, cause)
		c.phase, c.since = dead, now+retryAfterNs
	case idle:
		w.gone(i)
		w.reopen(i, now)
	}
}

// endByClose finishes an answer whose body ends with the connection.
func (w *worker) endByClose(i int, now int64) {
	c := &w.conns[i]
	c.resp.Close = true
	w.finish(i, now, true)
}

// tick does what need not be exact: timeouts, retries, the wish to stop.
func (w *worker) tick(now int64) {
	w.stop = w.live.stop.Load()
	for w.oldest != none {
		c := &w.conns[w.oldest]
		if now-c.sent < w.cfg.timeoutNs {
			break
		}
		w.fail(int(w.oldest), now, failTimeout, "")
	}
	if w.alive == len(w.conns) {
		return
	}
	for i := range w.conns {
		c := &w.conns[i]
		if c.phase == dead && now >= c.since {
			w.open(i, now)
		} else if c.phase == opening && now-c.since > w.cfg.timeoutNs {
			w.engine.Close(i)
			w.book.refused(now, "no answer within the timeout")
			c.phase, c.since = dead, now+retryAfterNs
		}
	}
}

// The ring of idle connections: the longest idle goes first, so that load spreads over all of them.

func (w *worker) push(i int32) {
	w.conns[i].phase = idle
	at := w.freeAt + w.freeN
	if at >= len(w.free) {
		at -= len(w.free)
	}
	w.free[at] = i
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

// remove takes one out of the middle; it happens only when an idle connection dies.
func (w *worker) remove(i int32) {
	n := w.freeN
	for range n {
		if j := w.pop(); j != i {
			w.push(j)
		}
	}
}

// The list of requests under way. All have the same timeout, so the oldest is the first to expire
// and no timer per request is needed.

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
