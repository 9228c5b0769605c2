package nethttp

import (
	"context"
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
	"prony.example/load/engine/tlsconn"
)

// Times of QUIC.
const (
	// quicAlive is how often a connection that nobody sends on says that it lives, well within the
	// half minute after which most servers forget it: one of TCP stays, too.
	quicAlive = 10 * time.Second
	// quicPatience is for a handshake, far longer than any: the load says when to give up.
	quicPatience = time.Hour
)

// quicConn is a connection of HTTP/3, over a socket of its own: ports are what spreads connections
// over the threads of a server.
type quicConn struct {
	*http3.ClientConn
	release func() // the socket, and whoever reads it
}

// connectQUIC is connect of HTTP/3.
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

// dialQUIC connects and shakes hands, which is one in QUIC (RFC 9001). No session is resumed, so
// that no request can leave before the handshake (0-RTT), and all of them cost the same.
func (e *Engine) dialQUIC(ctx context.Context) (*quicConn, error) {
	began := clock.Mono()
	socket, err := e.reach(ctx, "udp")
	if err != nil {
		return nil, err
	}
	over := &quic.Transport{Conn: datagrams{socket}}
	c := &quicConn{release: sync.OnceFunc(func() {
		over.Close()
		socket.Close()
	})}
	conn, err := over.Dial(ctx, socket.RemoteAddr(), e.config.tls(http3.NextProtoH3), &quic.Config{
		Versions: []quic.Version{quic.Version1}, HandshakeIdleTimeout: quicPatience,
		KeepAlivePeriod: quicAlive, MaxIncomingStreams: -1, // servers open none of two ways
	})
	if err != nil {
		c.release()
		return nil, fmt.Errorf("QUIC handshake: %w", tlsconn.Explain(err))
	}
	e.shook(clock.Mono()-began, conn.ConnectionState().TLS)
	context.AfterFunc(conn.Context(), c.release)
	c.ClientConn = (&http3.Transport{DisableCompression: true}).NewClientConn(conn)
	return c, nil
}

// takes reports whether a request may be sent: not after the server has said that it goes away. A
// stream is asked for by somebody who is gone; that it is the only objection is the answer.
func (c *quicConn) takes() bool {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := c.OpenRequestStream(gone)
	return errors.Is(err, context.Canceled)
}

func (c *quicConn) close() {
	_ = c.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") // a peer may be gone
	c.release()
}

// datagrams is a connected socket of UDP as the library takes one that is not. Connected, it is
// told by the kernel that nobody listens, as one of TCP is. What is below is hidden from the
// library: it would complain on standard error about the size of the kernel's buffers, and gains
// where much is sent on one connection, which loads do not.
type datagrams struct{ net.Conn }

func (d datagrams) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := d.Read(b)
	return n, d.RemoteAddr(), err
}

func (d datagrams) WriteTo(b []byte, _ net.Addr) (int, error) { return d.Write(b) }

// SetReadBuffer asks for room for what comes while this process is elsewhere: what finds none is
// lost, and sent again. The kernel gives as much as it is set to (net.core.rmem_max).
func (d datagrams) SetReadBuffer(n int) error {
	if c, ok := d.Conn.(*net.UDPConn); ok {
		_ = c.SetReadBuffer(n) // as it is, it will do
	}
	return nil
}

// SetWriteBuffer leaves it as it is: who sends waits for room.
func (datagrams) SetWriteBuffer(int) error { return nil }
