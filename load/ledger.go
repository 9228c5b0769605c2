package load

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/arrivalcheck"
	"prony.example/load/pace"
	"prony.example/record"
)

// Ledger is what the books of a load hold together, before anything is computed of it: counters
// that add, histograms whose counts add, single requests with moments from the window's opening. It
// is the same thing for the threads of one process and for those of many: what a generator tells
// (see wire.go) is added to it, and Result computes once, of all. So numbers of a load from many
// generators are those of one process with the same samples, to the bin.
type Ledger struct {
	spec  Spec
	names []string // of the routes

	total   *book
	sums    sums
	peaks   peaks
	wakeup  *hdrhistogram.Histogram // how late threads woke before the load
	tls     *hdrhistogram.Histogram // handshakes
	singles []arrivalcheck.Times
	marks   [whys][]mark

	pacing, priority string
	spoken           string // TLS, as the first thread that shook hands has it
	hash             string // of the arrivals that were this part's, up to the window's end

	fromNs, wall int64 // the window's opening, clock.Mono and Unix time
	reported     int   // intervals that were streamed before
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

// NewLedger is an empty one of a load that others offer: Result tells what they did. It fails where
// the load could not be offered either.
func NewLedger(s Spec) (*Ledger, error) {
	return ledgerOf(s, s.Window)
}

// ledgerOf is an empty one with the intervals of a window.
func ledgerOf(s Spec, window time.Duration) (*Ledger, error) {
	if err := s.checkLoad(); err != nil {
		return nil, err
	}
	b := newBook(int64(window), int64(step(s.Window)), nil)
	p := &plan{flow: s.Scenario.Flow, routes: make([]route, len(s.Scenario.Requests))}
	b.extend(p, 0, false)
	l := &Ledger{spec: s, total: b, wakeup: newHist(), tls: newHist()}
	for _, r := range s.Scenario.Requests {
		l.names = append(l.names, r.called())
	}
	return l, nil
}

// Opens says when the window opened: clock.Mono and Unix time, ns.
func (l *Ledger) Opens(fromNs, wall int64) { l.fromNs, l.wall = fromNs, wall }

// Describe says by what engine the load is offered.
func (l *Ledger) Describe(e EngineInfo) { l.spec.Describe = e }

// Hash is that of the arrivals that were offered, as pace.Hash has it, in the order of the
// schedule; empty of a closed load.
func (l *Ledger) Hash() string { return l.hash }

// Window is how long the window was, in ns.
func (l *Ledger) Window() int64 { return l.peaks.windowNs }

// Due is how many arrivals were in the window, by the schedules of those who offered it.
func (l *Ledger) Due() int64 { return l.sums.due }

// ledger is the books of all threads in one.
func (r *run) ledger() *Ledger {
	s := &r.spec
	l := &Ledger{spec: r.spec, wakeup: r.wakeup(),
		priority: r.priority, fromNs: r.cfg.openAt, wall: r.wall, reported: r.reported}
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
	if s.Model == record.Open {
		from, to := int64(s.Lead), int64(s.Lead)+l.peaks.windowNs
		l.sums.due = l.bound(pace.Count(s.schedule(), from, to))
		l.hash = pace.Hash(s.schedule(), to)
	}
	return l
}

// Health is what a generator is judged by alone, see verdict.Alone: its part of the load without a
// course, of which no schedule has to be drawn again.
func (l *Ledger) Health() *record.Load {
	s, b := &l.spec, l.total
	out := &record.Load{
		Name: s.Name, Model: s.Model, Threads: int(l.sums.threads), WindowNs: l.peaks.windowNs,
		Scheduled: l.sums.due, Sent: b.sentInWin, Done: b.doneInWin, Answered: b.answered,
		Waited: b.waited, Errors: b.errors(), Generator: l.cost(),
		ResponseTime: dist(b.response), OwnLag: dist(b.ownLag),
		ThroughputPerS: float64(b.doneInWin) / (float64(l.peaks.windowNs) / 1e9),
	}
	if b.flowTime != nil {
		out.Scheduled += b.dueInWin - b.flows.begun
	}
	if l.sums.threads == 1 && b.flowTime == nil {
		out.PunctualTime = dist(b.punctual)
	}
	return out
}

// Late is how long after the window's opening the last thread saw it open, ns.
func (l *Ledger) Late() int64 { return l.peaks.lateNs }

// bound leaves out arrivals after those that the load was to end with.
func (l *Ledger) bound(due int64) int64 {
	if most := l.spec.Part.share(l.spec.Requests); most >= 0 {
		return min(due, most)
	}
	return due
}

// since is a sample whose moments count from the window's opening.
func since(t arrivalcheck.Times, openAt int64) arrivalcheck.Times {
	out := arrivalcheck.Times{
		Due:      slices.Clone(t.Due),
		Left:     slices.Clone(t.Left),
		Response: t.Response,
	}
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

// counters are all that adds up but the intervals, in an order of their own.
func (l *Ledger) counters() []*int64 {
	b, s := l.total, &l.sums
	out := append(b.counters(), &s.cpuNs, &s.delayNs, &s.switches, &s.threads, &s.grown,
		&s.resumed, &s.unread, &s.memory, &s.due)
	for i := range b.routes {
		r := &b.routes[i]
		out = append(out, &r.sent, &r.answered, &r.failed)
	}
	return out
}

// greatest are those of which the greatest counts.
func (l *Ledger) greatest() []*int64 {
	b, p := l.total, &l.peaks
	return []*int64{&b.batchMax, &b.stillNs, &p.busyNs, &p.windowNs, &p.lateNs}
}

// histograms are all but those of intervals.
func (l *Ledger) histograms() []*hdrhistogram.Histogram {
	out := append(l.total.histogramsOf(), l.wakeup, l.tls)
	for i := range l.total.routes {
		out = append(out, l.total.routes[i].response, l.total.routes[i].service)
	}
	return out
}

// words are the texts; the first generator that has one is quoted.
func (l *Ledger) words() []*string {
	return []*string{&l.pacing, &l.priority, &l.spoken, &l.total.exampleOf}
}

// called is the request's name in results.
func (r *Request) called() string { return cmp.Or(r.Name, r.Method+" "+r.Path) }
