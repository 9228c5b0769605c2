//go:build !linux || portable

package nethttp

import (
	"time"

	"prony.example/internal/base/clock"
)

// Pacing is how the load thread waits for a moment.
const Pacing = "timer of the Go runtime"

// nap is a timer, and a bell by which goroutines end the sleep.
type nap struct {
	timer *time.Timer
	bell  chan struct{}
}

func (n *nap) prepare() error {
	n.timer, n.bell = time.NewTimer(0), make(chan struct{}, 1)
	return nil
}

func (n *nap) close() { n.timer.Stop() }

// end wakes the load thread, or has its next sleep end at once.
func (n *nap) end() {
	select {
	case n.bell <- struct{}{}:
	default: // one is enough
	}
}

// set says until when the next sleep lasts at most.
func (n *nap) set(deadline int64) error {
	n.timer.Reset(time.Duration(deadline - clock.Mono()))
	return nil
}

// take sleeps.
func (n *nap) take() error {
	select {
	case <-n.timer.C:
	case <-n.bell:
	}
	return nil
}
