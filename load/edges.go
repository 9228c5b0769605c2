package load

import (
	"time"

	"prony.example/internal/base/clock"
)

// lookAhead is how long before the window Observer.Window is called, if the lead-in is long enough.
// The observer's own work must not fall into the window that it observes.
const lookAhead = 50 * time.Millisecond

// Edges reports the two ends of a window, each once. Its timer fires when Cross must be called.
type Edges struct {
	*time.Timer
	onEdge  func(open bool)
	passed  int
	closeAt int64
}

// NewEdges returns the edges of a window behind a lead-in, by clock.Mono. It calls onEdge just
// before the window opens and just after it closes.
func NewEdges(lead time.Duration, openAt, closeAt int64, onEdge func(open bool)) *Edges {
	before := min(lead/2, lookAhead)
	return &Edges{Timer: time.NewTimer(time.Duration(openAt-clock.Mono()) - before), onEdge: onEdge,
		closeAt: closeAt}
}

// Cross passes the next edge.
func (e *Edges) Cross() {
	if e.passed++; e.passed > 2 {
		return
	}
	e.onEdge(e.passed == 1)
	if e.passed == 1 {
		e.Reset(time.Duration(e.closeAt - clock.Mono()))
	}
}

// Rest passes the edges that remain after a load that ended early.
func (e *Edges) Rest() {
	for e.passed < 2 {
		e.Cross()
	}
}
