package nethttp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/engine/http1"
)

// stream is HTTP/1.1 on a byte stream: TLS or a Unix socket.
type stream struct {
	e    *Engine
	conn net.Conn
	idle *idle // the connection below conn
	buf  []byte
	resp http1.Response
	end  chan error  // of the write under way, or of the last one until cut reads it
	stop func() bool // cancels the close of conn when the slot is closed
}

const readSize = 64 << 10

func (c *stream) open(ctx context.Context) (err error) {
	if c.conn, err = c.e.dial(ctx, "http/1.1"); err != nil {
		return err
	}
	c.idle = idleBelow(c.conn)
	c.buf, c.end = make([]byte, readSize), make(chan error, 1)
	conn := c.conn
	c.stop = context.AfterFunc(ctx, func() { conn.Close() })
	return nil
}

// writeAtOnce is the most that is written before the response is read. It fits into the kernel's
// buffer.
const writeAtOnce = 16 << 10

// write writes the request in pieces and counts what has left. If the server responds or ends the
// connection meanwhile, cut ends the write. write puts its error, or nil, into c.end.
func (c *stream) write(b []byte, unsent *atomic.Int64) {
	var err error
	for len(b) > 0 && err == nil {
		var n int
		n, err = c.conn.Write(b[:min(len(b), writeAtOnce)])
		b = b[n:]
		unsent.Store(int64(len(b)))
	}
	c.end <- err
}

// cut ends a write that is under way and returns its error. The connection is then of no use unless
// all was written.
func (c *stream) cut() error {
	select {
	case err := <-c.end:
		return err
	default:
	}
	_ = c.conn.SetWriteDeadline(time.Unix(1, 0)) // cannot fail on an open connection
	err := <-c.end
	if err == nil {
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
	return err
}

// exchange reads a response to its end, after which the next request may leave. It also passes on a
// response that it cannot parse, because the Handler parses the same bytes. A server can respond
// before it has read a large request, so exchange reads while it writes.
func (c *stream) exchange(_ context.Context, b []byte, s *sink) (engine.Op, error) {
	if err := c.before(); err != nil {
		return engine.Writing, err
	}
	s.unsent.Store(int64(len(b)))
	if len(b) <= writeAtOnce {
		c.write(b, s.unsent)
		if err := <-c.end; err != nil {
			return engine.Writing, err
		}
		c.end <- nil
	} else {
		go c.write(b, s.unsent)
	}
	c.resp.Reset()
	c.resp.Expect(len(b) > 4 && string(b[:5]) == "HEAD ", false)
	for done := false; !done; {
		n, err := c.conn.Read(c.buf)
		atNs := clock.Mono()
		if n > 0 {
			piece := append([]byte(nil), c.buf[:n]...)
			if done = c.whole(piece); done {
				_ = c.cut() // the Handler gives the connection up if the request is not sent
			}
			s.answer(atNs, piece)
		}
		if err != nil && !done {
			if cut := c.cut(); cut != nil && !errors.Is(cut, os.ErrDeadlineExceeded) {
				return engine.Writing, cut
			}
			if errors.Is(err, io.EOF) && c.idle.ended && c.conn != net.Conn(c.idle) {
				err = engine.ErrTruncated // crypto/tls takes it for an orderly close
			}
			return engine.Reading, err
		}
	}
	return 0, nil
}

// ended is the error if the connection was closed while idle, so that the request never left.
const ended = engine.Untaken("the server closed the idle connection")

// before checks for events since the last response: stray bytes, which would become part of the
// next response, or the end of the connection.
func (c *stream) before() error {
	c.idle.look = true
	n, err := c.conn.Read(c.buf) // errors other than the end recur
	c.idle.look = false
	switch {
	case n > 0 && !http1.IsFarewell(c.buf[:n]):
		return engine.Unsolicited(c.buf[:n])
	case n > 0 || errors.Is(err, io.EOF):
		return ended
	}
	return nil
}

// whole reports whether the response ends with b or is malformed.
func (c *stream) whole(b []byte) bool {
	for len(b) > 0 {
		n, _, done, err := c.resp.Next(b)
		if done || err != nil {
			return true
		}
		b = b[n:]
	}
	return false
}

func (c *stream) close() {
	if c.conn != nil {
		c.stop()
		c.conn.Close()
	}
}
