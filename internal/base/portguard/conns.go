package portguard

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Options configure a Listener or a Table.
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

// Connections returns the total as words, such as "1 connection".
func (r Refused) Connections() string {
	if r.Total() == 1 {
		return "1 connection"
	}
	return fmt.Sprintf("%d connections", r.Total())
}

// Table is the bounded set of connections of a listener. A server that accepts connections itself
// has one without a Listener, and calls Enter. Make it with NewTable.
type Table struct {
	most int

	mu    sync.Mutex // guards the fields below and the state of all connections
	open  int
	over  bool      // closed: no connection enters
	busy  int       // connections that Protect keeps busy
	fresh list.List // of *conn, the oldest first
	idle  list.List // of *conn, the longest idle first
	freed chan struct{}
	tally tally
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	return &Table{most: max(o.Most, 1), freed: make(chan struct{}, 1),
		tally: tally{report: o.Report}}
}

// Refused returns the number of connections refused so far.
func (t *Table) Refused() Refused { return t.tally.sum() }

// Listener is a net.Listener with a bounded number of connections. Make it with New.
type Listener struct {
	net.Listener
	*Table

	closed chan struct{}
	end    sync.Once
}

// New returns a listener that bounds the connections of another.
func New(l net.Listener, o Options) *Listener {
	return &Listener{Listener: l, Table: NewTable(o), closed: make(chan struct{})}
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
		c := &conn{Conn: inner, table: l.Table}
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

// errBusy is the error of Enter if all connections are busy, or the table is closed.
var errBusy = errors.New("all connections are busy")

// Enter adds a connection, in place of another one if the table is full, and returns the connection
// that the server must use from now on. It fails if all others are busy, and after Close; the
// caller then closes the connection.
func (t *Table) Enter(inner net.Conn) (net.Conn, error) {
	c := &conn{Conn: inner, table: t}
	if !t.enter(c) {
		return nil, errBusy
	}
	return c, nil
}

// enter adds a connection, and reports false if all others are busy.
func (t *Table) enter(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || t.open >= t.most && !t.evict() {
		return false
	}
	t.open++
	c.open = true
	c.move(&t.fresh)
	return true
}

// evict closes the oldest fresh connection, otherwise the longest idle one; it reports false if
// there is none. The caller has the lock.
func (t *Table) evict() bool {
	first := t.fresh.Front()
	if first == nil {
		first = t.idle.Front()
	}
	if first == nil {
		return false
	}
	c := first.Value.(*conn)
	if !c.known && !c.denied {
		t.tally.add(Refused{Closed: 1})
	}
	c.leave()
	go c.Conn.Close() //nolint:errcheck // TLS may wait to send its last message
	return true
}

// Close reports the last refusals, and closes the fresh connections, because a server that ends
// would otherwise wait for their requests. Other connections stay open.
func (t *Table) Close() {
	t.tally.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	for t.fresh.Len() > 0 {
		t.evict()
	}
}

// Close stops listening, and closes the table. The report of the last refusals comes first, because
// the program may end once nothing listens any more.
func (l *Listener) Close() error {
	l.end.Do(func() { close(l.closed) })
	l.tally.stop()
	err := l.Listener.Close()
	l.Table.Close()
	return err
}

// conn is a connection in the table of its listener.
type conn struct {
	net.Conn
	table *Table

	// Guarded by the table's lock.
	open     bool
	known    bool
	requests int // that Protect keeps it busy for
	denied   bool
	in       *list.List // fresh or idle; nil if busy or closed
	place    *list.Element
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.table.mu.Lock()
	c.leave()
	c.table.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite ends the sending direction, so that a client still receives the last response.
func (c *conn) CloseWrite() error {
	if inner, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return inner.CloseWrite()
	}
	return nil
}

// leave removes the connection from the table. The caller has the table's lock.
func (c *conn) leave() {
	if !c.open {
		return
	}
	c.move(nil)
	c.open = false
	c.table.open--
	c.table.signal()
}

// move puts the connection at the end of a list, or of none. The caller has the table's lock.
func (c *conn) move(to *list.List) {
	if c.in == to || !c.open {
		return
	}
	if c.in != nil {
		c.in.Remove(c.place)
	}
	if c.in, c.place = to, nil; to != nil {
		c.place = to.PushBack(c)
		c.table.signal()
	}
}

// signal wakes Accept, which may wait for room.
func (t *Table) signal() {
	select {
	case t.freed <- struct{}{}:
	default:
	}
}

// AdmitConn marks a connection of a guarded listener as busy and its client as known. For other
// connections it does nothing.
func AdmitConn(c net.Conn) {
	if c, ok := guarded(c); ok {
		c.table.mu.Lock()
		c.known = true
		c.move(nil)
		c.table.mu.Unlock()
	}
}

// ProtectConn keeps a connection of a guarded listener busy until release is called, for a complete
// request of a client that may still be unknown. At most half of the connections are protected;
// further ones stay as they are.
func ProtectConn(c net.Conn) (release func()) {
	g, ok := guarded(c)
	if !ok {
		return func() {}
	}
	t := g.table
	t.mu.Lock()
	defer t.mu.Unlock()
	protected := g.requests > 0 || t.busy < max(t.most/2, 1)
	if protected {
		if g.requests++; g.requests == 1 {
			t.busy++
			g.move(nil)
		}
	}
	return func() { g.release(protected) }
}

// release ends the protection of a request. After the last one, the connection is idle, or fresh
// again.
func (c *conn) release(protected bool) {
	t := c.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if protected {
		if c.requests--; c.requests == 0 {
			t.busy--
		}
	}
	switch {
	case c.requests > 0:
	case c.known:
		c.move(&t.idle)
	default:
		c.move(&t.fresh)
	}
}

// DenyConn counts a connection as refused. The caller closes it.
func DenyConn(c net.Conn) {
	if c, ok := guarded(c); ok {
		c.table.mu.Lock()
		if !c.denied {
			c.denied = true
			c.table.tally.add(Refused{Denied: 1})
		}
		c.table.mu.Unlock()
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
