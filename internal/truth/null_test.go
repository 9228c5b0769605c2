package truth_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"prony/internal/clock"
	"prony/internal/truth"
)

const ms = time.Millisecond

// client is a connection that does nothing of its own accord.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, to netip.AddrPort) *client {
	t.Helper()
	c, err := net.Dial("tcp", to.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	// A server that does not answer must fail the test, not hang it.
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// answer reads one answer as net/http understands it.
func (c *client) answer() (status int, body string, last bool, err error) {
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, "", false, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), r.Close, err
}

// want asks once, demands status 200 and the body, and returns how long that took.
func (c *client) want(body string) time.Duration {
	c.t.Helper()
	began := clock.Mono()
	c.send(request)
	status, got, _, err := c.answer()
	if err != nil || status != 200 || got != body {
		c.t.Fatalf("answer is %d %q, %v; want 200 %q", status, got, err, body)
	}
	return time.Duration(clock.Mono() - began)
}

const nothing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// null runs a null server until the test ends, and then wants it gone without an error.
func null(t *testing.T) netip.AddrPort {
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
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Null owes one answer for each empty line, however the network cuts and glues the requests.
func TestNullAnswersEachOnce(t *testing.T) {
	addr := null(t)
	check := func(name string, n int, pieces ...string) {
		t.Helper()
		c := dial(t, addr)
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(5 * ms) // so that the pieces are read apart, most likely
			}
			c.send(p)
		}
		for i := range n {
			status, body, _, err := c.answer()
			if err != nil || status != 200 || body != "ok" {
				t.Fatalf("%s: answer %d of %d is %d %q, %v", name, i+1, n, status, body, err)
			}
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
	// A counted end must not be counted again with what follows it.
	check("cut after one and a bit", 2, request+"G", request[1:])
	check("cut after one and a line", 2, request+"GET / HTTP/1.1\r\n", "\r\n")
	check("cut in a stray line", 2, request+"\r", "\n"+request) // RFC 9112, section 2.2
	// 27 bytes each, 65,536 + 3 of them in a read: 2,500 take two reads and cut one request.
	check("more than a read", 2500, strings.Repeat(request, 2500))
}

func TestNullSurvivesClients(t *testing.T) {
	addr := null(t)
	steady := dial(t, addr)
	steady.want("ok")
	for range 20 {
		c := dial(t, addr)
		c.send(strings.Repeat(request, 3))
		if err := c.Conn.(*net.TCPConn).SetLinger(0); err != nil { // a close is a reset
			t.Fatal(err)
		}
		c.Close()
		half := dial(t, addr)
		half.send(request[:7])
		half.Close()
	}
	steady.want("ok")
	dial(t, addr).want("ok")
}
