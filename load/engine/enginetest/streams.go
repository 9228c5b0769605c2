package enginetest

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"golang.org/x/net/http2"

	"prony.example/load/engine"
	"prony.example/load/engine/http1"
)

// RunStreams runs the suite against engines for HTTP/2, with or without TLS: bytes sent are the
// body of a request, bytes received are the body of its response, and a peer is the server side of
// a stream.
func RunStreams(t *testing.T, secure bool, make MakeSecure) {
	runStreams(t, &suite{stream: serveStream}, secure, make)
}

// RunCalls is RunStreams for engines that make gRPC calls: bytes sent are a message, and bytes
// received are the message that the peer has written when it returns.
func RunCalls(t *testing.T, secure bool, make MakeSecure) {
	runStreams(t, &suite{stream: serveCall}, secure, make)
}

func runStreams(t *testing.T, s *suite, secure bool, open MakeSecure) {
	var client *tls.Config
	if secure {
		var done func()
		s.server, client, done = trusting(tls.VersionTLS13)
		defer done()
		client.NextProtos, s.server.NextProtos = []string{"h2"}, []string{"h2"}
	}
	s.make = func(a netip.AddrPort, n int) (engine.Engine, error) {
		e, err := open(a, n, client)
		if err != nil {
			return nil, err
		}
		return bodies{e, make([]bodySlot, n)}, nil
	}
	without := []string{
		// The server accepts no connection, so it sends no settings.
		"out of descriptors",
		// These tests end connections, not streams. The engine's own tests cover streams.
		"answer and close", "half closed", "answer before the request is whole",
		"closed while it sends", "reopened from within", "events of a reused slot",
		"release with requests under way",
		"round trips do not allocate", // as its server allocates; the engine's own tests cover it
		// The engine below waits, and has its own tests.
		"past deadlines poll", "never early", "no deadline", "no wake-up is missed",
	}
	if secure {
		without = append(without, "failed connects") // there is no server for a handshake
	}
	s.run(t, without)
}

// bodies adapts an engine of HTTP text to one of plain bytes.
type bodies struct {
	engine.Engine
	slots []bodySlot
}

type bodySlot struct {
	out    []byte
	answer http1.Response
	body   []byte // of the response: the stream is free again when it is complete
}

// Send implements engine.Engine.
func (e bodies) Send(i int, b []byte) {
	s := &e.slots[i]
	s.out = fmt.Appendf(s.out[:0], "POST /peer/%d HTTP/1.1\r\nHost: peer\r\nContent-Length: %d"+
		"\r\n\r\n", i, len(b))
	s.out = append(s.out, b...)
	s.answer.Reset()
	s.body = s.body[:0]
	e.Engine.Send(i, s.out)
}

// Wait implements engine.Engine.
func (e bodies) Wait(deadline int64, h engine.Handler) error {
	return e.Engine.Wait(deadline, bodyEar{h, e.slots})
}

// bodyEar receives the events of the engine of HTTP text.
type bodyEar struct {
	engine.Handler
	slots []bodySlot
}

// Received implements engine.Handler.
func (e bodyEar) Received(i int, atNs int64, b []byte) {
	s := &e.slots[i]
	for len(b) > 0 {
		n, body, done, err := s.answer.Next(b)
		if err != nil || done && (n < len(b) || s.answer.Status != http.StatusOK) {
			e.Closed(i, atNs, engine.Reading, fmt.Errorf("%q is not an answer: %w", b, err))
			return
		}
		b, s.body = b[n:], append(s.body, body...)
		if done {
			e.Handler.Received(i, atNs, s.body)
		}
	}
}

// streamed is the server side of a stream, as a connection.
type streamed struct {
	io.Reader // the request's body
	silent
	w http.ResponseWriter
}

// silent stands for the methods of a connection that a stream lacks.
type silent struct{ net.Conn }

func (s streamed) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(s.w).Flush()
}

// Close implements net.Conn. The stream ends when its peer returns.
func (s streamed) Close() error { return nil }

// serveStreams serves each stream of a connection with f. The flow-control windows are larger than
// the kernel's buffers, so that large requests have to wait for the kernel.
func (s *suite) serveStreams(c *peer, f func(c *peer)) {
	const window = 64 << 20
	(&http2.Server{MaxConcurrentStreams: 3, MaxUploadBufferPerConnection: window,
		MaxUploadBufferPerStream: window}).ServeConn(c.Conn, &http2.ServeConnOpts{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.stream(w, r, c.tcp, f)
		}),
	})
}

// serveStream serves a stream with f.
func serveStream(w http.ResponseWriter, r *http.Request, tcp *net.TCPConn, f func(c *peer)) {
	f(&peer{Conn: streamed{Reader: r.Body, w: w}, tcp: tcp})
}

// serveCall serves a gRPC call with f.
func serveCall(w http.ResponseWriter, r *http.Request, tcp *net.TCPConn, f func(c *peer)) {
	var prefix [5]byte
	_, err := io.ReadFull(r.Body, prefix[:])
	if err != nil || prefix[0] != 0 || r.Method != http.MethodPost || r.Header.Get("Te") !=
		"trailers" || r.Header.Get("Content-Type") != "application/grpc" {
		panic(fmt.Sprint("this is not a call: ", prefix, err, r.Method, r.Header))
	}
	called := &called{body: r.Body, remaining: int(binary.BigEndian.Uint32(prefix[1:]))}
	f(&peer{Conn: called, tcp: tcp})
	w.Header().Set("Content-Type", "application/grpc+proto")
	w.Header().Set("Trailer", "Grpc-Status")
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(called.message)))
	_, _ = w.Write(append(prefix[:], called.message...)) // a lost answer fails the test anyway
	w.Header().Set("Grpc-Status", "0")
}

// called is the server side of a call, as a connection.
type called struct {
	silent
	body      io.Reader
	remaining int // bytes of the request's message still to come; its body must end with them
	message   []byte
}

func (c *called) Read(b []byte) (int, error) {
	n, err := c.body.Read(b)
	if c.remaining -= n; c.remaining < 0 || c.remaining > 0 && errors.Is(err, io.EOF) {
		panic(fmt.Sprint("the message is longer than its prefix says by ", -c.remaining))
	}
	return n, err
}

func (c *called) Write(b []byte) (int, error) {
	c.message = append(c.message, b...)
	return len(b), nil
}

// Close implements net.Conn.
func (c *called) Close() error { return nil }
