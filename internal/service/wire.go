package service

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	headLimitBytes = 1 << 20               // of an answer: an endless one would fill the memory
	unreadLimit    = 50 * time.Millisecond // for the rest of a request that was answered unread
	interimMax     = 5                     // answers 1xx before the one that counts
	idleLimit      = time.Second           // servers wait longer for the next: gunicorn 2 s
)

// wire is one connection to a service at a time. It writes requests byte for byte as the load
// generator does: net/http's client adds headers and orders them its own way, and a service could
// know the checker by either.
type wire struct {
	dial Dial
	base string
	// kept says that the last answer was one after which the connection must be kept, last which
	// case of the report it belongs to.
	cached bool
	last   int
	since  int64 // when that one was judged

	conn     net.Conn
	in       *bufio.Reader
	got      int64         // bytes that came on the connection
	headLeft int64         // of the head under way; below zero: no head is
	written  chan struct{} // closed when the request has left, or cannot
	release  func() bool   // unties the connection from the context of the request
}

// reply is an answer whose body is still to be read.
type reply struct {
	*http.Response
	headBytes int64 // from the status line to the empty line, both included
	fresh     bool  // it came over a new connection
}

// noConnection is a failed dial, apart from what may go wrong on a connection.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// send gives the answer's head; after it the caller reads the body and calls finish, on every path.
// A request that finds its connection closed by the service without having got a byte is sent
// again, once (RFC 9112, 9.3.1).
func (w *wire) send(ctx context.Context, method string, request []byte) (reply, error) {
	for {
		fresh := w.conn == nil
		if fresh {
			if err := w.open(ctx); err != nil {
				return reply{fresh: true}, noConnection{err}
			}
		}
		conn, written := w.conn, make(chan struct{})
		w.written = written
		w.release = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		// Beside the reading: a service may answer a large body before it has read all of it. An
		// error shows in the reading, too.
		go func() {
			_, _ = conn.Write(request)
			close(written)
		}()
		_, err := w.in.Peek(1)
		if err != nil && !fresh && ctx.Err() == nil {
			w.close()
			continue
		}
		r := reply{fresh: fresh}
		if err == nil {
			r.Response, r.headBytes, err = w.readHead(method)
		}
		if err != nil {
			w.close()
		}
		return r, err
	}
}

func (w *wire) open(ctx context.Context) (err error) {
	if w.conn, err = w.dial(ctx, "tcp", w.base); err != nil {
		w.conn = nil
		return err
	}
	w.got, w.headLeft, w.in = 0, -1, bufio.NewReader(w)
	return nil
}

func (w *wire) readHead(method string) (*http.Response, int64, error) {
	w.headLeft = headLimitBytes
	defer func() { w.headLeft = -1 }()
	for range interimMax + 1 {
		began := w.got - int64(w.in.Buffered())
		response, err := http.ReadResponse(w.in, &http.Request{Method: method})
		if err != nil {
			return nil, 0, err
		}
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			return response, w.got - int64(w.in.Buffered()) - began, nil
		}
	}
	return nil, 0, fmt.Errorf("the service sent more than %d interim responses (1xx)", interimMax)
}

// Read is for the buffer: it counts what comes.
func (w *wire) Read(p []byte) (int, error) {
	if w.headLeft == 0 {
		return 0, fmt.Errorf("the response's head is longer than %d bytes", headLimitBytes)
	}
	if w.headLeft > 0 {
		p = p[:min(int64(len(p)), w.headLeft)]
	}
	n, err := w.conn.Read(p)
	w.got += int64(n)
	if w.headLeft > 0 {
		w.headLeft -= int64(n)
	}
	return n, err
}

// finish makes the connection ready for the next request, or closes it when it cannot be: unless
// whole, the body was not read to its end. The error says what came after that end.
func (w *wire) finish(r reply, complete bool) error {
	if w.conn == nil {
		return nil
	}
	beyond := w.in.Buffered()
	select {
	case <-w.written:
	case <-time.After(unreadLimit):
		complete = false
	}
	if !w.release() || !complete || r.Close || beyond > 0 {
		w.close()
	}
	if complete && beyond > 0 {
		return fmt.Errorf("at least %d bytes follow the end of the response", beyond)
	}
	return nil
}

func (w *wire) close() {
	if w.conn == nil {
		return
	}
	w.release()
	_ = w.conn.Close() // nothing is to be saved on it
	<-w.written        // which the closing ended at the latest
	w.conn = nil
}

// requestText writes a request as the load generator does: Host and, with a body, Content-Type,
// then the length. A dress replaces Host by its own headers.
func requestText(c goldenCase, base string, d *dress) []byte {
	body := c.sends()
	method, _, _ := strings.Cut(c.Request, " ")
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/1.1\r\n", c.Request)
	if d == nil {
		fmt.Fprintf(&b, "Host: %s\r\n", base)
	} else {
		for _, line := range d.headers {
			fmt.Fprintf(&b, "%s\r\n", strings.ReplaceAll(line, "{base}", base))
		}
	}
	if len(body) > 0 {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", cmp.Or(c.SendType, "text/plain"))
	}
	if len(body) > 0 || method == http.MethodPost || method == http.MethodPut {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return []byte(b.String())
}

// dress is how another client than the load generator asks: what it is called, and its headers.
type dress struct {
	name    string
	headers []string
}

// dresses are clients that people have, and one whose headers name another answer than the request
// does. None asks for another representation than the contract's: no Range, no precondition that
// holds, no Accept that shuts a media type out.
var dresses = []dress{
	{"curl", []string{"Host: {base}", "User-Agent: curl/8.14.1", "Accept: */*"}},
	{"a browser", []string{"Host: {base}", "Connection: keep-alive",
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"Accept-Language: en-US,en;q=0.5", "Accept-Encoding: gzip, deflate, br"}},
	{"a proxy that adds headers", []string{"x-forwarded-for: 203.0.113.7",
		"x-request-id: 4711", "x-key: 4711", "key: 4711", "x-answer: 4711", "cookie: key=4711",
		`if-none-match: "4711"`, "user-agent: prony", "host: {base}"}},
}
