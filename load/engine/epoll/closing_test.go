package epoll_test

import (
	"net/netip"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/engine/closingtest"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/tlsconn"
)

// The tests of closed connections that every engine must pass.
func TestClosing(t *testing.T) {
	testsets.Whole(t, "every protocol")
	t.Run("HTTP/1.1", func(t *testing.T) {
		closingtest.HTTP1(t, nil, func(a netip.AddrPort, n int) (load.Engine, error) {
			return epoll.New(a, n)
		})
	})
	t.Run("TLS", func(t *testing.T) {
		server, client := closingtest.Certificate(t, "http/1.1")
		closingtest.HTTP1(t, server, func(a netip.AddrPort, n int) (load.Engine, error) {
			e, err := epoll.New(a, n)
			return tlsconn.New(e, client, n), err
		})
	})
	t.Run("h2c", func(t *testing.T) {
		closingtest.HTTP2(t, nil, func(a netip.AddrPort, n int) (load.Engine, error) {
			e, err := epoll.New(a, http2.Below(n, 5))
			return http2.New(e, n, 5, false), err
		})
	})
	t.Run("h2", func(t *testing.T) {
		server, client := closingtest.Certificate(t, "h2")
		closingtest.HTTP2(t, server, func(a netip.AddrPort, n int) (load.Engine, error) {
			e, err := epoll.New(a, http2.Below(n, 5))
			return http2.New(tlsconn.NewStreamer(e, client, http2.Below(n, 5)), n, 5, true), err
		})
	})
}
