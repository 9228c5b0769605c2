package nethttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// shared is the connection that several slots share, or that of a slot alone.
type shared struct {
	e     *Engine
	alone bool // of one slot: it ends with the slot
	mu    sync.Mutex
	// Requests use the last connection of each list. The server has sent GOAWAY on earlier ones,
	// which still have responses to come.
	h2      []h2Conn
	h3      []*quicConn
	grpc    *grpc.ClientConn
	dialErr error // why the last connection of grpc could not be opened
}

// h2Conn is an HTTP/2 connection.
type h2Conn struct {
	*http2.ClientConn
	raw net.Conn
}

// connect returns the open connection, or makes a new one while concurrent callers wait.
func (s *shared) connect(ctx context.Context) (http.RoundTripper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.e.config.Protocol == H3 {
		return s.connectQUIC(ctx)
	}
	s.h2 = slices.DeleteFunc(s.h2, func(c h2Conn) bool { return c.State().Closed })
	if n := len(s.h2); n > 0 && s.h2[n-1].CanTakeNewRequest() {
		return s.h2[n-1], nil
	}
	raw, err := s.e.dial(ctx, "h2")
	if err != nil {
		return nil, err
	}
	if c, ok := raw.(*tls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "h2" {
		raw.Close()
		return nil, errors.New("the server does not speak HTTP/2 (ALPN); use another protocol, " +
			"for example without --http2")
	}
	t := &http2.Transport{AllowHTTP: true, DisableCompression: true}
	c, err := t.NewClientConn(raw)
	if err != nil {
		raw.Close()
		return nil, err
	}
	s.h2 = append(s.h2, h2Conn{c, raw})
	return c, nil
}

// leave ends the connection of a slot alone.
func (s *shared) leave() {
	if s.alone {
		s.close()
	}
}

func (s *shared) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.h2 {
		c.raw.Close()
	}
	for _, c := range s.h3 {
		c.close()
	}
	if s.grpc != nil {
		s.grpc.Close()
	}
}

// part is a slot's use of a connection of HTTP/2 or HTTP/3, one stream at a time.
type part struct {
	e          *Engine
	sharedConn *shared
	conn       http.RoundTripper
}

func (c *part) open(ctx context.Context) (err error) {
	c.conn, err = c.sharedConn.connect(ctx)
	return err
}

func (c *part) exchange(ctx context.Context, b []byte, s *sink) (engine.Op, error) {
	a, err := understand(b)
	if err != nil {
		return engine.Writing, err
	}
	scheme := "http"
	if c.e.config.secure() {
		scheme = "https"
	}
	s.unsent.Store(int64(len(a.body)))
	req, err := http.NewRequestWithContext(ctx, a.method, scheme+"://"+a.host+a.path,
		&counted{bytes.NewReader(a.body), s.unsent})
	if err != nil {
		return engine.Writing, err
	}
	if path, _, _ := strings.Cut(a.path, "?"); !strings.HasPrefix(path, "//") {
		req.URL.Opaque = path // as written; net/url would encode some characters
	}
	if _, set := a.header["User-Agent"]; !set {
		a.header["User-Agent"] = nil // otherwise the library names itself
	}
	req.Header, req.ContentLength = a.header, int64(len(a.body))
	if len(a.body) == 0 {
		req.Body = nil // HTTP/3 sends the end of a body, even an empty one, in its own packet
	}
	res, err := c.conn.RoundTrip(req)
	if err != nil {
		return engine.Reading, untaken(err)
	}
	first := clock.Mono()
	bodiless := a.method == http.MethodHead || res.StatusCode == http.StatusNoContent ||
		res.StatusCode == http.StatusNotModified
	if bodiless { // the library misses the body of a length that the head may announce
		res.Body.Close()
		res.Body = http.NoBody
	}
	body, let, err := c.e.hold(res.Body)
	defer let()
	res.Body.Close()
	if err != nil {
		return engine.Reading, fmt.Errorf("read the body: %w", err)
	}
	length := body.length
	if bodiless {
		length = max(int(res.ContentLength), 0)
	}
	s.answer(first, answerText(res.StatusCode, res.Header, length))
	body.answer(s)
	return 0, nil
}

func (c *part) close() { c.sharedConn.leave() }

// counted is a request body that counts the bytes that the library has not taken yet.
type counted struct {
	body   *bytes.Reader
	unsent *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.body.Read(b[:min(len(b), writeAtOnce)]) // the library sends a piece before the next
	c.unsent.Add(int64(-n))
	return n, err
}

// gone are the errors of golang.org/x/net/http2 for requests that a server with GOAWAY has not
// processed, and that http2.Transport would repeat itself. The package does not export them.
var gone = []string{"http2: Transport received Server's graceful shutdown GOAWAY",
	"http2: client conn not usable"}

// untaken returns the error of an exchange, as an engine.Untaken if the server reports that it has
// not processed the request (RFC 9113, section 8.7; RFC 9114, section 4.1.1).
func untaken(err error) error {
	var h2 http2.StreamError
	var h3 *http3.Error
	if errors.As(err, &h2) && h2.Code == http2.ErrCodeRefusedStream ||
		errors.As(err, &h3) && h3.ErrorCode == http3.ErrCodeRequestRejected ||
		slices.Contains(gone, err.Error()) {
		return engine.Untaken(err.Error())
	}
	return alerted(err) // in TLS 1.3, a server checks a client's certificate after the handshake
}
