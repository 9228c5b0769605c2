package nethttp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"prony.example/internal/base/clock"
	"prony.example/load/engine/socket"
)

// Times of QUIC.
const (
	// quicAlive is the keep-alive interval of idle connections. It is well within the 30 s after
	// which most servers drop a connection, because TCP connections also stay open.
	quicAlive = 10 * time.Second
	// quicPatience bounds a handshake. It is far longer than any, because the load decides when to
	// give up.
	quicPatience = time.Hour
)

// quicConn is an HTTP/3 connection over its own socket, because servers spread connections over
// their threads by port.
type quicConn struct {
	*http3.ClientConn
	release func() // closes the socket and its reader
}

// connectQUIC is connect for HTTP/3.
func (s *shared) connectQUIC(ctx context.Context) (http.RoundTripper, error) {
	s.h3 = slices.DeleteFunc(s.h3, func(c *quicConn) bool { return c.Context().Err() != nil })
	if n := len(s.h3); n > 0 && s.h3[n-1].takes() {
		return s.h3[n-1], nil
	}
	c, err := s.e.dialQUIC(ctx)
	if err != nil {
		return nil, err
	}
	s.h3 = append(s.h3, c)
	return c, nil
}

// dialQUIC connects, which includes the TLS handshake in QUIC (RFC 9001). No session is resumed, so
// no request leaves before the handshake (0-RTT), and all handshakes cost the same.
func (e *Engine) dialQUIC(ctx context.Context) (*quicConn, error) {
	began := clock.Mono()
	link, err := e.reach(ctx, "udp")
	if err != nil {
		return nil, err
	}
	over := &quic.Transport{Conn: datagrams{link}}
	c := &quicConn{release: sync.OnceFunc(func() {
		over.Close()
		link.Close()
	})}
	config := e.config.tls(http3.NextProtoH3)
	unanswered := socket.Certify(config)
	conn, err := over.Dial(ctx, link.RemoteAddr(), config, &quic.Config{
		Versions: []quic.Version{quic.Version1}, HandshakeIdleTimeout: quicPatience,
		KeepAlivePeriod: quicAlive, MaxIncomingStreams: -1, // servers open no bidirectional streams
	})
	if err != nil {
		c.release()
		err = socket.Handshake(alerted(err), unanswered.Load())
		return nil, fmt.Errorf("QUIC handshake: %w", err)
	}
	e.shook(clock.Mono()-began, conn.ConnectionState().TLS)
	context.AfterFunc(conn.Context(), c.release)
	c.ClientConn = (&http3.Transport{DisableCompression: true}).NewClientConn(conn)
	return c, nil
}

// alerted returns a server's alert in QUIC (RFC 9001, section 4.8) as crypto/tls reports one.
func alerted(err error) error {
	var transport *quic.TransportError
	if errors.As(err, &transport) && transport.Remote && transport.ErrorCode.IsCryptoError() {
		return &net.OpError{Op: "remote error", Err: tls.AlertError(uint8(transport.ErrorCode))}
	}
	return err
}

// takes reports whether a request may be sent: not after a GOAWAY. It opens a stream with a
// canceled context; if cancellation is the only error, requests are accepted.
func (c *quicConn) takes() bool {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.OpenRequestStream(gone)
	return errors.Is(err, context.Canceled)
}

func (c *quicConn) close() {
	_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // peer may be gone
	c.release()
}

// datagrams presents a connected UDP socket to the library as an unconnected one. On a connected
// socket, the kernel reports if the peer has no listener, as for TCP. The wrapper also hides the
// socket's type: the library would log warnings about the size of kernel buffers to standard error,
// and its fast path gains only for large transfers on one connection, which loads do not make.
type datagrams struct{ net.Conn }

func (d datagrams) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := d.Read(b)
	return n, d.RemoteAddr(), err
}

func (d datagrams) WriteTo(b []byte, _ net.Addr) (int, error) { return d.Write(b) }

// SetReadBuffer requests buffer space for datagrams that come while this process does not run:
// datagrams without space are lost and sent again. The kernel grants up to net.core.rmem_max.
func (d datagrams) SetReadBuffer(n int) error {
	if c, ok := d.Conn.(*net.UDPConn); ok {
		_ = c.SetReadBuffer(n) // the default size will do
	}
	return nil
}

// SetWriteBuffer keeps the default, because senders wait for space.
func (datagrams) SetWriteBuffer(int) error { return nil }
