package tlsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/http1"
	"prony.example/load/engine/socket"
)

// Engine implements engine.Engine with TLS over another engine.
type Engine struct {
	below   engine.Engine
	stream  engine.Streamer // the engine below, if this engine is used by Push
	config  *tls.Config
	slots   []slot
	to      engine.Handler // of the Wait under way
	reading int            // the slot whose bytes are being passed on, or -1
	log     keyLog
	rooms   rooms
	plain   []byte  // buffer for data that crypto/tls decrypts
	untold  []int32 // slots with a failure to report in the next Wait

	unanswered *atomic.Bool // the server asked for a certificate, and there was none

	handshakes *hdrhistogram.Histogram
	spoken     string // version and cipher of the last one
	resumed    int64
}

type phase uint8

const (
	shut phase = iota
	connecting
	shaking
	open
)

// slot is a connection. Its shake stays until the first response, because of session tickets; if
// crypto/tls continues to encrypt and decrypt, it stays to the end.
type slot struct {
	phase     phase
	cached    bool   // crypto/tls encrypts: TLS 1.2, or a cipher unknown to this package
	requested bool   // a request has left, and nothing has come since
	early     bool   // a request left before all earlier bytes were passed on
	gen       uint32 // distinguishes a connection from its successor
	began     int64  // start of the handshake
	shake     *shake
	in        reader
	out       half
	// The kernel may read sealed until the next request; it has then read the buffer before, or the
	// engine below accepts no more.
	sealed, before []byte
	waits          []byte // encrypted data that the engine below has not accepted
	err            error  // why it must end; reported in the next Wait
	size           int    // of the last Send, before encryption
}

// plainSize is the buffer size for crypto/tls: the data of a record.
const plainSize = plainMax

var errNoH2 = errors.New("the server does not speak HTTP/2 (ALPN); use another protocol, for " +
	"example without --http2")

var errUnasked = errors.New("an unsolicited response came before the request")

// New returns a TLS engine over the one below, which must have the same number of slots. Its
// connections share sessions for resumption.
func New(below engine.Engine, c *tls.Config, slots int) *Engine {
	e := &Engine{below: below, config: c.Clone(), slots: make([]slot, slots), reading: -1,
		handshakes: hdrhistogram.New(1, 1<<40, 3)}
	e.config.KeyLogWriter = &e.log
	e.unanswered = socket.Certify(e.config)
	if e.config.ClientSessionCache == nil {
		e.config.ClientSessionCache = tls.NewLRUClientSessionCache(1) // there is one server
	}
	for i := range e.slots {
		e.slots[i].in.room = &e.rooms
	}
	return e
}

// NewStreamer returns an engine to be used by Push.
func NewStreamer(below engine.Streamer, c *tls.Config, slots int) *Engine {
	e := New(below, c, slots)
	e.stream = below
	return e
}

// Below implements engine.Layer.
func (e *Engine) Below() engine.Engine { return e.below }

// Handshakes implements engine.Handshaker.
func (e *Engine) Handshakes() *hdrhistogram.Histogram { return e.handshakes }

// Session implements engine.Handshaker. spoken says so if crypto/tls encrypts and decrypts.
func (e *Engine) Session() (spoken string, resumed int64) { return e.spoken, e.resumed }

// Spoken describes the result of a handshake as in records: version and cipher suite.
func Spoken(s *tls.ConnectionState) string {
	return tls.VersionName(s.Version) + ", " + tls.CipherSuiteName(s.CipherSuite)
}

// Open implements engine.Engine.
func (e *Engine) Open(i int) {
	s := &e.slots[i]
	s.leave()
	s.phase, s.size = connecting, 0
	e.below.Open(i)
}

// leave drops the connection's state, except buffers.
func (s *slot) leave() {
	if s.phase == shaking {
		s.shake.stop()
	}
	s.in.drop()
	s.gen++
	s.phase, s.cached, s.requested, s.early, s.shake, s.err = shut, false, false, false, nil, nil
	s.waits = nil
}

// Close implements engine.Engine. It sends a close_notify alert unless a request is under way: many
// servers log connections that end without it, and some discard the session.
func (e *Engine) Close(i int) {
	s := &e.slots[i]
	if s.phase == open && !s.requested {
		e.alert(i, s, alertCloseNotify)
	}
	s.leave()
	e.below.Close(i)
}

// alert tries to send an alert.
func (e *Engine) alert(i int, s *slot, why byte) {
	if s.cached {
		// It fails if crypto/tls has sent an alert already.
		_ = s.shake.conn.CloseWrite()
		if b := s.shake.flight(); len(b) > 0 {
			e.send(i, s, b)
		}
		return
	}
	level := byte(2)
	if why == alertCloseNotify {
		level = 1
	}
	s.before = s.out.record(s.before[:0], typeAlert, []byte{level, why})
	e.send(i, s, s.before)
}

