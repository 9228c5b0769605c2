package epoll_test

import (
	"crypto/tls"
	"net/netip"
	"testing"

	"prony.example/load"
	"prony.example/load/engine"
	"prony.example/load/engine/closingtest"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/tlsconn"
)

// Requests that wait for a stream, and requests that leave together.
func TestQueues(t *testing.T) {
	over := func(client *tls.Config, streams int, calls bool) enginetest.Make {
		return func(a netip.AddrPort, n int) (load.Engine, error) {
			e, err := epoll.New(a, http2.Below(n, streams))
			if err != nil {
				return nil, err
			}
			var below engine.Streamer = e
			if client != nil {
				below = tlsconn.NewStreamer(e, client, http2.Below(n, streams))
			}
			if calls {
				return http2.NewCalls(below, n, streams, client != nil, 0), nil
			}
			return http2.New(below, n, streams, client != nil), nil
		}
	}
	server, client := closingtest.Certificate(t, "h2")
	t.Run("h2c", func(t *testing.T) {
		closingtest.Permitted(t, nil, false, over(nil, 50, false))
	})
	t.Run("h2", func(t *testing.T) {
		closingtest.Permitted(t, server, false, over(client, 50, false))
	})
	t.Run("grpc", func(t *testing.T) {
		closingtest.Permitted(t, nil, true, over(nil, 50, true))
	})
	t.Run("batches", func(t *testing.T) {
		closingtest.Batched(t, server, over(client, 8, false))
	})
}
