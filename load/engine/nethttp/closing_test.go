package nethttp_test

import (
	"crypto/tls"
	"net/netip"
	"testing"

	"prony.example/internal/dev/testsets"
	"prony.example/load"
	"prony.example/load/engine/closingtest"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/nethttp"
)

// The tests of closed connections that every engine must pass.
func TestClosing(t *testing.T) {
	testsets.Whole(t, "every protocol")
	check := func(protocol, spoken string, streams int,
		run func(*testing.T, *tls.Config, enginetest.Make)) {
		t.Run(protocol, func(t *testing.T) {
			var server *tls.Config
			if nethttp.Secure(protocol) {
				server, _ = closingtest.Certificate(t, spoken)
			}
			run(t, server, func(a netip.AddrPort, n int) (load.Engine, error) {
				return nethttp.New(nethttp.Config{Protocol: protocol, Network: "tcp",
					Address: a.String(), Host: "example.com", Streams: streams,
					Insecure: true}, n)
			})
		})
	}
	check(nethttp.H1, "http/1.1", 0, closingtest.HTTP1)
	check(nethttp.H1TLS, "http/1.1", 0, closingtest.HTTP1)
	check(nethttp.H2C, "h2", 5, closingtest.HTTP2)
	check(nethttp.H2, "h2", 5, closingtest.HTTP2)
}