// send makes the engine below send bytes that are not a request.
func (e *Engine) send(i int, s *slot, b []byte) {
	if e.stream == nil {
		e.below.Send(i, b)
		return
	}
	if len(s.waits) == 0 {
		b = b[e.stream.Push(i, b):]
	}
	s.waits = append(s.waits, b...)
}

// Release implements engine.Engine. The thread that opened the connections must call it.
func (e *Engine) Release() {
	for i := range e.slots {
		e.slots[i].leave()
	}
	e.below.Release()
}

// Send implements engine.Engine.
func (e *Engine) Send(i int, b []byte) {
	s := &e.slots[i]
	s.requested, s.size = true, len(b)
	s.early = s.early || e.reading == i
	s.in.stale = s.in.stale || s.in.partial()
	if s.cached {
		if _, err := s.shake.conn.Write(b); err != nil {
			e.fail(i, s, err)
			return
		}
		e.below.Send(i, s.shake.flight())
		return
	}
	s.sealed, s.before = s.before[:0], s.sealed
	if err := s.seal(b); err != nil {
		e.fail(i, s, err)
		return
	}
	e.below.Send(i, s.sealed)
}

// Unsent implements engine.Engine. The encrypted rest is longer than the rest by about 0.1 %.
func (e *Engine) Unsent(i int) int { return min(e.below.Unsent(i), e.slots[i].size) }

// seal appends b, encrypted, to sealed.
func (s *slot) seal(b []byte) error {
	if s.in.reply { // must precede the next request (RFC 8446, section 4.6.3)
		s.in.reply = false
		s.sealed = s.out.record(s.sealed, typeHandshake, updated)
		if err := s.out.update(); err != nil {
			return err
		}
	}
	s.sealed = s.out.seal(s.sealed, b)
	return nil
}

// pushMax is how many bytes are encrypted at once.
const pushMax = 4 * plainMax

// Push implements engine.Streamer. Encrypted records must be sent, so Push keeps those that the
// engine below does not accept, and accepts nothing more meanwhile.
func (e *Engine) Push(i int, b []byte) (n int) {
	s := &e.slots[i]
	for n < len(b) && len(s.waits) == 0 {
		piece := b[n:min(n+pushMax, len(b))]
		n += len(piece)
		sealed, err := s.push(piece)
		if err != nil {
			e.fail(i, s, err)
			return len(b)
		}
		s.waits = sealed[e.stream.Push(i, sealed):]
	}
	return n
}

func (s *slot) push(b []byte) ([]byte, error) {
	if s.cached {
		_, err := s.shake.conn.Write(b)
		return s.shake.flight(), err
	}
	s.sealed = s.sealed[:0]
	err := s.seal(b)
	return s.sealed, err
}

// updated is the reply to a key update that requests one.
var updated = []byte{messageKeyUpdate, 0, 0, 1, 0}

// fail records an error that ends a connection in the next Wait.
func (e *Engine) fail(i int, s *slot, err error) {
	s.err = err
	e.untold = append(e.untold, int32(i))
}

// Wait implements engine.Engine.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	e.to = h
	if n := len(e.untold); n > 0 {
		for _, i := range e.untold[:n] {
			if s := &e.slots[i]; s.err != nil {
				e.end(int(i), s, clock.Mono(), engine.Writing, s.err)
			}
		}
		e.untold = e.untold[:copy(e.untold, e.untold[n:])]
		deadline = math.MinInt64 // an event was delivered: only poll for more
	}
	return e.below.Wait(deadline, (*ear)(e))
}

// end closes a connection and reports the interrupted operation.
func (e *Engine) end(i int, s *slot, atNs int64, op engine.Op, err error) {
	s.leave()
	e.below.Close(i)
	e.to.Closed(i, atNs, op, err)
}

// ear is the Handler of the engine below.
type ear Engine

// Opened implements engine.Handler.
func (r *ear) Opened(i int, _ int64) {
	e, s := (*Engine)(r), &r.slots[i]
	s.phase, s.began, s.shake = shaking, clock.Mono(), newShake(r.config)
	e.step(i, s)
}

// Received implements engine.Handler.
func (r *ear) Received(i int, atNs int64, b []byte) {
	e, s := (*Engine)(r), &r.slots[i]
	s.early = false
	r.reading = i
	if s.phase == shaking {
		s.shake.come = append(s.shake.come, b...)
		gen := s.gen
		if e.step(i, s); s.phase != open || s.gen != gen {
			r.reading = -1
			return
		}
		if b = nil; !s.cached {
			b = s.shake.rest()
		}
	}
	if s.cached {
		e.pass(i, s, atNs, b)
	} else {
		e.take(i, s, atNs, b)
	}
	r.reading = -1
}

