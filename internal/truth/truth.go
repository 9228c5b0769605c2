// Package truth holds servers whose behaviour is known exactly, so that the lab can be tested against
// arithmetic instead of against itself. Each test states what a perfect instrument would read.
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

	l     net.Listener
	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
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
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
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

// Close stops listening, closes every connection and waits for the handlers.
func (s *Server) Close() {
	s.l.Close()
	s.mu.Lock()
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
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	r.Body = make([]byte, length)
	_, err = io.ReadFull(in, r.Body)
	return r, err
}

// Answer writes a whole response with a Content-Length.
func (c *Conn) Answer(status int, body string) bool {
	_, err := fmt.Fprintf(c.W, "HTTP/1.1 %d X\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s",
		status, len(body), body)
	return err == nil
}

// Hello answers every request with status 200 and the body.
func Hello(body string) Handler {
	return func(c *Conn, _ *Request) bool { return c.Answer(200, body) }
}

// After answers like h, d after the request came, on any number of connections at once: a system with
// a service time of d and no queue. With N connections closed, throughput is N/d.
func After(d time.Duration, h Handler) Handler {
	return func(c *Conn, r *Request) bool {
		time.Sleep(d)
		return h(c, r)
	}
}

// OneAtATime lets h serve a single request at any moment: with After(d), a queue of capacity 1/d.
func OneAtATime(h Handler) Handler {
	var mu sync.Mutex
	return func(c *Conn, r *Request) bool {
		mu.Lock()
		defer mu.Unlock()
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

// Stall freezes the whole server from at to at+d after the first request.
func Stall(at, d time.Duration, h Handler) Handler {
	var once sync.Once
	var gate sync.RWMutex
	return func(c *Conn, r *Request) bool {
		once.Do(func() {
			time.AfterFunc(at, func() {
				gate.Lock()
				time.AfterFunc(d, gate.Unlock)
			})
		})
		gate.RLock()
		defer gate.RUnlock()
		return h(c, r)
	}
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
			t.SetLinger(0) //nolint:errcheck // the reset is best effort: a close still ends the connection
		}
		return false
	}
}
