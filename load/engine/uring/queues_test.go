package uring_test

import (
	"net/netip"
	"testing"

	"prony.example/load/engine"
	"prony.example/load/engine/closingtest"
	"prony.example/load/engine/uring"
)

// Requests that wait for a stream, and requests that leave together.
func TestQueues(t *testing.T) {
	if err := uring.Probe(); err != nil {
		t.Skip(err)
	}
	closingtest.Queues(t, func(a netip.AddrPort, n int) (engine.Streamer, error) {
		return uring.New(a, n)
	})
}
