package http2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"prony.example/load/engine"
	"prony.example/load/engine/socket"
)

const (
	connWindow = 1 << 30 // receive window of the connection; renewed when half used
	laneWindow = 1 << 24 // receive window of a stream; renewed when half used

	uselessMax = 10_000  // consecutive frames without content
	repliesMax = 1_000   // replies that the server has not accepted
	outMax     = 1 << 18 // bytes of bodies queued for the kernel
	idMax      = 1<<31 - 1
)

// conn is a connection of the engine below.
type conn struct {
	phase   phase
	full    bool // the kernel did not accept all of out
	dirty   bool // in the list of connections with something to send
	shrink  bool // the server's table is smaller: the next block must announce an empty one
	gen     uint32
	members int // lanes attached to it
	active  int // lanes with a stream
	in      reader
	fields  *fields
	block   []byte  // of fields that continue in the next frame
	flags   byte    // of the frame in which the fields began
	places  []int32 // lane numbers, from 1, by stream; the length is a power of two
	next    uint32  // next stream id
	queue   []int32 // lanes with queued requests, in order
	bodies  []int32 // lanes with a body to send, round-robin
	begun   []int32 // lanes whose streams began since the last push

	out     []byte // frames to send; the first sent bytes have left
	sent    int
	replies int
	useless int

	most     int   // the server's limit of concurrent streams
	window   int64 // send window of the connection
	initial  int64 // initial send window of a stream
	frameMax int
	room     int64 // receive window that is left

	parting error // why the server goes away, unless it reports no error
}

// reset prepares a connection to be opened.
func (c *conn) reset(calls bool) {
	clear(c.places)
	c.in.reset()
	*c = conn{phase: opening, gen: c.gen + 1, members: c.members, in: c.in, places: c.places,
		queue: c.queue[:0], bodies: c.bodies[:0], begun: c.begun[:0], out: c.out[:0],
		block: c.block[:0], next: 1,
		most: 1 << 30, window: windowInitial, initial: windowInitial, frameMax: frameMax,
		fields: newFields(calls), room: connWindow, dirty: c.dirty}
}

// place returns the index of a stream in places. Stream ids are chosen so that no two open streams
// share an index.
func (c *conn) place(id uint32) int { return int(id>>1) & (len(c.places) - 1) }

// lane returns the lane of a stream; none: the stream has ended. A stream that was never opened is
// an error.
func (e *Engine) lane(c *conn, id uint32) (int, error) {
	if id&1 == 0 || id >= c.next {
		return none, wrong(codeProtocol, "the server names stream %d, which does not exist",
			id)
	}
	if i := int(c.places[c.place(id)]) - 1; i >= 0 && e.lanes[i].id == id {
		return i, nil
	}
	return none, nil
}

// ear is the Handler of the engine below.
type ear Engine

// Opened implements engine.Handler.
func (r *ear) Opened(k int, atNs int64) {
	e, c := (*Engine)(r), &r.conns[k]
	e.batch.atNs = atNs
	c.phase = greeted
	c.out = append(c.out, preface...)
	c.out = appendSettings(c.out, setPush, 0, setInitialWindow, laneWindow, setListSize, listMax)
	c.out = appendNumber(c.out, typeWindow, 0, connWindow-windowInitial)
	e.push(k)
}

// Drained implements engine.Drained.
func (r *ear) Drained(k int, atNs int64) {
	r.conns[k].full, r.batch.atNs = false, atNs
	(*Engine)(r).push(k)
}

// Received implements engine.Handler.
func (r *ear) Received(k int, atNs int64, b []byte) {
	e, c := (*Engine)(r), &r.conns[k]
	gen := c.gen
	e.batch.atNs = atNs
	e.batch.bytes += len(b)
	if c.phase == greeted && !c.in.partial() && len(b) > 0 && b[0] != 0 {
		e.object(k, atNs, foreign(b))
		return
	}
	for {
		f, tail, ok, err := c.in.next(b)
		if b = tail; ok {
			err = e.frame(k, atNs, &f)
		}
		if c.gen != gen {
			break
		}
		if err != nil {
			e.object(k, atNs, err)
			break
		}
		if !ok {
			e.soil(k)
			break
		}
	}
	if e.batch.full() {
		e.flush()
	}
}

