package portguard

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Options configure a Listener.
type Options struct {
	// Most is the largest number of concurrent connections, at least 1.
	Most int
	// Report receives the connections refused since the previous report, at most once a minute and
	// when the listener closes. It may be nil.
	Report func(Refused)
}

// Refused counts refused connections.
type Refused struct {
	Denied int // by DenyConn or Deny: without a valid token
	Closed int // without a valid request so far, in favor of newer ones
}

// Total returns the number of all refused connections.
func (r Refused) Total() int { return r.Denied + r.Closed }

// Listener is a net.Listener with a bounded number of connections. Make it with New.
type Listener struct {
	net.Listener
	most int

	mu     sync.Mutex // guards the fields below and the state of all connections
	open   int
	fresh  list.List // of *conn, the oldest first
	idle   list.List // of *conn, the longest idle first
	freed  chan struct{}
	closed chan struct{}
	end    sync.Once
	tally  tally
}

// New returns a listener that bounds the connections of another.
func New(l net.Listener, o Options) *Listener {
	return &Listener{Listener: l, most: max(o.Most, 1), freed: make(chan struct{}, 1),
		closed: make(chan struct{}), tally: tally{report: o.Report}}
}

// Accept returns the next connection. It makes room for it as the package comment describes.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			if l.scarce(err) {
				continue
			}
			return nil, err
		}
		c := &conn{Conn: inner, listener: l}
		for !l.enter(c) {
			select {
			case <-l.freed:
			case <-l.closed:
				c.Close() //nolint:errcheck // nobody was served
				return nil, net.ErrClosed
			}
		}
		return c, nil
	}
}

// pause is the wait before the next attempt if the process has no file descriptors left.
const pause = 10 * time.Millisecond

// scarce reports whether accepting failed only because file descriptors are used up. It then closes
// a connection that is not busy, and waits briefly.
func (l *Listener) scarce(err error) bool {
	if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
		return false
	}
	l.mu.Lock()
	l.evict()
	l.mu.Unlock()
	select {
	case <-l.closed:
		return false
	case <-time.After(pause):
		return true
	}
}

// enter adds a connection, and reports false if all others are busy.
func (l *Listener) enter(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most && !l.evict() {
		return false
	}
	l.open++
	c.open = true
	c.move(&l.fresh)
	return true
}

// evict closes the oldest fresh connection, otherwise the longest idle one; it reports false if
// there is none. The caller has the lock.
func (l *Listener) evict() bool {
	first := l.fresh.Front()
	if first == nil {
		first = l.idle.Front()
	}
	if first == nil {
		return false
	}
	c := first.Value.(*conn)
	if !c.known && !c.denied {
		l.tally.add(Refused{Closed: 1})
	}
	c.leave()
	go c.Conn.Close() //nolint:errcheck // TLS may wait to send its last message
	return true
}

// Close stops listening, reports the last refusals, and closes the fresh connections, because a
// server that ends would otherwise wait for their requests. Other connections stay open.
func (l *Listener) Close() error {
	l.end.Do(func() { close(l.closed) })
	l.tally.stop()
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.fresh.Len() > 0 {
		l.evict()
	}
	return err
}

// conn is a connection in the table of its listener.
type conn struct {
	net.Conn
	listener *Listener

	// Guarded by the listener's lock.
	open   bool
	known  bool
	denied bool
	in     *list.List // fresh or idle; nil if busy or closed
	place  *list.Element
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.mu.Lock()
	c.leave()
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends the sending direction, so that a client still receives the last response.
func (c *conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// leave removes the connection from the table. The caller has the listener's lock.
func (c *conn) leave() {
	if !c.open {
		return
	}
	c.move(nil)
	c.open = false
	c.listener.open--
	c.listener.signal()
}

// move puts the connection at the end of a list, or of none. The caller has the listener's lock.
func (c *conn) move(to *list.List) {
	if c.in == to || !c.open {
		return
	}
	if c.in != nil {
		c.in.Remove(c.place)
	}
	if c.in, c.place = to, nil; to != nil {
		c.place = to.PushBack(c)
		c.listener.signal()
	}
}

// signal wakes Accept, which may wait for room.
func (l *Listener) signal() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

// AdmitConn marks a connection of a guarded listener as busy and its client as known. For other
// connections it does nothing.
func AdmitConn(c net.Conn) {
	if c, ok := guarded(c); ok {
		c.listener.mu.Lock()
		c.known = true
		c.move(nil)
		c.listener.mu.Unlock()
	}
}

// DenyConn counts a connection as refused. The caller closes it.
func DenyConn(c net.Conn) {
	if c, ok := guarded(c); ok {
		c.listener.mu.Lock()
		if !c.denied {
			c.denied = true
			c.listener.tally.add(Refused{Denied: 1})
		}
		c.listener.mu.Unlock()
	}
}

// guarded finds the guarded connection within one, such as a *tls.Conn.
func guarded(c net.Conn) (*conn, bool) {
	for {
		switch is := c.(type) {
		case *conn:
			return is, true
		case interface{ NetConn() net.Conn }:
			c = is.NetConn()
		default:
			return nil, false
		}
	}
}
