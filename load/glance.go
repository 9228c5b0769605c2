package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
)

// Glance is a load's progress, from what the workers record anyway. It is computed on a core of the
// load inside the window, so it only adds counters: merging the histograms of half a second takes
// milliseconds, and requests would wait.
type Glance struct {
	Elapsed time.Duration // since the beginning of the lead-in
	Window  bool          // whether the window is open
	Done    int64         // good responses since the beginning

	// Responses and failures of the window's intervals that ended since the last glance and are
	// final.
	Answered, Failed int64
	// Response is a sample of these intervals, ns: those of the first thread in the last one. Nil:
	// none ended.
	Response *hdrhistogram.Histogram
}

// glancer remembers how many intervals it has read.
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
		ended = min(ended, g.r.lives[i].ended.Load()) // every worker is past these intervals
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