// foreign explains bytes that are no SETTINGS frame, whose first byte is 0.
func foreign(b []byte) error {
	text := fmt.Sprintf("the port does not speak HTTP/2: it begins with %.40q", b)
	switch {
	case bytes.HasPrefix(b, []byte("HTTP/1.")):
		text = "the port speaks HTTP/1.1; use http://"
	case len(b) > 1 && (b[0] == 0x15 || b[0] == 0x16) && b[1] == 3: // alert or handshake
		text = "the port speaks TLS; use h2://, or grpcs:// for gRPC"
	}
	return &socket.Fault{Party: socket.Options, Text: text}
}

// frame handles a frame.
func (e *Engine) frame(k int, atNs int64, f *frame) error {
	c := &e.conns[k]
	if c.phase == greeted && (f.kind != typeSettings || f.has(flagAck)) {
		return wrong(codeProtocol, "the server does not begin with its settings")
	}
	if c.useless++; c.useless > uselessMax {
		return wrong(codeCalm, "the server has sent %d frames in turn that bring nothing",
			uselessMax)
	}
	switch f.kind {
	case typeData:
		return e.data(k, atNs, f)
	case typeHeaders:
		c.flags, c.block = f.flags, c.block[:0]
		if f.has(flagEndHeaders) {
			return e.head(k, atNs, f.id, f.payload)
		}
		c.block = append(c.block, f.payload...)
	case typeContinuation:
		if len(c.block)+len(f.payload) > blockMax {
			return wrong(codeCalm, "the server's fields are more than 64 KiB")
		}
		if c.block = append(c.block, f.payload...); f.has(flagEndHeaders) {
			return e.head(k, atNs, f.id, c.block)
		}
	case typeReset:
		return e.cut(c, atNs, f)
	case typeSettings:
		return e.settings(k, atNs, f)
	case typePing:
		if !f.has(flagAck) {
			c.out = append(appendHead(c.out, len(f.payload), typePing, flagAck, 0), f.payload...)
			return c.reply()
		}
	case typeGoAway:
		e.away(k, atNs, f)
	case typeWindow:
		return e.widen(k, f)
	}
	return nil
}

// refused reports a request that the server has not processed: it may be sent again (RFC 9113,
// section 8.7).
const refused = engine.Untaken("HTTP/2: the server has reset the stream (REFUSED_STREAM)")

// cut handles a stream that the server resets. A refused call is repeated once, as other gRPC
// clients do (gRFC A6); a second refusal is a status.
func (e *Engine) cut(c *conn, atNs int64, f *frame) error {
	i, err := e.lane(c, f.id)
	if i == none {
		return err
	}
	l, code := &e.lanes[i], f.number()
	why := "the server has reset the stream (" + codeName(code) + ")"
	switch again := code == codeRefused && !l.answered && !l.refused; {
	case again:
		l.refused = e.callMax > 0
		e.free(i)
		e.lose(i, atNs, engine.Reading, refused)
	case e.callMax > 0:
		l.tail = nil // so that settle sends no reset
		e.settle(i, atNs, callReset(code), "gRPC: "+why, codeNone)
	default:
		e.free(i)
		e.lose(i, atNs, engine.Reading, errors.New("HTTP/2: "+why))
	}
	return nil
}

// reply counts replies that the server has not accepted yet.
func (c *conn) reply() error {
	if c.replies++; c.replies > repliesMax {
		return wrong(codeCalm, "the server wants %d answers and takes none", repliesMax)
	}
	return nil
}

