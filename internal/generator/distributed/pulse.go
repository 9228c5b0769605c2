package distributed

import (
	"context"
	"sync"
	"time"

	"prony.example/internal/base/clock"
)

// How a lab finds that it was itself that stood still: stopped, frozen with its machine, or without
// a processor.
const (
	beatEvery = 100 * time.Millisecond
	// A gap of so much is no busy machine's any more, and far below any patience with a generator.
	stillLeast = time.Second
)

// pulse is what a lab knows of its own standing still. A nil one has never stood.
type pulse struct {
	report func(from, ns int64) // of each gap, when it is over

	mu    sync.Mutex
	last  int64 // clock.Mono of the last beat
	total int64 // ns of all gaps
	ended int64 // the last gap's end
}

// beat beats until the context ends.
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

// now is a beat: it notes a gap since the one before.
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

// stood says whether the lab stood still at any time since a moment of clock.Mono. Who asks may be
// awake before the next beat is.
func (p *pulse) stood(since int64) bool {
	if p == nil {
		return false
	}
	p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total > 0 && p.ended > since
}

// stillNs is how long it stood still in all.
func (p *pulse) stillNs() int64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}
