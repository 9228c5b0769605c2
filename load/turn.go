package load

import (
	"bytes"
	"net/http"

	"prony.example/internal/base/clock"
	"prony.example/load/engine/http1"
	"prony.example/load/template"
)

// A turn is the work of one arrival, or of one closed user: a request, or all steps of a flow one
// after another on one connection. If the connection is lost between two steps, the flow continues
// over a new one; if a step fails, the flow ends.

// begin starts a turn on connection i. If the connection is not open, waiting for it is part of the
// turn.
func (w *worker) begin(i int32, due, now int64) {
	c := &w.conns[i]
	c.k = w.k
	c.route, c.key = w.plan.draw(w.k)
	w.k += uint64(w.cfg.threads)
	if w.remaining > 0 && due >= w.cfg.openAt {
		w.remaining--
	}
	c.due, c.begun, c.step = due, due, 0
	if w.plan.fixed > 0 || w.plan.cookies {
		w.another(c)
	}
	if w.plan.flow {
		w.turns++
		w.book.began(due)
	}
	c.task = waiting
	if c.phase == idle {
		w.send(i, now)
	}
}

// send writes the request that is due on connection i.
func (w *worker) send(i int32, atNs int64) {
	c := &w.conns[i]
	w.make(c)
	c.repeats = 0
	w.expect(c)
	w.link(i)
	now := atNs
	if !w.queues { // such an engine reports when the request leaves
		now = max(clock.Mono(), atNs)
	}
	c.passed = now
	if w.cfg.plain {
		if now >= w.cfg.closeAt && !w.cfg.sliced && !w.plan.flow {
			w.tooLate(i)
			return
		}
		c.due = now
	}
	if c.pending = w.queues; c.pending {
		w.pending++
	} else {
		w.leaves(c, now)
	}
	w.engine.Send(int(i), c.out)
}

// leaves records that the request of connection c is sent at a moment.
func (w *worker) leaves(c *conn, now int64) {
	c.sent = now
	w.lateness(c)
	w.flow(now, +1)
	w.book.sent(c, now)
}

// Sent implements engine.Departures. A wait for a stream is like a wait for a connection: the
// request could leave only when the stream was free. Without such a wait, a request of a closed
// load is due when it leaves, as over other engines, unless the window has closed since it was
// given to the engine.
func (w *worker) Sent(i int, freeNs, atNs int64) {
	c := &w.conns[i]
	if !c.pending {
		return // it was sent again
	}
	c.pending = false
	w.pending--
	switch {
	case freeNs > c.due:
		c.since, c.late = max(c.since, freeNs), w.lateBefore
	case w.cfg.plain && atNs < w.cfg.closeAt:
		c.due = atNs
	}
	w.leaves(c, atNs)
}

// tooLate takes back the request of connection i. The window closed since the loop last read the
// clock, so the request would be sent, and thus due, after it: the server would count it, the load
// would not.
func (w *worker) tooLate(i int32) {
	w.unlink(i)
	w.conns[i].task = spare
	w.push(i)
	w.shutAt = w.cfg.closeAt
}

// lateness tracks how much the generator's own delays can have delayed the requests under way. A
// request that finds the service idle is not delayed by earlier ones. If no request arrives more
// than d late, no response of FIFO queues is more than d late, because such queues are monotone and
// shift with their arrivals (Baccelli et al., Synchronization and Linearity, 1992). So the bound is
// the greatest own delay since the service was last idle. If a request waited for a connection, the
// bound of the response before it on that connection is added.
func (w *worker) lateness(c *conn) {
	if w.inFlight == 0 {
		w.late = 0
	}
	ownNs := c.sent - max(c.due, c.since)
	if c.since > c.due {
		ownNs += c.late
	}
	w.late = max(w.late, ownNs)
}

// make renders the request of connection i and the expected body.
func (w *worker) make(c *conn) {
	r := c.route
	var field []byte
	if w.cfg.trace.limit > 0 {
		field = w.mark(c)
	}
	if r.out != nil && r.want != nil && field == nil && !w.plan.cookies {
		c.out, c.want = r.out, r.want
	} else {
		v := &w.values
		v.Seed, v.K, v.Key = w.plan.seed^uint64(c.step)*stepSalt, c.k, c.key
		v.Vars = c.vars
		if w.plan.cookies {
			field = w.jarred(c, field)
		}
		if c.out = r.out; c.out == nil || field != nil {
			c.sends = r.render(c.sends[:0], w.scratch, field, v)
			c.out = c.sends
		}
		if c.want = r.want; c.want == nil {
			c.wantBuf = r.wantT.Append(c.wantBuf[:0], v)
			c.want = c.wantBuf
		}
	}
	c.resp.Use(&w.caches[r.index])
}

