package nethttp

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// idle is a connection from which available bytes can be read without waiting.
type idle struct {
	net.Conn
	raw   syscall.RawConn
	look  bool // Read does not wait
	ended bool // the peer has ended the connection
}

func newIdle(c net.Conn) (*idle, error) {
	raw, err := c.(syscall.Conn).SyscallConn() // TCP and Unix connections implement it
	return &idle{Conn: c, raw: raw}, err
}

// idleBelow returns the idle that dial has made, with or without TLS over it.
func idleBelow(c net.Conn) *idle {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	return c.(*idle)
}

// pending reports whether a Read, also one under way, has something to return: bytes or the end.
func (c *idle) pending() (some bool) {
	err := c.raw.Control(func(fd uintptr) { some = readable(fd) })
	return some && err == nil
}

// Read reads from the connection. If look is set and nothing is available, it returns a deadline
// error, which leaves the TLS state intact.
func (c *idle) Read(b []byte) (n int, err error) {
	if !c.look {
		n, err = c.Conn.Read(b)
		c.ended = err == io.EOF
		return n, err
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = peek(fd, b)
		return true
	})
	switch {
	case failed != nil || err != nil: // the next Read reports it
		return 0, os.ErrDeadlineExceeded
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// frames is a WebSocket connection that checks the server's frames. The library accepts masked
// frames, but servers must not mask (RFC 6455, section 5.1).
type frames struct {
	net.Conn
	opened    bool
	head      []byte      // start of a frame, or the last bytes of the opening response
	remaining uint64      // bytes of the frame's payload still to come
	waits     atomic.Bool // a Read is under way, so all that came before is processed
}

var errMasked = errors.New("a frame of the server is masked, which none may be (RFC 6455)")

// opening ends the response that opens the connection.
const opening = "\r\n\r\n"

func (c *frames) Read(b []byte) (int, error) {
	c.waits.Store(true)
	n, err := c.Conn.Read(b)
	c.waits.Store(false)
	if c.masked(b[:n]) {
		return 0, errMasked
	}
	return n, err
}

// masked parses frames and reports whether one is masked.
func (c *frames) masked(b []byte) bool {
	for len(b) > 0 {
		if c.opened && c.remaining > 0 {
			n := min(c.remaining, uint64(len(b)))
			b, c.remaining = b[n:], c.remaining-n
			continue
		}
		c.head, b = append(c.head, b[0]), b[1:]
		switch {
		case !c.opened && bytes.HasSuffix(c.head, []byte(opening)):
			c.opened, c.head = true, c.head[:0]
		case !c.opened:
			c.head = c.head[max(0, len(c.head)-len(opening)):]
		case len(c.head) < 2:
		case c.head[1]&0x80 != 0:
			return true
		case c.head[1] == 126 && len(c.head) < 4 || c.head[1] == 127 && len(c.head) < 10:
		default:
			c.remaining, c.head = payload(c.head), c.head[:0]
		}
	}
	return false
}

// payload returns the payload length from a frame's complete head (RFC 6455, section 5.2).
func payload(head []byte) uint64 {
	switch head[1] {
	case 126:
		return uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		return binary.BigEndian.Uint64(head[2:])
	}
	return uint64(head[1])
}
