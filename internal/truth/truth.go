// Package truth holds servers whose behaviour is known exactly, so that the lab can be tested
// against arithmetic instead of against itself. Each test states what a perfect instrument would
// read. Here a request is served by a goroutine of its own, which sleeps and is as late as Go's
// timers are; where a few hundred microseconds matter, package exact below it serves from one
// thread.
//
// Non-goals: speed (but for Null, which is the floor under every measurement) and HTTP at large: a
// request is whatever ends in an empty line, with a body when Content-Length says so.
package truth

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"prony/internal/clock"
)

// Request is what the server understood of a request.
type Request struct {
	N      int64 // number of the request on the whole server, from 1
	OnConn int64 // likewise on its connection
	Method string
	Path   string
	Body   []byte
}

// Conn is a handler's side of a connection.
type Conn struct {
	net.Conn
	W io.Writer
}

// Handler answers a request; false closes the connection.
type Handler func(c *Conn, r *Request) bool

// Server serves a Handler on 127.0.0.1.
type Server struct {
	Addr     netip.AddrPort
	Requests atomic.Int64
	Accepted atomic.Int64

	l      net.Listener
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

// Serve starts a server on a free port. Close it.
func Serve(h Handler) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve truth: %w", err)
	}
	return ServeOn(l, h), nil
}

// ServeOn starts a server on a listener of the caller's, which it then owns.
func ServeOn(l net.Listener, h Handler) *Server {
	s := &Server{l: l, conns: map[net.Conn]bool{}}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		s.Addr = a.AddrPort()
	}
	s.wg.Add(1)
	go s.accept(h)
	return s
}

func (s *Server) accept(h Handler) {
	defer s.wg.Done()
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.Accepted.Add(1)
		if !s.keep(c) {
			c.Close()
			return
		}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			s.serve(c, h)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			c.Close()
		}()
	}
}

// keep notes a connection for Close to end. One that was accepted while Close ran is refused:
// nobody would ever end it.
func (s *Server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = true
	}
	return !s.closed
}

// Close stops listening, closes every connection and waits for the handlers.
func (s *Server) Close() {
	s.l.Close()
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *Server) serve(c net.Conn, h Handler) {
	in := bufio.NewReader(c)
	conn := &Conn{Conn: c, W: c}
	for n := int64(1); ; n++ {
		r, err := read(in)
		if err != nil {
			return
		}
		r.OnConn = n
		r.N = s.Requests.Add(1)
		if !h(conn, r) {
			return
		}
	}
}

// bodyBits bounds a request's body, by the bits of its length.
const bodyBits = 24

func read(in *bufio.Reader) (*Request, error) {
	r := &Request{}
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if f := strings.Fields(line); len(f) == 3 {
		r.Method, r.Path = f[0], f[1]
	}
	length := 0
	for {
		line, err = in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		if strings.EqualFold(name, "Content-Length") {
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, bodyBits)
			if err != nil {
				return nil, err
			}
			length = int(n)
		}
	}
	r.Body = make([]byte, length)
	_, err = io.ReadFull(in, r.Body)
	return r, err
}

// Answer writes a whole response with a Content-Length.
func (c *Conn) Answer(status int, body string) bool {
	_, err := fmt.Fprintf(c.W,
		"HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		status, len(body), body)
	return err == nil
}

// Hello answers every request with status 200 and the body.
func Hello(body string) Handler {
	return func(c *Conn, _ *Request) bool { return c.Answer(200, body) }
}

// After answers like h, d after the request came, on any number of connections at once: a system
// with a service time of d and no queue. With N connections closed, throughput is N/d.
func After(d time.Duration, h Handler) Handler {
	return func(c *Conn, r *Request) bool {
		time.Sleep(d)
		return h(c, r)
	}
}

// OneAtATime lets h serve a single request at any moment: with After(d), a queue of a capacity just
// below 1/d, by as much as the timer is late for each.
func OneAtATime(h Handler) Handler {
	var mu sync.Mutex
	return func(c *Conn, r *Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return h(c, r)
	}
}

// Queue is a single server with a service time of exactly d and a queue without bound: request k is
// answered d after it came or d after request k-1 was, whichever is later. Those moments are
// arithmetic, so that a late timer delays one answer and not all that follow: capacity is 1/d.
func Queue(d time.Duration, h Handler) Handler {
	var mu sync.Mutex
	var free int64 // when the last request in the queue will have been served
	return func(c *Conn, r *Request) bool {
		now := clock.Mono()
		mu.Lock()
		free = max(free, now) + int64(d)
		end := free
		mu.Unlock()
		time.Sleep(time.Duration(end - now))
		return h(c, r)
	}
}

// Every gives each n-th request of the server to other, the rest to h.
func Every(n int64, other, h Handler) Handler {
	return func(c *Conn, r *Request) bool {
		if r.N%n == 0 {
			return other(c, r)
		}
		return h(c, r)
	}
}

// KeepAlive answers n requests of a connection with status 200 and the body, announces with the
// n-th that it will close, and closes.
func KeepAlive(n int64, body string) Handler {
	last := Raw(fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body), false)
	hello := Hello(body)
	return func(c *Conn, r *Request) bool {
		if r.OnConn >= n {
			return last(c, r)
		}
		return hello(c, r)
	}
}

// Change gives requests that come within at of the first one to before, later ones to after.
func Change(at time.Duration, before, after Handler) Handler {
	var first origin
	return func(c *Conn, r *Request) bool {
		if first.elapsed() < at {
			return before(c, r)
		}
		return after(c, r)
	}
}

// Stall freezes the whole server from at to at+d after the first request: no request is taken up
// and no answer leaves in that time.
func Stall(at, d time.Duration, h Handler) Handler {
	var first origin
	wait := func() {
		if t := first.elapsed(); t >= at && t < at+d {
			time.Sleep(at + d - t)
		}
	}
	return func(c *Conn, r *Request) bool {
		wait()
		held := *c
		held.W = gate{c.W, wait}
		return h(&held, r)
	}
}

// gate is a writer that waits first.
type gate struct {
	w    io.Writer
	wait func()
}

func (g gate) Write(b []byte) (int, error) {
	g.wait()
	return g.w.Write(b)
}

// origin is the moment at which it was first asked.
type origin struct {
	once sync.Once
	at   int64
}

func (o *origin) elapsed() time.Duration {
	o.once.Do(func() { o.at = clock.Mono() })
	return time.Duration(clock.Mono() - o.at)
}

// Raw writes text as it stands and keeps the connection if keep says so.
func Raw(text string, keep bool) Handler {
	return func(c *Conn, _ *Request) bool {
		_, err := io.WriteString(c.W, text)
		return err == nil && keep
	}
}

// Silent never answers; the connection stays open.
func Silent() Handler { return func(*Conn, *Request) bool { return true } }

// Reset closes the connection with a TCP reset.
func Reset() Handler {
	return func(c *Conn, _ *Request) bool {
		if t, ok := c.Conn.(*net.TCPConn); ok {
			t.SetLinger(0) //nolint:errcheck // best effort: a close still ends the connection
		}
		return false
	}
}
