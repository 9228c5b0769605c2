package truth_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"prony.example/internal/generator/truth"
)

const nothing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// null runs a null server until the test ends, and checks that it ends without an error.
func null(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- truth.Null(ctx, l.(*net.TCPListener), []byte(nothing)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.Close()
	})
	return &server{t: t, addr: l.Addr().String()}
}

// TestNullAnswersEachOnce checks one response for each empty line, however the network splits and
// joins the requests.
func TestNullAnswersEachOnce(t *testing.T) {
	s := null(t)
	check := func(name string, n int, pieces ...string) {
		t.Helper()
		c := s.dial()
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(5 * ms) // so that the pieces are probably read separately
			}
			c.send(p)
		}
		for range n {
			c.want("ok")
		}
		if err := c.SetReadDeadline(time.Now().Add(10 * ms)); err != nil {
			t.Fatal(err)
		}
		if b, err := c.in.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: after %d answers came %q, %v", name, n, b, err)
		}
	}
	check("one", 1, request)
	check("pipelined", 10, strings.Repeat(request, 10))
	check("cut in the head", 1, request[:9], request[9:])
	end := len(request)
	check("cut after CR", 1, request[:end-3], request[end-3:])
	check("cut between the lines", 1, request[:end-2], request[end-2:])
	check("cut before the last LF", 1, request[:end-1], request[end-1:])
	check("byte by byte at the end", 1, request[:end-4], "\r", "\n", "\r", "\n")
	// A counted end must not be counted again with the data after it.
	check("cut after one and a bit", 2, request+"G", request[1:])
	check("cut after one and a line", 2, request+"GET / HTTP/1.1\r\n", "\r\n")
	check("cut in a stray line", 2, request+"\r", "\n"+request) // RFC 9112, section 2.2
	// 27 bytes each, 65,536 + 3 of them in a read: 2,500 take two reads and cut one request.
	check("more than a read", 2500, strings.Repeat(request, 2500))
}

func TestNullSurvivesClients(t *testing.T) {
	s := null(t)
	steady := s.dial()
	ask := func(c *client) {
		t.Helper()
		c.send(request)
		c.want("ok")
	}
	ask(steady)
	for range 20 {
		c := s.dial()
		c.send(strings.Repeat(request, 3))
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil { // closing sends a reset
			t.Fatal(err)
		}
		c.Close()
		half := s.dial()
		half.send(request[:7])
		half.Close()
	}
	ask(steady)
	ask(s.dial())
}