// expect prepares connection c for the response to a request that leaves now.
func (w *worker) expect(c *conn) {
	c.phase, c.task, c.first, c.dirty = busy, working, 0, false
	c.pos, c.place = 0, template.Place{}
	c.retained = c.retained[:0]
	if r := c.route; r.headOnly || r.keep || w.plan.cookies {
		c.resp.Expect(r.headOnly, r.keep || w.plan.cookies)
	}
}

// flow changes the number of requests under way and records the time at the previous number.
func (w *worker) flow(now int64, change int) {
	w.book.level(now, w.inFlight)
	w.inFlight += change
}

// Received implements Handler.
func (w *worker) Received(i int, atNs int64, b []byte) {
	c := &w.conns[i]
	w.events++
	w.heard = atNs
	w.book.bytesIn(atNs, len(b))
	if c.phase != busy { // bytes without a request: the stream cannot be trusted
		w.unrequested(c, atNs, b)
		w.drop(i, atNs)
		return
	}
	if c.first == 0 {
		c.first = atNs
	}
	for len(b) > 0 {
		n, body, done, err := c.resp.Next(b)
		if err != nil {
			w.fail(i, atNs, failParse, c.unreadable(b, err))
			return
		}
		if len(body) > 0 {
			w.compare(c, body)
		}
		b = b[n:]
		if len(b) == 0 && c.resp.Interim() {
			c.first = 0 // the first byte is that of the final response
		}
		if done {
			if len(b) > 0 && http1.IsFarewell(b) {
				c.resp.Close, b = true, nil
			}
			w.finish(i, atNs, len(b))
			return
		}
	}
}

// unrequested books bytes without a request.
func (w *worker) unrequested(c *conn, now int64, b []byte) {
	switch {
	case http1.IsFarewell(b):
	case !c.served && !bytes.HasPrefix(b, []byte("HTTP/")):
		w.book.beside(now, unasked, foreign(b, "an unsolicited response"))
	default:
		w.book.stray(now, len(b), c.served && c.route.headOnly)
	}
}

// compare checks a piece of the body against the expected body. The first difference marks the
// response as bad; reading continues, so that the connection stays usable.
func (w *worker) compare(c *conn, body []byte) {
	most := 0
	if c.route.keep {
		most = keepMax
	} else if c.resp.Status >= 400 && c.resp.Status != c.route.status {
		most = explainMax
	}
	if room := most - len(c.retained); room > 0 {
		c.retained = append(c.retained, body[:min(len(body), room)]...)
	}
	if !c.route.check || c.dirty {
		return
	}
	if like := c.route.like; like != nil {
		if same := like.Next(&c.place, body); same < len(body) {
			c.pos, c.dirty, c.odds = c.place.At, true, copy(c.odd[:], body[same:])
		}
		return
	}
	end := c.pos + len(body)
	if end > len(c.want) || !bytes.Equal(body, c.want[c.pos:end]) {
		same := 0
		for same < len(body) && c.pos < len(c.want) && body[same] == c.want[c.pos] {
			same, c.pos = same+1, c.pos+1
		}
		c.dirty, c.odds = true, copy(c.odd[:], body[same:])
		return
	}
	c.pos = end
}

// finish records a complete response and continues the turn. It renews the connection if server or
// request close it, if bytes follow the response, if a part of the request is still to be sent, or
// if churn requires it. A response with bytes after it is bad: it is longer than announced, or
// there are two. Bytes after a response to HEAD are booked as stray.
func (w *worker) finish(i int, now int64, more int) {
	c := &w.conns[i]
	if c.resp.Status == http.StatusRequestTimeout && w.crossed(i, now) {
		return
	}
	early := w.ends(i, now) > 0
	if early {
		w.book.answeredEarly(c)
	}
	if w.plan.cookies {
		w.values.Seed, w.values.K = w.plan.seed^uint64(c.step)*stepSalt, c.k
		w.values.Key, w.values.Vars = c.key, c.vars
		w.room = c.route.path.Append(w.room[:0], &w.values)
		c.jar.take(c.resp.Head(), w.room, clock.Wall())
	}
	good := w.judge(c, now, more)
	if now >= w.slicing.edgeNs {
		w.pass(now)
	}
	c.served = true
	c.answers++
	if more > 0 && c.route.headOnly {
		w.book.stray(now, more, true)
	}
	again := !c.resp.Close && more == 0 && !(w.cfg.serial && (early || c.route.last))
	c.resp.Reset()
	c.pending = false
	switch {
	case !again:
		c.task = spare
		w.drop(i, now)
	case c.answers == w.cfg.churn:
		w.engine.Close(i)
		w.gone(i)
		w.open(i, now)
	default:
		c.phase, c.since = idle, now
	}
	w.next(i, now, good)
}