// Closed implements engine.Handler.
func (r *ear) Closed(i int, atNs int64, op engine.Op, err error) {
	e, s := (*Engine)(r), &r.slots[i]
	switch s.phase {
	case shut:
		return
	case shaking:
		if s.shake.end = err; err == nil {
			s.shake.end = io.EOF
		}
		e.step(i, s)
		return
	case open:
		switch {
		case err != nil:
		case s.unfinished():
			err = io.ErrUnexpectedEOF
		default:
			err = engine.ErrTruncated
		}
	}
	s.leave()
	r.to.Closed(i, atNs, op, err)
}

// Drained implements engine.Drained.
func (r *ear) Drained(i int, atNs int64) {
	s := &r.slots[i]
	if len(s.waits) > 0 {
		s.waits = s.waits[r.stream.Push(i, s.waits):]
	}
	if len(s.waits) == 0 && s.phase == open {
		r.to.(engine.Drained).Drained(i, atNs)
	}
}

// unfinished reports whether a record is incomplete.
func (s *slot) unfinished() bool {
	if !s.cached {
		return s.in.partial()
	}
	s.shake.end = io.EOF
	_, err := s.shake.conn.Read(s.shake.item[:])
	return err != io.EOF
}

// step continues a handshake with the bytes that have come.
func (e *Engine) step(i int, s *slot) {
	h := s.shake
	e.log.shake = h
	_, going := h.next()
	if b := h.flight(); len(b) > 0 && h.end == nil {
		e.send(i, s, b)
	}
	if going {
		return
	}
	now := clock.Mono()
	s.phase = open // so that leave does not stop the handshake
	if h.err != nil {
		s.requested = true // so that Close sends no alert
		e.end(i, s, now, engine.Connecting, fmt.Errorf("TLS handshake: %w",
			socket.Handshake(h.err, e.unanswered.Load())))
		return
	}
	// The timeout of connects bounds the value, far inside the range.
	_ = e.handshakes.RecordValue(max(now-s.began, 1))
	state := h.conn.ConnectionState()
	if e.stream != nil && state.NegotiatedProtocol != "h2" {
		e.end(i, s, now, engine.Connecting, errNoH2)
		return
	}
	if state.DidResume {
		e.resumed++
	}
	e.spoken = Spoken(&state)
	if s.cached = !s.equip(&state); s.cached {
		e.spoken += ", sealed by crypto/tls"
	}
	e.to.Opened(i, now)
}

// equip takes the keys over from crypto/tls, and reports whether that is possible.
func (s *slot) equip(state *tls.ConnectionState) bool {
	means := suites[state.CipherSuite]
	if means == nil || state.Version != tls.VersionTLS13 || s.shake.client == nil ||
		s.shake.server == nil {
		return false
	}
	if s.out.key(means, s.shake.client) != nil || s.in.key(means, s.shake.server) != nil {
		return false
	}
	s.in.tap = s.shake.tap
	return true
}

// take passes on the data in b. The Handler can close or reopen the connection meanwhile, which
// changes its generation.
func (e *Engine) take(i int, s *slot, atNs int64, b []byte) {
	for gen := s.gen; ; {
		data, tail, err := s.in.next(b)
		if err != nil {
			e.ended(i, s, atNs, err)
			return
		}
		if data == nil {
			break
		}
		if s.early || s.in.old {
			e.unasked(i, s, atNs, data)
			return
		}
		b, s.requested, s.shake = tail, false, nil
		if e.to.Received(i, atNs, data); s.gen != gen {
			return
		}
	}
	s.in.stale = s.in.stale || s.early && s.in.partial()
}

// unasked ends a connection whose peer sent data before the request that is under way. A farewell
// is an end of the connection, which the request crosses.
func (e *Engine) unasked(i int, s *slot, atNs int64, data []byte) {
	if http1.IsFarewell(data) {
		e.end(i, s, atNs, engine.Reading, nil)
		return
	}
	e.end(i, s, atNs, engine.Writing, errUnasked)
}

// ended ends a connection because the peer closes it or because of an error in its data.
func (e *Engine) ended(i int, s *slot, atNs int64, err error) {
	if err == io.EOF {
		err = nil
	} else if why, ok := objection(err); ok && !s.cached {
		e.alert(i, s, why)
	}
	e.end(i, s, atNs, engine.Reading, err)
}

// pass passes on the data in b, decrypted by crypto/tls.
func (e *Engine) pass(i int, s *slot, atNs int64, b []byte) {
	if e.plain == nil {
		e.plain = make([]byte, plainSize)
	}
	s.shake.come = append(s.shake.come, b...)
	for gen := s.gen; s.shake.pos < len(s.shake.come); {
		n, err := s.shake.conn.Read(e.plain)
		if n > 0 && s.early {
			e.unasked(i, s, atNs, e.plain[:n])
			return
		}
		if n > 0 {
			s.requested = false
			if e.to.Received(i, atNs, e.plain[:n]); s.gen != gen {
				return
			}
		}
		if err != nil && !waits(err) {
			if b := s.shake.flight(); len(b) > 0 {
				e.send(i, s, b)
			}
			e.ended(i, s, atNs, err)
			return
		}
	}
}
