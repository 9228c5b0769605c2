package epoll_test

import (
	"net/netip"
	"testing"

	"prony.example/load/engine"
	"prony.example/load/engine/closingtest"
	"prony.example/load/engine/epoll"
)

// Requests that wait for a stream, and requests that leave together.
func TestQueues(t *testing.T) {
	closingtest.Queues(t, func(a netip.AddrPort, n int) (engine.Streamer, error) {
		return epoll.New(a, n)
	})
}
