package load

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/pace"
	"prony.example/record"
)

// live is what a worker shows while it runs and what it is told, on cache lines of its own.
type live struct {
	done     atomic.Int64
	stop     atomic.Bool
	request  atomic.Pointer[part] // an empty one: the worker is to give what it has gathered
	response atomic.Pointer[part]
	last     *part        // what was gathered when the worker ended
	ended    atomic.Int64 // intervals of the window that nothing is booked in any more
	_        [16]byte
}

// part is what one worker has seen since the last look. Two of them go to and fro, so that nothing
// is allocated and neither side waits.
type part struct {
	atNs          int64
	totals        Totals
	response, lag *hdrhistogram.Histogram
}

func newPart() *part { return &part{response: newHist(), lag: newHist()} }

// show hands over what was gathered, if somebody asks.
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

// end leaves what was gathered since the last look for after the load.
func (l *live) end(b *book, now int64, inFlight int) {
	if l.last = b.shown; l.last != nil {
		l.last.close(b, now, inFlight)
	}
}

func (p *part) close(b *book, now int64, inFlight int) {
	p.atNs, p.totals = now, b.all
	p.totals.Done, p.totals.InFlight = b.total, int64(inFlight)
}

// spectacle is the view of a load under way: it asks the workers for what they have gathered and
// adds it up.
type spectacle struct {
	r        *run
	last     []Totals // of each worker
	observed []int64  // when
	spare    []*part  // empty

	response, lag *hdrhistogram.Histogram
	due           pace.Process
	next          int64 // first arrival that is not counted as due yet
	n             int64
}

// tell hands a snapshot over. False ends the load.
func (v *spectacle) tell(s Snapshot) bool {
	enabled := true
	if v.r.spec.Live != nil {
		enabled = v.r.spec.Live(s)
	}
	if v.r.spec.Stream != nil {
		enabled = v.r.spec.Stream(v.piece(&s)) && enabled
	}
	return enabled
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

// ask is answered at the workers' next tick.
func (v *spectacle) ask() {
	for i := range v.r.lives {
		if v.spare[i] != nil {
			v.r.lives[i].request.Store(v.spare[i])
			v.spare[i] = nil
		}
	}
}

// look adds up what was given. A worker that has not answered yet counts as it stood. The
// snapshot's histograms are used again for the next.
func (v *spectacle) look() Snapshot {
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

// final is the last look, when all workers have ended.
func (v *spectacle) final() Snapshot {
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

// sum is the state at the moment up to which every worker has told.
func (v *spectacle) sum() Snapshot {
	atNs := slices.Min(v.observed)
	cfg := &v.r.cfg
	s := Snapshot{
		Elapsed: time.Duration(atNs - cfg.start), Window: atNs >= cfg.openAt && atNs < cfg.closeAt,
		Response: v.response, Lag: v.lag,
	}
	for i := range v.last {
		s.Totals.Add(&v.last[i])
	}
	s.Due = s.Sent
	if v.due != nil {
		for end := min(atNs, cfg.closeAt) - cfg.start; v.next < end; v.next = v.due.Next() {
			v.n++
		}
		s.Due = max(v.n, s.Sent)
	}
	return s
}

// Add adds what another one has counted.
func (t *Totals) Add(o *Totals) {
	from := o.counters()
	for i, n := range t.counters() {
		*n += *from[i]
	}
}
