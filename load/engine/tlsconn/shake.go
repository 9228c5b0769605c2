package tlsconn

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"iter"
	"net"
	"os"
	"time"
)

// shake is a handshake under way. crypto/tls blocks until its peer sends; here it runs as a
// coroutine on the load's own thread, which yields if nothing is available. So nothing blocks, no
// thread is woken, and the thread itself bears the cost of handshakes.
type shake struct {
	pipe
	conn *tls.Conn
	next func() (struct{}, bool) // continues until more bytes are needed; false: it is over
	stop func()                  // ends it in any state
	err  error                   // how it ended
	keys
	item [1]byte
}

func newShake(c *tls.Config) *shake {
	s := &shake{}
	s.remaining = headSize
	s.conn = tls.Client(&s.pipe, c)
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.pause = func() bool { return yield(struct{}{}) }
		s.err = s.conn.Handshake()
		s.pause = nil
	})
	return s
}

// tap makes crypto/tls process session tickets: it gets each record that is not a response.
func (s *shake) tap(record []byte, kind byte) error {
	s.come = append(s.come, record...)
	_, err := s.conn.Read(s.item[:])
	s.out = s.out[:0] // this package sends the reply
	if kind != typeHandshake || waits(err) {
		return nil
	}
	return err
}

// waits reports whether the only problem is that more bytes are needed.
func waits(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// keys are the traffic secrets of a connection.
type keys struct{ client, server []byte }

// keyLog collects the secrets of the handshake under way.
type keyLog struct{ shake *shake }

// Write parses a line of a key log: a name, the client's random bytes, a secret.
func (l *keyLog) Write(line []byte) (int, error) {
	f := bytes.Fields(line)
	if len(f) != 3 {
		return len(line), nil
	}
	secret, err := hex.DecodeString(string(f[2]))
	if err != nil {
		return 0, err
	}
	switch string(f[0]) {
	case "CLIENT_TRAFFIC_SECRET_0":
		l.shake.client = secret
	case "SERVER_TRAFFIC_SECRET_0":
		l.shake.server = secret
	}
	return len(line), nil
}

// pipe is the in-memory connection that crypto/tls uses. It returns no bytes after the record that
// is being read, because crypto/tls must not read beyond the handshake.
type pipe struct {
	come      []byte
	pos       int  // bytes of come already returned
	remaining int  // bytes left of the record's head, or of its payload
	inner     bool // reading the payload
	head      []byte
	end       error       // of the connection
	pause     func() bool // waits for more bytes; false: none will come; nil: do not wait

	out    []byte // to be sent
	flying []byte // sent last; unchanged until it must have been read
}

// Read implements net.Conn.
func (p *pipe) Read(b []byte) (int, error) {
	for p.pos == len(p.come) {
		p.come, p.pos = p.come[:0], 0
		switch {
		case p.end != nil:
			return 0, p.end
		case p.pause == nil:
			return 0, os.ErrDeadlineExceeded // which leaves the state of crypto/tls intact
		case !p.pause():
			return 0, net.ErrClosed
		}
	}
	b = b[:copy(b[:min(len(b), p.remaining)], p.come[p.pos:])]
	p.pos += len(b)
	p.follow(b)
	return len(b), nil
}

// follow tracks where records begin.
func (p *pipe) follow(b []byte) {
	if !p.inner {
		p.head = append(p.head, b...)
	}
	if p.remaining -= len(b); p.remaining > 0 {
		return
	}
	if p.inner = !p.inner; p.inner {
		p.remaining = int(p.head[3])<<8 | int(p.head[4])
	}
	if p.remaining == 0 {
		p.inner, p.remaining, p.head = false, headSize, p.head[:0]
	}
}

// rest returns the bytes not yet read and removes them from the pipe.
func (p *pipe) rest() []byte {
	b := p.come[p.pos:]
	p.come, p.pos = nil, 0
	return b
}

// Write implements net.Conn.
func (p *pipe) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

// flight returns the bytes to send now. They stay unchanged until the flight after the next.
func (p *pipe) flight() []byte {
	p.out, p.flying = p.flying[:0], p.out
	return p.flying
}

// The other methods of net.Conn, which crypto/tls does not need here.

func (p *pipe) Close() error                     { return nil }
func (p *pipe) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (p *pipe) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
