package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
)

// Glance is where a load is, of what the workers record anyway. It is taken on a core of the load,
// in the window: only counters are added up, since to merge the histograms of half a second takes
// milliseconds, for which requests would wait.
type Glance struct {
	Elapsed time.Duration // since the beginning of the lead-in
	Window  bool          // whether the window is open
	Done    int64         // good answers since the beginning

	// Of the window's intervals that have ended since the glance before, and nothing is booked in
	// any more.
	Answered, Failed int64
	// Response is a sample of them, ns: what the first thread saw in the last one. Nil: none ended.
	Response *hdrhistogram.Histogram
}

// glancer remembers up to where it has looked.
type glancer struct {
	r     *run
	count int
}

func (g *glancer) look() Glance {
	now, cfg := clock.Mono(), &g.r.cfg
	out := Glance{Elapsed: time.Duration(now - cfg.start), Done: g.r.count(),
		Window: now >= cfg.openAt && now < cfg.closeAt}
	ended := g.r.lives[0].ended.Load()
	for i := range g.r.lives {
		ended = min(ended, g.r.lives[i].ended.Load()) // that every worker has left
	}
	for ; g.count < int(ended); g.count++ {
		for _, w := range g.r.workers {
			iv := &w.book.intervals[g.count]
			out.Failed += iv.failed
			out.Answered += iv.response.TotalCount()
		}
		out.Response = g.r.workers[0].book.intervals[g.count].response
	}
	return out
}
