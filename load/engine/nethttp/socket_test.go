package nethttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/load/engine"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// sockets serves each WebSocket with f.
func sockets(t *testing.T, f func(context.Context, *websocket.Conn)) nethttp.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow() //nolint:errcheck // the peer is gone
		f(r.Context(), c)
	}))
	t.Cleanup(server.Close)
	return nethttp.Config{Protocol: nethttp.WS, Network: "tcp",
		Address: server.Listener.Addr().String(), Host: "a.b", Path: "/socket"}
}

// signals records the events of an engine's only slot.
type signals struct {
	opened bool
	got    []byte
	op     engine.Op
	err    error
	closed bool
}

func (h *signals) Opened(int, int64)                 { h.opened = true }
func (h *signals) Received(_ int, _ int64, b []byte) { h.got = append(h.got, b...) }
func (h *signals) Closed(_ int, _ int64, op engine.Op, err error) {
	h.closed, h.op, h.err = true, op, err
}

// openSlot returns an engine with one open slot, and a function that waits for an event.
func openSlot(t *testing.T, c nethttp.Config) (e *nethttp.Engine, h *signals,
	wait func(func() bool)) {
	t.Helper()
	e, err := nethttp.New(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Release)
	h = &signals{}
	wait = func(done func() bool) {
		t.Helper()
		for end := clock.Mono() + int64(20*time.Second); !done(); {
			if err := e.Wait(clock.Mono()+int64(10*time.Millisecond), h); err != nil {
				t.Fatal(err)
			}
			if clock.Mono() > end {
				t.Fatalf("%+v", h)
			}
		}
	}
	e.Open(0)
	wait(func() bool { return h.opened })
	return e, h, wait
}

const message = "POST / HTTP/1.1\r\nHost: a.b\r\nContent-Length: 2\r\n\r\nhi"

// echo sends a message back.
func echo(ctx context.Context, c *websocket.Conn) bool {
	kind, b, err := c.Read(ctx)
	return err == nil && c.Write(ctx, kind, b) == nil
}

// A server can end an idle WebSocket: the next message does not leave.
func TestIdleSocketsEnd(t *testing.T) {
	for name, end := range map[string]func(c *websocket.Conn){
		"with a status": func(c *websocket.Conn) {
			_ = c.Close(websocket.StatusGoingAway, "idle") // the peer may be faster
		},
		"without a word": func(c *websocket.Conn) { _ = c.CloseNow() },
	} {
		done := make(chan bool)
		e, h, wait := openSlot(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
			if echo(ctx, c) {
				end(c)
			}
			close(done)
		}))
		e.Send(0, []byte(message))
		wait(func() bool { return strings.HasSuffix(string(h.got), "\r\n\r\nhi") })
		<-done
		e.Send(0, []byte(message))
		wait(func() bool { return h.closed })
		if _, again := h.err.(engine.Untaken); !again {
			t.Errorf("%s: ended in %v by %v", name, h.op, h.err)
		}
	}
}

// A text message is UTF-8 (RFC 6455, section 8.1), also if a character is in two pieces; a binary
// one may have any bytes.
func TestTextMessagesAreText(t *testing.T) {
	check := func(kind websocket.MessageType, text string, want bool) {
		t.Helper()
		e, h, wait := openSlot(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
			_, _, _ = c.Read(ctx)
			_ = c.Write(ctx, kind, []byte(text)) // the peer may end first
			_, _, _ = c.Read(ctx)
		}))
		e.Send(0, []byte(message))
		wait(func() bool { return h.closed || strings.HasSuffix(string(h.got), text) })
		if h.closed == want || h.closed && !strings.Contains(h.err.Error(), "not UTF-8") {
			t.Errorf("%v %.10q: closed %t by %v", kind, text, h.closed, h.err)
		}
	}
	check(websocket.MessageText, strings.Repeat("é", 1e5), true)
	check(websocket.MessageText, "x"+strings.Repeat("é", 1e5), true)
	check(websocket.MessageText, strings.Repeat("é", 1e5)+"\xff", false)
	check(websocket.MessageText, "\xff", false)
	check(websocket.MessageBinary, "\xff", true)
}

// A close frame that crosses a message ends the connection in order, if its status is no error. On
// the first message of a connection, it is the server's failure.
func TestCloseFramesCrossMessages(t *testing.T) {
	check := func(status websocket.StatusCode, want error) {
		t.Helper()
		e, h, wait := openSlot(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
			if echo(ctx, c) {
				_, _, _ = c.Read(ctx)         // the message under way
				_ = c.Close(status, "reload") // the peer may be faster
			}
		}))
		e.Send(0, []byte(message))
		wait(func() bool { return strings.HasSuffix(string(h.got), "\r\n\r\nhi") })
		e.Send(0, []byte(message))
		wait(func() bool { return h.closed })
		_, got := h.err.(engine.Ended)
		if _, ended := want.(engine.Ended); got != ended || h.err.Error() != want.Error() ||
			h.op != engine.Reading {
			t.Errorf("%d: ended in %v by %v, want %v", status, h.op, h.err, want)
		}
	}
	const ended = "the server closed the WebSocket with status "
	check(websocket.StatusNormalClosure, engine.Ended(ended+"1000 (reload)"))
	check(websocket.StatusGoingAway, engine.Ended(ended+"1001 (reload)"))
	check(websocket.StatusServiceRestart, engine.Ended(ended+"1012 (reload)"))
	check(websocket.StatusInternalError, errors.New(ended+"1011 (reload)"))
	check(websocket.StatusPolicyViolation, errors.New(ended+"1008 (reload)"))

	// Every tenth message of 80 meets the close.
	s := open(500)
	s.Connections = 1
	s.Scenario.Requests = []load.Request{{Method: "POST", Path: "/", Body: "hi", WantSize: -1}}
	r := offer(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
		for range 9 {
			if !echo(ctx, c) {
				return
			}
		}
		_, _, _ = c.Read(ctx)
		_ = c.Close(websocket.StatusGoingAway, "") // the peer may be faster
	}), s)
	if e := r.Errors; e.Total() != 8 || e.Closed != 8 || r.Answered != 72 ||
		!strings.Contains(e.Example, "status 1001; it may have processed the message") {
		t.Errorf("%d of %d answered, %+v", r.Answered, r.Scheduled, r.Errors)
	}
}

