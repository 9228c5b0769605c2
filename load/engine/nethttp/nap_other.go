//go:build !linux || portable

package nethttp

import (
	"time"

	"prony.example/internal/base/clock"
)

// Pacing describes how the load thread waits for a moment.
const Pacing = "timer of the Go runtime"

// nap is a timer, with a channel by which goroutines end the sleep.
type nap struct {
	timer *time.Timer
	bell  chan struct{}
}

func (n *nap) prepare() error {
	n.timer, n.bell = time.NewTimer(0), make(chan struct{}, 1)
	return nil
}

func (n *nap) close() { n.timer.Stop() }

// end wakes the load thread, or makes its next sleep end at once.
func (n *nap) end() {
	select {
	case n.bell <- struct{}{}:
	default: // one wake-up is enough
	}
}

// set sets the end of the next sleep.
func (n *nap) set(deadline int64) error {
	n.timer.Reset(time.Duration(deadline - clock.Mono()))
	return nil
}

// take sleeps until the deadline or a call of end.
func (n *nap) take() error {
	select {
	case <-n.timer.C:
	case <-n.bell:
	}
	return nil
}
