package load

import (
	"time"

	"prony.example/internal/base/clock"
)

// glancer computes brief reports from what the workers record anyway. It runs on a core of the load
// inside the window, so it only adds counters: merging the histograms of half a second takes
// milliseconds, and requests would wait.
type glancer struct {
	r      *run
	count  int   // intervals of the window that it has read
	failed int64 // in these
}

func (g *glancer) look() Progress {
	now, cfg := clock.Mono(), &g.r.cfg
	out := Progress{Elapsed: time.Duration(now - cfg.start),
		Window: now >= cfg.openAt && now < cfg.closeAt}
	ended := g.r.lives[0].ended.Load()
	for i := range g.r.lives {
		ended = min(ended, g.r.lives[i].ended.Load()) // every worker is past these intervals
	}
	for ; g.count < int(ended); g.count++ {
		for _, w := range g.r.workers {
			iv := &w.book.intervals[g.count]
			g.failed += iv.failed
			out.Answers += iv.response.TotalCount()
		}
		out.Response = g.r.workers[0].book.intervals[g.count].response
	}
	out.Done, out.Failed = g.r.count(), g.failed
	return out
}
