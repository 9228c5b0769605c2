//go:build linux && !portable

package delayed

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/load/engine"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/tlsconn"
	"prony.example/load/network"
)

var jittered = network.Delay{RoundTrip: 400 * time.Microsecond, Jitter: 200 * time.Microsecond}

// over returns the delayed engine over epoll.
func over(a netip.AddrPort, n int) (engine.Streamer, error) {
	e, err := epoll.New(a, n)
	if err != nil {
		return nil, err
	}
	d := New(e, n, jittered)
	d.Seed(7)
	return d, nil
}

// The conformance suite.
func TestEngine(t *testing.T) {
	enginetest.RunDelayed(t, func(a netip.AddrPort, n int) (engine.Engine, error) {
		return over(a, n)
	})
}

// The same over TLS, whose handshakes are delayed too.
func TestSecure(t *testing.T) {
	testsets.Whole(t, "every protocol")
	enginetest.RunSecureDelayed(t, tls.VersionTLS13, func(a netip.AddrPort, n int, c *tls.Config) (
		engine.Engine, error) {
		e, err := over(a, n)
		if err != nil {
			return nil, err
		}
		return tlsconn.New(e, c, n), nil
	})
}

// The same with HTTP/2 streams, which use Push.
func TestStreams(t *testing.T) {
	const streams = 5
	enginetest.RunStreams(t, false, func(a netip.AddrPort, n int, _ *tls.Config) (engine.Engine,
		error) {
		e, err := over(a, http2.Below(n, streams))
		if err != nil {
			return nil, err
		}
		return http2.New(e, n, streams, false), nil
	})
}
