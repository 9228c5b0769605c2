package load

import (
	"time"

	"prony.example/internal/base/clock"
)

// lookAhead is how long before the window OnWindow is called, where the lead-in is long enough:
// whatever the caller does then must not lie in the window it looks at.
const lookAhead = 50 * time.Millisecond

// Edges tells of a window's two ends as they pass, each once: its timer says when to cross one.
type Edges struct {
	*time.Timer
	onEdge  func(open bool)
	passed  int
	closeAt int64
}

// NewEdges are those of a window behind a lead-in, by clock.Mono; on is told just before it opens
// and just after it closes.
func NewEdges(lead time.Duration, openAt, closeAt int64, onEdge func(open bool)) *Edges {
	before := min(lead/2, lookAhead)
	return &Edges{Timer: time.NewTimer(time.Duration(openAt-clock.Mono()) - before), onEdge: onEdge,
		closeAt: closeAt}
}

// Cross passes the next one.
func (e *Edges) Cross() {
	if e.passed++; e.passed > 2 {
		return
	}
	if e.onEdge != nil {
		e.onEdge(e.passed == 1)
	}
	if e.passed == 1 {
		e.Reset(time.Duration(e.closeAt - clock.Mono()))
	}
}

// Rest passes what a load that ended early has left.
func (e *Edges) Rest() {
	for e.passed < 2 {
		e.Cross()
	}
}
