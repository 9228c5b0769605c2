package tlsconn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"iter"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"prony.example/load/engine/socket"
)

// shake is a handshake under way. crypto/tls reads until its peer has spoken; here it does so as a
// coroutine on the load's own thread, which leaves it where nothing is there to be read. So nothing
// waits, no thread is woken, and what a handshake costs is the thread's.
type shake struct {
	pipe
	conn *tls.Conn
	next func() (struct{}, bool) // goes on until more must come; false: it is over
	stop func()                  // ends it, wherever it is
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

// tap has crypto/tls take note of tickets: it sees each record that is no answer.
func (s *shake) tap(record []byte, kind byte) error {
	s.come = append(s.come, record...)
	_, err := s.conn.Read(s.item[:])
	s.out = s.out[:0] // what it has to say, this side says
	if kind != typeHandshake || waits(err) {
		return nil
	}
	return err
}

// waits reports whether all is well, and only more must come.
func waits(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// keys are the secrets of a connection.
type keys struct{ client, server []byte }

// keyLog hears of the secrets of the handshake that is under way.
type keyLog struct{ shake *shake }

// Write takes a line of a key log: a name, the client's random bytes, a secret.
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

// pipe is a connection in memory, as crypto/tls sees it. It gives out no more than the record that
// is being read: what follows a handshake is not crypto/tls's.
type pipe struct {
	come      []byte
	pos       int  // how much of it was given out
	remaining int  // of the record's head, or of what follows it
	inner     bool // behind the head
	head      []byte
	end       error       // of the connection
	pause     func() bool // until more has come; false: never; nil: nothing is waited for

	out    []byte // to be sent
	flying []byte // was sent last: it stays as it is until it must have been read
}

// Read implements net.Conn.
func (p *pipe) Read(b []byte) (int, error) {
	for p.pos == len(p.come) {
		p.come, p.pos = p.come[:0], 0
		switch {
		case p.end != nil:
			return 0, p.end
		case p.pause == nil:
			return 0, os.ErrDeadlineExceeded // which leaves crypto/tls as it was
		case !p.pause():
			return 0, net.ErrClosed
		}
	}
	b = b[:copy(b[:min(len(b), p.remaining)], p.come[p.pos:])]
	p.pos += len(b)
	p.follow(b)
	return len(b), nil
}

// follow keeps account of where records begin.
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

// rest is what has come and was not given out; it is not the pipe's any more.
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

// flight is what is to be sent now. It stays untouched until the flight after the next.
func (p *pipe) flight() []byte {
	p.out, p.flying = p.flying[:0], p.out
	return p.flying
}

// The rest of net.Conn, which crypto/tls has no need of here.

func (p *pipe) Close() error                     { return nil }
func (p *pipe) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (p *pipe) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (p *pipe) SetDeadline(time.Time) error      { return nil }
func (p *pipe) SetReadDeadline(time.Time) error  { return nil }
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }

// Explain adds to a failure of connecting what to do about it, where that is known.
func Explain(err error) error {
	var record tls.RecordHeaderError
	var stranger x509.UnknownAuthorityError
	switch {
	case errors.As(err, &stranger):
		return errors.New("no trusted authority signed its certificate; trust its authority with " +
			"--ca FILE, or any certificate with -k")
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		return socket.ErrNone
	case errors.As(err, &record) && strings.HasPrefix(string(record.RecordHeader[:]), "HTTP"):
		return errors.New("the port speaks plain HTTP; use http://")
	case errors.As(err, &record):
		return errors.New("the port does not speak TLS; use http://, or the port that does")
	}
	return err
}
