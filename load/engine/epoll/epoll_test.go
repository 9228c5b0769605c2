package epoll

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/internal/dev/testsets"
	"prony.example/load/engine"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/tlsconn"
)

// The conformance suite.
func TestEngine(t *testing.T) {
	enginetest.Run(t, func(a netip.AddrPort, n int) (engine.Engine, error) { return New(a, n) })
}

// The same over TLS.
func TestSecure(t *testing.T) {
	testsets.Whole(t, "every protocol")
	for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			if version < tls.VersionTLS13 {
				testsets.Whole(t, "the engine with crypto/tls sealing")
			}
			enginetest.RunSecure(t, version, func(a netip.AddrPort, n int, c *tls.Config) (
				engine.Engine, error) {
				e, err := New(a, n)
				if err != nil {
					return nil, err
				}
				return tlsconn.New(e, c, n), nil
			})
		})
	}
}

// The same with HTTP/2 streams, with and without TLS, and with gRPC calls.
func TestStreams(t *testing.T) {
	const streams = 5
	for _, row := range []struct {
		name          string
		secure, calls bool
	}{{"h2c", false, false}, {"h2", true, false}, {"grpc", false, true}, {"grpcs", true, true}} {
		t.Run(row.name, func(t *testing.T) {
			if row.secure || row.calls {
				testsets.Whole(t, "streams over TLS and calls by epoll")
			}
			run, over := enginetest.RunStreams, http2.New
			if row.calls {
				run, over = enginetest.RunCalls, calls
			}
			run(t, row.secure, func(a netip.AddrPort, n int, c *tls.Config) (engine.Engine, error) {
				e, err := New(a, http2.Below(n, streams))
				if err != nil || !row.secure {
					return over(e, n, streams, false), err
				}
				return over(
					tlsconn.NewStreamer(e, c, http2.Below(n, streams)),
					n,
					streams,
					true,
				), nil
			})
		})
	}
}

func calls(below engine.Streamer, slots, streams int, secure bool) *http2.Engine {
	return http2.NewCalls(below, slots, streams, secure, time.Minute)
}

// deaf ignores all events, because none occur.
type deaf struct{}

func (deaf) Opened(int, int64)                   {}
func (deaf) Received(int, int64, []byte)         {}
func (deaf) Closed(int, int64, engine.Op, error) {}

// A timer that fires early, as if the two clocks drifted apart, costs turns of the loop, but no
// wake-up gets lost, and neither does it if the timer fires late.
func TestWrongOffsets(t *testing.T) {
	e, err := New(netip.MustParseAddrPort("127.0.0.1:1"), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	for _, off := range []int64{-1e6, 1e6} {
		e.toMono += off
		fired := false
		for deadline := clock.Mono() + 3e6; clock.Mono() < deadline; {
			if err := e.Wait(deadline, deaf{}); err != nil {
				t.Fatal(err)
			}
			fired = fired || e.armed == 0 // the engine resets armed when the timer fires
		}
		if !fired && off < 0 {
			t.Errorf("offset by %d, the timer never fired", off)
		}
		e.toMono -= off
	}
}
