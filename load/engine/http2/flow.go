package http2

import (
	"encoding/binary"
	"slices"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// batch is what the events of a Wait have led to since the last flush.
type batch struct {
	atNs     int64 // moment of the last event
	requests int   // streams that began
	bytes    int   // received
}

// A batch that reaches one of these bounds is flushed within the Wait, so that requests do not wait
// for the reading of many large bodies.
const (
	batchRequests = 64
	batchBytes    = 1 << 18
)

func (b *batch) full() bool { return b.requests >= batchRequests || b.bytes >= batchBytes }

// fill starts as many queued requests as the server permits.
func (e *Engine) fill(k int) {
	c := &e.conns[k]
	if c.next > idMax-uint32(2*len(c.places)) {
		if e.retire(k); c.members == 0 {
			e.part(k, codeNone)
			return
		}
	}
	for len(c.queue) > 0 && c.active < c.most && c.phase == idle {
		i := int(c.queue[0])
		c.queue = slices.Delete(c.queue, 0, 1)
		if err := e.begin(i, c); err != nil {
			e.lanes[i].phase = idle
			e.fail(i, err)
		}
	}
	e.soil(k)
}

// begin starts a request.
func (e *Engine) begin(i int, c *conn) error {
	l := &e.lanes[i]
	b := l.request
	l.request = nil
	h, err := e.heads.of(b)
	if err != nil {
		return err
	}
	for c.places[c.place(c.next)] != 0 { // skipped ids count as ended
		c.next += 2
	}
	l.id, l.phase, l.fresh, l.freeNs = c.next, busy, true, engine.AtOnce
	if l.waits {
		l.waits, l.freeNs = false, e.batch.atNs
	}
	c.begun = append(c.begun, int32(i))
	e.batch.requests++
	c.next += 2
	c.places[c.place(l.id)] = int32(i) + 1
	c.active++
	c.useless = 0
	l.plain, l.answered, l.chunks, l.retained = h.plain, false, false, l.retained[:0]
	l.window, l.room = c.initial, laneWindow
	flags := byte(0)
	l.tail = b[len(h.text):]
	if l.unsent = len(l.tail); e.callMax > 0 {
		l.lead, l.call = prefixSize, call{}
	} else if len(l.tail) == 0 {
		flags, l.tail = flagEndStream, nil
	}
	if c.shrink {
		c.shrink = false
		c.out = appendFields(c.out, append([]byte{0x20}, h.block...), flags, l.id)
	} else {
		c.out = appendFields(c.out, h.block, flags, l.id)
	}
	e.ready(i, c)
	return nil
}

// ready adds a lane to the list of bodies to send, if it can send.
func (e *Engine) ready(i int, c *conn) {
	if l := &e.lanes[i]; l.tail != nil && l.window > 0 && !l.sends {
		l.sends = true
		c.bodies = append(c.bodies, int32(i))
	}
}

// fillBodies frames bodies round-robin, as far as both windows and outMax permit.
func (e *Engine) fillBodies(c *conn) {
	for len(c.bodies) > 0 && c.window > 0 && len(c.out)-c.sent < outMax {
		i := c.bodies[0]
		c.bodies = slices.Delete(c.bodies, 0, 1)
		l := &e.lanes[i]
		l.sends = false
		if l.window <= 0 {
			continue // until a window update
		}
		all := l.lead + len(l.tail)
		n := int(min(int64(all), l.window, c.window, int64(min(c.frameMax, outMax/4))))
		flags := byte(0)
		if n == all {
			flags = flagEndStream
		}
		c.out = appendHead(c.out, n, typeData, flags, l.id)
		l.window, c.window = l.window-int64(n), c.window-int64(n)
		c.useless = 0
		if l.lead > 0 {
			var prefix [prefixSize]byte
			binary.BigEndian.PutUint32(prefix[1:], uint32(len(l.tail)))
			k := min(n, l.lead)
			c.out = append(c.out, prefix[prefixSize-l.lead:][:k]...)
			l.lead, n = l.lead-k, n-k
		}
		c.out = append(c.out, l.tail[:n]...)
		l.unsent -= n
		if l.tail = l.tail[n:]; flags != 0 {
			l.tail = nil
		}
		e.ready(int(i), c)
	}
}

// soil marks a connection that may have something to send.
func (e *Engine) soil(k int) {
	if c := &e.conns[k]; !c.dirty {
		c.dirty = true
		e.dirty = append(e.dirty, int32(k))
	}
}

// flush pushes all marked connections.
func (e *Engine) flush() {
	for _, k := range e.dirty {
		e.conns[k].dirty = false
		e.push(int(k))
	}
	e.dirty = e.dirty[:0]
	e.batch.requests, e.batch.bytes = 0, 0
}

// depart reports that the requests whose streams have begun on a connection leave now. They also
// leave if the kernel accepts none of their bytes: then the server does not read, and the wait for
// it is part of their service time.
func (e *Engine) depart(k int) {
	c := &e.conns[k]
	if e.departs != nil {
		now := clock.Mono()
		for _, i := range c.begun {
			if l := &e.lanes[i]; l.fresh && l.connIndex == int32(k) {
				l.fresh = false
				e.departs.Sent(int(i), l.freeNs, now)
			}
		}
	}
	c.begun = c.begun[:0]
}

// push sends as much of a connection's data as possible.
func (e *Engine) push(k int) {
	c := &e.conns[k]
	if len(c.begun) > 0 {
		e.depart(k)
	}
	for c.phase != shut && c.phase != opening && !c.full {
		e.fillBodies(c)
		if c.sent == len(c.out) {
			return
		}
		c.sent += e.below.Push(k, c.out[c.sent:])
		if c.full = c.sent < len(c.out); c.full {
			if c.sent > outMax { // drop the sent part
				c.out = c.out[:copy(c.out, c.out[c.sent:])]
				c.sent = 0
			}
			return
		}
		c.out, c.sent, c.replies = c.out[:0], 0, 0
	}
}
