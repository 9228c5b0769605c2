package load

import (
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony/internal/clock"
	"prony/internal/pace"
)

// live is what a worker shows while it runs and what it is told, on cache lines of its own.
type live struct {
	done  atomic.Int64
	stop  atomic.Bool
	ask   atomic.Pointer[part] // an empty one: the worker is to give what it has gathered
	given atomic.Pointer[part]
	_     [32]byte
}

// part is what one worker has seen since the last look. Two of them go to and fro, so that nothing
// is allocated and neither side waits.
type part struct {
	totals        Totals
	response, lag *hdrhistogram.Histogram
}

func newPart() *part { return &part{response: newHist(), lag: newHist()} }

// show hands over what was gathered, if somebody asks.
func (l *live) show(b *book, inFlight int) {
	if b.shown == nil {
		return
	}
	empty := l.ask.Swap(nil)
	if empty == nil {
		return
	}
	full := b.shown
	b.shown = empty
	full.totals = b.all
	full.totals.Done, full.totals.InFlight = b.total, int64(inFlight)
	l.given.Store(full)
}

// spectacle is the view of a load under way: it asks the workers for what they have gathered and
// adds it up.
type spectacle struct {
	r     *run
	last  []Totals // of each worker
	spare []*part  // empty
	due   pace.Process
	next  int64 // first arrival that is not counted as due yet
	n     int64
}

func (r *run) watch() *spectacle {
	v := &spectacle{r: r, last: make([]Totals, len(r.workers)), spare: make([]*part,
		len(r.workers))}
	for i := range v.spare {
		v.spare[i] = newPart()
	}
	if r.spec.Model == Open {
		v.due = r.schedule()
		v.next = v.due.Next()
	}
	return v
}

// ask is answered at the workers' next tick.
func (v *spectacle) ask() {
	for i := range v.r.lives {
		if v.spare[i] != nil {
			v.r.lives[i].ask.Store(v.spare[i])
			v.spare[i] = nil
		}
	}
}

// look adds up what was given. A worker that has not answered yet counts as it stood.
func (v *spectacle) look() Snapshot {
	now := clock.Mono()
	s := Snapshot{
		Elapsed: time.Duration(now - v.r.cfg.start), Window: now >= v.r.cfg.openAt &&
			now < v.r.cfg.closeAt, Response: newHist(), Lag: newHist(),
	}
	for i := range v.r.lives {
		if p := v.r.lives[i].given.Swap(nil); p != nil {
			v.last[i] = p.totals
			s.Response.Merge(p.response)
			s.Lag.Merge(p.lag)
			p.response.Reset()
			p.lag.Reset()
			v.spare[i] = p
		}
		s.Totals.add(&v.last[i])
	}
	s.Due = s.Sent
	if v.due != nil {
		end := min(int64(s.Elapsed), v.r.cfg.closeAt-v.r.cfg.start)
		for ; v.next < end; v.next = v.due.Next() {
			v.n++
		}
		s.Due = max(v.n, s.Sent)
	}
	return s
}

func (t *Totals) add(o *Totals) {
	t.Sent += o.Sent
	t.Done += o.Done
	t.Failed += o.Failed
	t.BytesIn += o.BytesIn
	t.InFlight += o.InFlight
	for i := range t.Errors {
		t.Errors[i] += o.Errors[i]
	}
}
