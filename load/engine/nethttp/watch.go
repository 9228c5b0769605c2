package nethttp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

var errUnasked = errors.New("an answer that nobody asked for came before the request")

// idle is a connection that can be looked into without waiting for it.
type idle struct {
	net.Conn
	raw  syscall.RawConn
	look bool // Read waits for nothing
}

func newIdle(c net.Conn) (*idle, error) {
	raw, err := c.(syscall.Conn).SyscallConn() // TCP's and Unix's both are
	return &idle{Conn: c, raw: raw}, err
}

// Read is that of the connection. Where nothing is waited for, nothing there is a deadline that has
// passed, which leaves TLS as it was.
func (c *idle) Read(b []byte) (n int, err error) {
	if !c.look {
		return c.Conn.Read(b)
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = peek(fd, b)
		return true
	})
	switch {
	case failed != nil || err != nil: // which the next to read is told
		return 0, os.ErrDeadlineExceeded
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// frames is a connection of WebSocket whose server's frames are looked at as they come, since the
// library takes those that are masked: no server's may be (RFC 6455, section 5.1).
type frames struct {
	net.Conn
	opened    bool
	head      []byte // of a frame, or the end of what opens the connection; as far as it has come
	remaining uint64 // bytes of the frame's payload that are still to come
}

var errMasked = errors.New("a frame of the server is masked, which none may be (RFC 6455)")

// opening ends the answer with which a connection opens.
const opening = "\r\n\r\n"

func (c *frames) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.masked(b[:n]) {
		return 0, errMasked
	}
	return n, err
}

// masked follows the frames and reports whether one is masked.
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

// payload is a length as a whole head gives it (RFC 6455, section 5.2).
func payload(head []byte) uint64 {
	switch head[1] {
	case 126:
		return uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		return binary.BigEndian.Uint64(head[2:])
	}
	return uint64(head[1])
}
