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
	headLimitBytes = 1 << 20               // of an answer: an endless head would fill the memory
	unreadLimit    = 50 * time.Millisecond // for the rest of a request that was answered unread
	interimMax     = 5                     // answers 1xx before the final one
	idleLimit      = time.Second           // servers wait longer for the next: gunicorn 2 s
)

// wire is a client with one connection at a time. It writes requests byte for byte as the load
// generator does: net/http's client adds and reorders headers, by which a service could detect a
// check.
type wire struct {
	dial Dial
	base string
	// cached says that the connection must have been kept after the last answer; last is the index
	// of that answer's case in the report.
	cached bool
	last   int
	since  int64 // when that answer was checked

	conn     net.Conn
	in       *bufio.Reader
	got      int64         // bytes received on the connection
	headLeft int64         // of the present head; negative: no head is being read
	written  chan struct{} // closed when the request was sent or failed
	release  func() bool   // detaches the connection from the context of the request
}

// reply is an answer whose body is still unread.
type reply struct {
	*http.Response
	headBytes int64 // from the status line to the empty line, inclusive
	fresh     bool  // received over a new connection
}

// noConnection is the error of a failed dial, as opposed to errors on a connection.
type noConnection struct{ error }

func (e noConnection) Unwrap() error { return e.error }

// send returns the answer's head; the caller then reads the body and calls finish, on every path.
// If the service closed the connection before sending a byte, the request is repeated once on a new
// one (RFC 9112, 9.3.1).
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
		// In parallel with reading: a service may answer a large body before reading all of it.
		// Errors of writing also show when reading.
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

// Read reads from the connection for the buffer, and counts the bytes.
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

// finish prepares the connection for the next request, or closes it if that is impossible, for
// example if the body is not complete. The error describes bytes after the body.
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
	_ = w.conn.Close() // no data is lost
	<-w.written        // ended by the close at the latest
	w.conn = nil
}

// requestText returns a request as the load generator writes it: Host and, with a body,
// Content-Type, then the length. A dress replaces Host by its own headers.
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

// dress describes another client than the load generator by its name and headers.
type dress struct {
	name    string
	headers []string
}

// dresses are common clients, and one whose headers suggest another answer than the request does.
// None requests another representation than the contract's: no Range, no precondition that holds,
// no Accept that excludes a media type.
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