// ends removes connection i's request from those under way. It returns how many bytes of the
// request have not left.
func (w *worker) ends(i int, now int64) (unsent int) {
	c := &w.conns[i]
	w.unlink(int32(i))
	if c.pending { // it ends without having left, and counts as sent at its end
		w.pending--
		c.sent, c.since = now, now
		w.book.sent(c, now)
	} else {
		w.flow(now, -1)
	}
	c.late, c.repeats = w.late, 0
	w.lateBefore = w.late
	return w.unsent(i)
}

// unsent corrects the bytes sent by those of connection i's request that have not left, and returns
// their number.
func (w *worker) unsent(i int) int {
	c := &w.conns[i]
	if n := w.engine.Unsent(i); !c.pending {
		w.book.unsent(c, n)
		return n
	}
	return 0
}

// judge records the response and reports whether it is good.
func (w *worker) judge(c *conn, now int64, more int) bool {
	r := c.route
	if r.like != nil && r.like.Whole(&c.place) {
		c.pos = len(c.want)
	}
	bad := c.dirty || r.check && c.pos != len(c.want) && !r.headOnly ||
		!r.check && r.size >= 0 && c.resp.Bytes != r.size
	switch {
	case c.resp.Status != r.status:
		w.book.failed(c, now, failStatus, reason{})
	case bad:
		w.book.failed(c, now, failBody, reason{})
	case more > 0 && !r.headOnly:
		w.book.failed(c, now, failBody, because("more follows than its head announces"))
	default:
		if cause := w.look(c); cause != "" {
			w.book.failed(c, now, failBody, because(cause))
			return false
		}
		w.book.done(c, now)
		return true
	}
	return false
}

// look runs the route's checks on the response and extracts the flow's variables. It returns what
// is wrong; empty: nothing.
func (w *worker) look(c *conn) string {
	r := c.route
	if !r.keep {
		return ""
	}
	if int64(len(c.retained)) < c.resp.Bytes {
		return "the body is larger than the 1 MiB that can be looked into"
	}
	w.values.Seed, w.values.K = w.plan.seed^uint64(c.step)*stepSalt, c.k
	w.values.Key, w.values.Vars = c.key, c.vars
	for k := range r.checks {
		if !r.checks[k].Holds(c.resp.Head(), c.retained, &w.values) {
			return "check failed: " + r.checks[k].String() + r.checks[k].Of.Coded(c.resp.Head())
		}
	}
	for _, e := range r.extract {
		v, ok := e.from.Find(c.resp.Head(), c.retained)
		if why := w.plan.misfit(e.into, v, ok); why != "" {
			return why + e.from.Coded(c.resp.Head())
		}
		c.vars[e.into] = append(c.vars[e.into][:0], v...)
	}
	return ""
}

// isLine reports whether a value is valid in a header field: it must not end the line.
func isLine(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isWord reports whether a value is valid in a path: it must not end the path or the line.
func isWord(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// fail records a failed request and renews its connection.
func (w *worker) fail(i int, now int64, f class, why reason) {
	w.lost(i, now, f, why)
	w.drop(i, now)
	w.next(i, now, false)
}

// lost records a request that will get no complete response.
func (w *worker) lost(i int, now int64, f class, why reason) {
	c := &w.conns[i]
	w.ends(i, now)
	w.book.failed(c, now, f, why)
	c.task, c.pending = spare, false
}

// next continues after a request has ended: with the next step of the flow, with the user's pause,
// or with a turn that is due.
func (w *worker) next(i int, now int64, good bool) {
	c := &w.conns[i]
	if w.plan.flow {
		if last := int(c.step) == len(w.plan.routes)-1; good && !last {
			pause := c.route.pauseNs
			c.step++
			c.route, c.due = &w.plan.routes[c.step], now+pause
			if pause > 0 {
				w.rest(i, c.due)
				return
			}
			c.task = waiting
			if c.phase == idle {
				w.send(int32(i), now)
			}
			return
		}
		w.turns--
		w.book.ended(c, now, good)
	}
	c.task, c.step = spare, 0
	if w.cfg.users != nil {
		w.think(i, now)
		return
	}
	if c.phase == idle {
		w.push(int32(i))
		w.more(now)
	}
}
