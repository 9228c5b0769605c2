package distributed

import (
	"context"
	"sync"
	"time"

	"prony.example/internal/base/clock"
)

// Parameters for detecting that the lab itself stalled: stopped, frozen with its machine, or
// without a core.
const (
	beatEvery = 100 * time.Millisecond
	// stillLeast is longer than pauses of a busy machine, and far shorter than the time limits of
	// generators.
	stillLeast = time.Second
)

// pulse detects stalls of the lab. A nil pulse has none.
type pulse struct {
	report func(from, ns int64) // called after each gap

	mu    sync.Mutex
	last  int64 // clock.Mono of the last beat
	total int64 // ns of all gaps
	ended int64 // the last gap's end
}

// beat checks for gaps until the context ends.
func (p *pulse) beat(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.now()
		}
	}
}

// now records a gap since the previous call.
func (p *pulse) now() {
	p.mu.Lock()
	atNs := clock.Mono()
	from, gap := p.last, atNs-p.last
	if p.last = atNs; gap >= int64(stillLeast) {
		p.total, p.ended = p.total+gap, atNs
	}
	p.mu.Unlock()
	if gap >= int64(stillLeast) && p.report != nil {
		p.report(from, gap)
	}
}

// stood reports whether the lab stalled since a time of clock.Mono. It checks for itself, because
// the caller may run before the next beat.
func (p *pulse) stood(since int64) bool {
	if p == nil {
		return false
	}
	p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total > 0 && p.ended > since
}

// stillNs returns the duration of all stalls.
func (p *pulse) stillNs() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