// A server gets answers to its pings also while no message is under way.
func TestIdleSocketsAnswerPings(t *testing.T) {
	done := make(chan error, 1)
	openSlot(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
		go func() { done <- c.Ping(ctx) }()
		echo(ctx, c)
	}))
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("no answer to a ping")
	}
}

// A message that the server sends without a request is no response to the next one.
func TestUnsolicitedMessages(t *testing.T) {
	done := make(chan bool)
	e, h, wait := openSlot(t, sockets(t, func(ctx context.Context, c *websocket.Conn) {
		_ = c.Write(ctx, websocket.MessageText, []byte("welcome")) // a lost one fails the test
		close(done)
		echo(ctx, c)
	}))
	<-done
	e.Send(0, []byte(message))
	wait(func() bool { return h.closed })
	if h.err != engine.Unsolicited("welcome") || h.got != nil {
		t.Errorf("%q, ended in %v by %v", h.got, h.op, h.err)
	}
}

// The opening request has the header fields of the load's first request. Its status is named, and a
// redirect is not followed.
func TestOpeningRequest(t *testing.T) {
	var seen http.Header
	var host string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, host = r.Header, r.Host
		if r.URL.Path != "/" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		http.Error(w, "not you", http.StatusForbidden)
	}))
	defer server.Close()
	try := func(path string, fields ...load.Header) string {
		s := load.Spec{Name: "test", Address: netip.MustParseAddrPort("127.0.0.1:1"),
			Model: record.Closed, Connections: 1, Window: time.Second, Timeout: 20 * time.Second,
			Scenario: load.Scenario{Requests: []load.Request{{Method: "POST", Path: path,
				Headers: fields}}}}
		err := load.Choice{Speak: &nethttp.Config{Protocol: nethttp.WS, Network: "tcp",
			Address: server.Listener.Addr().String(), Host: "a.b"}}.Set(&s)
		if err == nil {
			_, err = load.Run(t.Context(), s)
		}
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	got := try("/", load.Header{Name: "Authorization", Value: "Bearer x"},
		load.Header{Name: "host", Value: "shop.test"})
	if !strings.HasSuffix(got, "with status 403; check path and header fields") ||
		seen.Get("Authorization") != "Bearer x" || host != "shop.test" {
		t.Errorf("%s; the server saw %q for %s", got, seen, host)
	}
	if got := try("/old"); !strings.Contains(got, "with status 302; check path") {
		t.Error(got)
	}
	if got := try("/", load.Header{Name: "X", Value: "{seq}"}); !strings.Contains(got,
		"write a constant") {
		t.Error(got)
	}
}

// Why a gRPC channel cannot be opened is the error of its connection.
func TestAbsentServerOfCalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	c := nethttp.Config{Protocol: nethttp.GRPC, Network: "tcp", Address: l.Addr().String(),
		Host: "a.b"}
	err = nethttp.Transport{Config: c}.Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v", err)
	}
}

// A path is sent as it is written, also the characters that net/url would encode.
func TestPathsAsWritten(t *testing.T) {
	var got atomic.Value
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.RequestURI)
		_, _ = io.WriteString(w, "ok") // a lost answer fails the test anyway
	})
	server := httptest.NewServer(h2c.NewHandler(handler, &http2.Server{}))
	defer server.Close()
	c := nethttp.Config{Protocol: nethttp.H2C, Network: "tcp", Host: "a.b",
		Address: server.Listener.Addr().String()}
	for _, path := range []string{"/", "/a|b\"c", "/%7e/~?q=a|b", "//a", "/../b?", "/a%2Fb"} {
		s := open(500)
		s.Scenario = load.Scenario{Requests: []load.Request{{Method: "GET", Path: path,
			WantSize: -1}}}
		if r := offer(t, c, s); r.Answered != r.Scheduled || got.Load() != path {
			t.Errorf("%s became %s, %+v", path, got.Load(), r.Errors)
		}
	}
}

// A response with status 304 or 204 has no body, whatever length its head announces.
func TestAnswersWithoutABody(t *testing.T) {
	for _, status := range []int{http.StatusNotModified, http.StatusNoContent} {
		server := httptest.NewServer(h2c.NewHandler(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "500")
				w.WriteHeader(status)
			}), &http2.Server{}))
		s := open(500)
		s.Scenario = load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/",
			Status: status, WantSize: -1}}}
		r := offer(t, nethttp.Config{Protocol: nethttp.H2C, Network: "tcp", Host: "a.b",
			Address: server.Listener.Addr().String()}, s)
		if server.Close(); r.Answered != r.Scheduled || r.Errors.Total() != 0 {
			t.Errorf("%d: %+v", status, r.Errors)
		}
	}
}