// settings handles the server's settings; the first ones open the connection.
func (e *Engine) settings(k int, atNs int64, f *frame) error {
	c := &e.conns[k]
	if f.has(flagAck) {
		return nil
	}
	for p := f.payload; len(p) > 0; p = p[settingSize:] {
		if err := e.set(k, binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:])); err != nil {
			return err
		}
	}
	c.out = appendHead(c.out, 0, typeSettings, flagAck, 0)
	if err := c.reply(); err != nil || c.phase != greeted {
		if c.phase == idle {
			e.fill(k)
		}
		return err
	}
	c.phase = idle
	e.fill(k)
	gen := c.gen
	for i := k / 2 * e.streams; i < min((k/2+1)*e.streams, len(e.lanes)); i++ {
		if l := &e.lanes[i]; l.phase == opening && l.connIndex == int32(k) {
			l.phase = idle
			if e.to.Opened(i, atNs); c.gen != gen {
				return nil
			}
		}
	}
	return nil
}

// set handles one setting.
func (e *Engine) set(k int, name uint16, value uint32) error {
	c := &e.conns[k]
	switch name {
	case setTableSize:
		c.shrink = c.shrink || value < tableSize
	case setPush:
		if value != 0 {
			return wrong(codeProtocol, "the server sets that it may push")
		}
	case setMaxStreams:
		c.most = int(min(value, 1<<30))
		e.short = max(e.short, e.streams-c.most)
	case setInitialWindow:
		if value > windowMax {
			return wrong(codeFlow, "the server's streams have a window of %d bytes", value)
		}
		change := int64(value) - c.initial
		c.initial = int64(value)
		for _, offset := range c.places {
			if offset == 0 {
				continue
			}
			l := &e.lanes[offset-1]
			if l.window += change; l.window > windowMax {
				return wrong(codeFlow, "the window of stream %d is %d bytes", l.id, l.window)
			}
			e.ready(int(offset-1), c)
		}
		e.soil(k)
	case setFrameSize:
		if value < frameMax || value > frameMost {
			return wrong(codeProtocol, "the server takes frames of %d bytes", value)
		}
		c.frameMax = int(value)
	}
	return nil
}

// widen handles a window update.
func (e *Engine) widen(k int, f *frame) error {
	c := &e.conns[k]
	n := int64(f.number() & windowMax)
	if f.id == 0 {
		if c.window += n; c.window > windowMax {
			return wrong(codeFlow, "the connection's window is %d bytes", c.window)
		}
		e.soil(k)
		return nil
	}
	i, err := e.lane(c, f.id)
	if i == none {
		return err
	}
	l := &e.lanes[i]
	if l.window += n; n == 0 || l.window > windowMax {
		return wrong(codeFlow, "the window of stream %d is %d bytes, %d more", f.id, l.window, n)
	}
	e.ready(i, c)
	e.soil(k)
	return nil
}

// retire stops new requests on a connection and moves the queued ones.
func (e *Engine) retire(k int) {
	c := &e.conns[k]
	c.phase = leaving
	waiting := c.queue
	c.queue = c.queue[:0]
	for _, i := range waiting {
		e.detach(&e.lanes[i])
		if e.attach(int(i)); e.lanes[i].connIndex != none {
			e.queue(int(i))
		}
	}
}

