package load

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/pace"
	"prony.example/record"
)

// live is what a worker publishes while it runs, and its commands, on cache lines of its own.
type live struct {
	done     atomic.Int64
	stop     atomic.Bool
	request  atomic.Pointer[part] // an empty part: the worker must fill it with its totals
	response atomic.Pointer[part]
	last     *part        // totals when the worker ended
	ended    atomic.Int64 // number of intervals of the window that are final
	_        [16]byte
}

// part is what one worker measured since the last progress report. Two parts go back and forth, so
// that nothing is allocated and neither side waits.
type part struct {
	atNs          int64
	totals        Totals
	response, lag *hdrhistogram.Histogram
}

func newPart() *part { return &part{response: newHist(), lag: newHist()} }

// show publishes the totals so far if a part was requested.
func (l *live) show(b *book, now int64, inFlight int) {
	if b.shown == nil {
		return
	}
	empty := l.request.Swap(nil)
	if empty == nil {
		return
	}
	full := b.shown
	b.shown = empty
	full.close(b, now, inFlight)
	l.response.Store(full)
}

// end keeps the totals since the last report for the end of the load.
func (l *live) end(b *book, now int64, inFlight int) {
	if l.last = b.shown; l.last != nil {
		l.last.close(b, now, inFlight)
	}
}

func (p *part) close(b *book, now int64, inFlight int) {
	p.atNs, p.totals = now, b.all
	p.totals.Done, p.totals.InFlight = b.total, int64(inFlight)
}

// spectacle computes the progress of a load: it requests parts from the workers and adds them up.
type spectacle struct {
	r        *run
	last     []Totals // of each worker
	observed []int64  // moment of each worker's last part
	spare    []*part  // empty parts

	response, lag *hdrhistogram.Histogram
	due           pace.Process
	next          int64 // first arrival not yet counted as due
	n             int64
}

func (r *run) watch() *spectacle {
	n := len(r.workers)
	v := &spectacle{
		r: r, last: make([]Totals, n), observed: make([]int64, n), spare: make([]*part, n),
		response: newHist(), lag: newHist(),
	}
	for i := range v.spare {
		v.spare[i], v.observed[i] = newPart(), r.cfg.start
	}
	if r.spec.Model == record.Open {
		v.due = r.spec.schedule()
		v.next = v.due.Next()
	}
	return v
}

// ask requests the workers' totals. They reply at their next tick.
func (v *spectacle) ask() {
	for i := range v.r.lives {
		if v.spare[i] != nil {
			v.r.lives[i].request.Store(v.spare[i])
			v.spare[i] = nil
		}
	}
}

// look adds up the replies. A worker without a new reply counts as in its last. The next call
// reuses the report's histograms.
func (v *spectacle) look() Progress {
	v.response.Reset()
	v.lag.Reset()
	for i := range v.r.lives {
		if p := v.r.lives[i].response.Swap(nil); p != nil {
			v.take(i, p)
			p.response.Reset()
			p.lag.Reset()
			v.spare[i] = p
		}
	}
	return v.sum()
}

// final returns the last report, after all workers have ended.
func (v *spectacle) final() Progress {
	v.response.Reset()
	v.lag.Reset()
	for i := range v.r.lives {
		l := &v.r.lives[i]
		for _, p := range []*part{l.response.Swap(nil), l.last} {
			if p != nil {
				v.take(i, p)
			}
		}
	}
	return v.sum()
}

func (v *spectacle) take(i int, p *part) {
	v.last[i], v.observed[i] = p.totals, p.atNs
	v.response.Merge(p.response)
	v.lag.Merge(p.lag)
}

// sum returns the state at the earliest of the workers' last replies.
func (v *spectacle) sum() Progress {
	atNs := slices.Min(v.observed)
	cfg := &v.r.cfg
	p := Progress{
		Elapsed: time.Duration(atNs - cfg.start), Window: atNs >= cfg.openAt && atNs < cfg.closeAt,
		Answers: v.response.TotalCount(), Response: v.response, Lag: v.lag,
	}
	for i := range v.last {
		p.Totals.Add(&v.last[i])
	}
	p.Due = p.Sent
	if v.due != nil {
		for end := min(atNs, cfg.closeAt) - cfg.start; v.next < end; v.next = v.due.Next() {
			v.n++
		}
		p.Due = max(v.n, p.Sent)
	}
	if v.r.spec.Detail == Pieces {
		p.Piece = v.piece(&p)
	}
	return p
}

// Add adds the counters of o.
func (t *Totals) Add(o *Totals) {
	from := o.counters()
	for i, n := range t.counters() {
		*n += *from[i]
	}
}
