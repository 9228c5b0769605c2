package http2

import (
	"strconv"

	"prony.example/load/engine"
)

// head handles a complete header block.
func (e *Engine) head(k int, atNs int64, id uint32, block []byte) error {
	c := &e.conns[k]
	if len(block) > blockMax {
		return wrong(codeCalm, "the server's fields are more than 64 KiB")
	}
	a, err := c.fields.read(block) // for any stream, to keep the table equal to the server's
	i, second := e.lane(c, id)
	f, _ := err.(*fault)
	switch {
	case second != nil:
		return second
	case f != nil && f.code != codeProtocol:
		return err
	case i == none:
		return nil
	case err != nil:
		e.refuse(i, atNs, err)
		return nil
	}
	l, end := &e.lanes[i], c.flags&flagEndStream != 0
	if e.callMax > 0 {
		e.callHead(i, atNs, a, end)
		return nil
	}
	switch {
	case l.answered:
		if !end || a.status != 0 {
			e.refuse(i, atNs, malformed("fields behind its body that do not end it"))
			return nil
		}
		e.finish(i, atNs, nil)
		return nil
	case a.status == 0 || a.status == 101:
		e.refuse(i, atNs, malformed("no status, or one that HTTP/2 does not have"))
		return nil
	case a.status < 200:
		if end {
			e.refuse(i, atNs, malformed("an interim status alone"))
		}
		return nil
	}
	c.useless = 0
	l.answered = true
	e.announce(i, atNs, a, end)
	return nil
}

// announce passes on the head of a response.
func (e *Engine) announce(i int, atNs int64, a *answer, end bool) {
	l := &e.lanes[i]
	c := &e.conns[l.connIndex]
	none := l.plain || a.status == 204 || a.status == 304
	l.remaining = a.length
	if a.full != nil && !none && !end && a.length > 0 && c.phase != leaving {
		e.to.Received(i, atNs, a.full)
		return
	}
	t := append(e.text[:0], a.text...)
	switch {
	case none && a.length < 0:
		l.remaining = 0
	case none:
		t, l.remaining = appendLength(t, a.length), 0
	case end && a.length > 0:
		e.refuse(i, atNs, malformed("no body, and the length of one"))
		return
	case end:
		t, l.remaining = append(t, "content-length: 0\r\n"...), 0
	case a.length >= 0:
		t = appendLength(t, a.length)
	default:
		t, l.chunks = append(t, "transfer-encoding: chunked\r\n"...), true
	}
	if c.phase == leaving {
		t = append(t, "connection: close\r\n"...)
	}
	t = append(t, "\r\n"...)
	e.text = t
	switch {
	case end:
		e.finish(i, atNs, t)
	case !l.chunks && l.remaining == 0: // the response is complete, the stream is not
		l.retained = append(l.retained, t...)
	default:
		e.to.Received(i, atNs, t)
	}
}

// appendLength appends the field of a body's length.
func appendLength(t []byte, n int64) []byte {
	return append(strconv.AppendInt(append(t, "content-length: "...), n, 10), lineEnd...)
}

var (
	lineEnd = []byte("\r\n")
	bodyEnd = []byte("0\r\n\r\n")
)

// data handles a piece of a body.
func (e *Engine) data(k int, atNs int64, f *frame) error {
	c := &e.conns[k]
	if c.room -= int64(f.size); c.room < 0 {
		return wrong(codeFlow, "the server sends more than the connection's window")
	}
	if c.room < connWindow/2 {
		c.out = appendNumber(c.out, typeWindow, 0, uint32(connWindow-c.room))
		c.room = connWindow
	}
	i, err := e.lane(c, f.id)
	if i == none {
		return err
	}
	l, end := &e.lanes[i], f.last && f.has(flagEndStream)
	l.room -= int64(f.size)
	n := int64(len(f.payload))
	switch {
	case l.room < 0:
		return wrong(codeFlow, "the server sends more than the window of stream %d", f.id)
	case !l.answered:
		e.refuse(i, atNs, malformed("a body before its head"))
		return nil
	case e.callMax > 0: // its messages have their own lengths
	case !l.chunks && n > l.remaining:
		e.refuse(i, atNs, malformed("more of a body than it announces"))
		return nil
	case !l.chunks && end && n < l.remaining:
		e.refuse(i, atNs, malformed("less of a body than it announces"))
		return nil
	}
	if l.room < laneWindow/2 && !end {
		c.out = appendNumber(c.out, typeWindow, f.id, uint32(laneWindow-l.room))
		l.room = laneWindow
	}
	if n > 0 {
		c.useless = 0
	}
	if e.callMax > 0 {
		e.callData(i, atNs, f.payload, end)
		return nil
	}
	l.remaining -= n
	e.hand(i, atNs, f.payload, end)
	return nil
}

// hand passes on a piece of a body. It holds the last byte of a body with a length until the stream
// ends, so that response and stream end together.
func (e *Engine) hand(i int, atNs int64, b []byte, end bool) {
	l := &e.lanes[i]
	c := &e.conns[l.connIndex]
	switch id, gen := l.id, c.gen; {
	case l.chunks && len(b) > 0:
		e.text = append(strconv.AppendInt(e.text[:0], int64(len(b)), 16), lineEnd...)
		for _, t := range [...][]byte{e.text, b, lineEnd} {
			if e.to.Received(i, atNs, t); c.gen != gen || l.id != id || l.phase != busy {
				return
			}
		}
		fallthrough
	case l.chunks:
		if end {
			e.finish(i, atNs, nil)
		}
	case end:
		e.finish(i, atNs, b)
	case len(b) > 0:
		if l.remaining == 0 {
			l.retained = append(l.retained, b[len(b)-1])
			b = b[:len(b)-1]
		}
		if len(b) > 0 {
			e.to.Received(i, atNs, b)
		}
	}
}

// finish ends a stream and passes on the end of its response.
func (e *Engine) finish(i int, atNs int64, b []byte) {
	l := &e.lanes[i]
	if !l.chunks && len(l.retained) == 0 && l.remaining > 0 {
		e.refuse(i, atNs, malformed("less of a body than it announces"))
		return
	}
	e.over(i)
	switch {
	case l.chunks:
		b = bodyEnd
	case len(l.retained) > 0:
		b = append(l.retained, b...)
		l.retained = b
	}
	if len(b) > 0 {
		e.to.Received(i, atNs, b)
	}
}

// over ends a stream with a complete response; the lane is then free.
func (e *Engine) over(i int) {
	l := &e.lanes[i]
	k := int(l.connIndex)
	c := &e.conns[k]
	if l.tail != nil { // the server does not need the rest of the request
		c.out = appendNumber(c.out, typeReset, l.id, codeCancel)
	}
	l.refused = false
	e.free(i)
	if c.phase != leaving {
		e.fill(k)
	} else if e.detach(l); c.members == 0 {
		e.part(k, codeNone)
	}
}

// refuse ends a stream with a malformed response.
func (e *Engine) refuse(i int, atNs int64, err error) {
	if e.callMax > 0 {
		e.settle(i, atNs, callInternal, err.Error(), codeProtocol)
		return
	}
	l := &e.lanes[i]
	c := &e.conns[l.connIndex]
	code := uint32(codeProtocol)
	c.out = appendNumber(c.out, typeReset, l.id, code)
	e.soil(int(l.connIndex))
	e.free(i)
	e.lose(i, atNs, engine.Reading, err)
}