// away handles GOAWAY. The server will answer the requests that it has accepted, but no others,
// whatever the error code (RFC 9113, section 8.7). If it has accepted none and reports an error, it
// would not accept the others on a new connection: they have failed. Requests whose frames wait for
// the end of the batch leave before, so that they count as sent and not taken.
func (e *Engine) away(k int, atNs int64, f *frame) {
	last, code := f.number()&idMax, binary.BigEndian.Uint32(f.payload[4:])
	why := codeName(code)
	if details := f.payload[8:]; len(details) > 0 {
		why += fmt.Sprintf(", %.100q", details)
	}
	e.push(k)
	e.retire(k)
	c := &e.conns[k]
	if code != codeNone {
		c.parting = errors.New("HTTP/2: the server went away before it answered (" + why + ")")
	}
	gen := c.gen
	for i := k / 2 * e.streams; i < min((k/2+1)*e.streams, len(e.lanes)) && c.gen == gen; i++ {
		l := &e.lanes[i]
		switch {
		case l.connIndex != int32(k):
		case l.phase == idle:
			e.lose(i, atNs, engine.Reading, nil)
		case l.phase == opening:
			e.detach(l)
			e.Open(i)
		case l.phase == busy && l.id > last:
			text := "HTTP/2: the server went away before it took the request (" + why + ")"
			var err error = engine.Untaken(text)
			if code != codeNone && last == 0 {
				err = errors.New(text)
			}
			e.free(i)
			e.lose(i, atNs, engine.Reading, err)
		}
	}
	if c.gen == gen && c.members == 0 {
		e.part(k, codeNone)
	}
}

// lose detaches a lane without a stream from its connection and reports why. It ends the connection
// if no lane is left on it.
func (e *Engine) lose(i int, atNs int64, op engine.Op, err error) {
	l := &e.lanes[i]
	k := int(l.connIndex)
	c := &e.conns[k]
	gen := c.gen
	e.detach(l)
	l.phase, l.err = shut, nil
	if c.phase == idle {
		e.fill(k)
	}
	e.to.Closed(i, atNs, op, err)
	if c.gen == gen && c.members == 0 {
		e.part(k, codeNone)
	}
}

// object ends a connection because of an error of the server, and reports the error.
func (e *Engine) object(k int, atNs int64, err error) {
	c := &e.conns[k]
	code := uint32(codeProtocol)
	if f, ok := errors.AsType[*fault](err); ok {
		code = f.code
	}
	op := engine.Reading
	if c.phase == greeted {
		op = engine.Connecting
	}
	e.leave(k, code)
	e.end(k, atNs, op, err)
	e.revive(k)
}

// Closed implements engine.Handler.
func (r *ear) Closed(k int, atNs int64, op engine.Op, err error) {
	e, c := (*Engine)(r), &r.conns[k]
	e.batch.atNs = atNs
	if err == engine.ErrTruncated {
		err = nil // streams have ends of their own
	}
	switch {
	case c.phase == shut:
		return
	case c.phase == opening || c.phase == greeted:
		if op = engine.Connecting; err == nil {
			err = errors.New("the server closed the connection before it said its settings; " +
				"check that the port speaks HTTP/2")
		}
	case err == nil && c.parting != nil:
		err = c.parting
	case err == nil && c.in.partial():
		err = io.ErrUnexpectedEOF
	}
	c.phase = shut
	c.gen++
	e.end(k, atNs, op, err)
	e.revive(k)
}

// end reports the end of a connection to all its lanes. Lanes without a request come first, because
// the Handler can use them to repeat the requests of others.
func (e *Engine) end(k int, atNs int64, op engine.Op, err error) {
	c := &e.conns[k]
	from, to := k/2*e.streams, min((k/2+1)*e.streams, len(e.lanes))
	for i := from; i < to; i++ {
		if l := &e.lanes[i]; l.connIndex == int32(k) {
			l.remaining, l.connIndex = 0, none
			if l.phase == busy || l.phase == queued {
				l.remaining = 1
				if l.tail != nil && op == engine.Reading && err != nil {
					l.remaining = 2
				}
			}
			l.phase, l.tail, l.request, l.sends, l.err = ending, nil, nil, false, nil
			l.withdraw()
		}
	}
	c.members, c.active = 0, 0
	c.queue, c.bodies = c.queue[:0], c.bodies[:0]
	for turn := range int64(3) {
		for i := from; i < to; i++ {
			l := &e.lanes[i]
			if l.phase != ending || l.remaining != turn {
				continue
			}
			item := op
			if turn == 2 {
				item = engine.Writing
			}
			l.phase = shut
			e.to.Closed(i, atNs, item, err)
		}
	}
}
