package load

import (
	"runtime"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony/internal/load/sample"
	"prony/internal/pace"
	"prony/internal/result"
)

// Ledger is what the books of a load hold together, before anything is computed of it: counters
// that add, histograms whose counts add, single requests with moments from the window's opening.
// Result computes once, of all.
type Ledger struct {
	spec  Spec
	names []string // of the routes

	total   *book
	sums    sums
	peaks   peaks
	slow    result.Slow
	wakeup  *hdrhistogram.Histogram // how late threads woke before the load
	tls     *hdrhistogram.Histogram // handshakes
	singles []sample.Times
	marks   [whys][]mark

	pacing, priority string
	spoken           string // TLS, as the first thread that shook hands has it
	hash             string // of the arrivals that were this part's, up to the window's end

	fromNs, wall int64 // the window's opening, clock.Mono and Unix time
}

// sums add up over generators.
type sums struct {
	cpuNs, delayNs, switches int64 // of load threads, in the window
	threads, grown           int64
	resumed                  int64 // handshakes
	unread                   int64 // datagrams that found a socket full
	memory                   int64
	due                      int64 // arrivals in the window, where there is a schedule
}

// peaks are the greatest over generators.
type peaks struct {
	busyNs   int64 // of one core: what the busiest load thread used of it
	windowNs int64 // how long the window was: as asked for, unless the load was ended within it
	lateNs   int64 // from the window's opening until the last thread saw it open
}

// ledger is the books of all threads in one.
func (r *run) ledger() *Ledger {
	s := &r.spec
	l := &Ledger{spec: r.spec, wakeup: r.wakeup(), slow: r.crowd.result(),
		priority: r.priority, fromNs: r.cfg.openAt, wall: r.wall}
	for i := range r.plan.routes {
		l.names = append(l.names, r.plan.routes[i].name)
	}
	total, sum, busiest := r.merged()
	l.total = total
	l.sums = sums{cpuNs: sum.cpuNs, delayNs: sum.delayNs, switches: sum.switches,
		threads: int64(len(r.workers)), unread: r.unread, memory: resident()}
	l.handshakes(r)
	l.peaks = peaks{busyNs: busiest.cpuNs, windowNs: r.window(), lateNs: r.opened() - r.cfg.openAt}
	if s.Describe.Spread {
		l.peaks.busyNs /= int64(runtime.NumCPU())
	}
	for _, w := range r.workers {
		l.sums.grown += int64(w.used - w.first)
		l.singles = append(l.singles, since(w.book.sample, r.cfg.openAt))
		for y := range whys {
			if w.book.traced == nil {
				break
			}
			for _, m := range w.book.traced[y].marks {
				l.marks[y] = append(l.marks[y], m.since(r.cfg.openAt))
			}
		}
	}
	if !r.cfg.plain {
		l.pacing = r.pacing()
	}
	if s.Model == result.Open {
		from, to := int64(s.Lead), int64(s.Lead)+l.peaks.windowNs
		l.sums.due = l.bound(pace.Count(s.schedule(), from, to))
		l.hash = pace.Hash(s.schedule(), to)
	}
	return l
}

// bound leaves out arrivals after those that the load was to end with.
func (l *Ledger) bound(due int64) int64 {
	if most := l.spec.Part.share(l.spec.Requests); most >= 0 {
		return min(due, most)
	}
	return due
}

// since is a sample whose moments count from the window's opening.
func since(t sample.Times, openAt int64) sample.Times {
	out := sample.Times{Due: slices.Clone(t.Due), Left: slices.Clone(t.Left), Response: t.Response}
	for k := range out.Due {
		out.Due[k] -= openAt
		out.Left[k] -= openAt
	}
	return out
}

// since is the mark with moments from the window's opening. Where there was no first byte, it is
// when the request left.
func (m mark) since(openAt int64) mark {
	if m.first == 0 {
		m.first = m.sent
	}
	m.due, m.sent, m.first, m.done = m.due-openAt, m.sent-openAt, m.first-openAt, m.done-openAt
	return m
}
