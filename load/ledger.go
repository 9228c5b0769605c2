package load

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/load/arrivalcheck"
	"prony.example/load/pace"
	"prony.example/record"
)

// Ledger holds all measurements of a load before results are computed: counters and histograms that
// add up, and single requests with moments from the window's opening. Threads of one process and
// many generators use the same form: Take and Close add what a generator sends (see wire.go), and
// Result computes once over the sum. So the results of a load from many generators equal, to the
// bin, those of one process with the same samples.
type Ledger struct {
	spec  Spec
	names []string // of the routes

	total   *book
	sums    sums
	peaks   peaks
	wakeup  *hdrhistogram.Histogram // how late threads woke before the load
	tls     *hdrhistogram.Histogram // handshakes
	delay   *hdrhistogram.Histogram // added to round trips by a simulated network
	singles []arrivalcheck.Times
	marks   [whys][]mark

	pacing, priority string
	spoken           string // TLS version and cipher, from the first thread that made a handshake
	hash             string // of this part's arrivals, up to the window's end

	fromNs, wall int64 // the window's opening, clock.Mono and Unix time
	reported     int   // intervals that were already streamed
}

// sums are counters that add up over generators.
type sums struct {
	cpuNs, delayNs, switches int64 // of load threads, in the window
	threads, grown           int64
	resumed                  int64 // handshakes
	unread                   int64 // datagrams dropped because a socket's buffer was full
	memory                   int64
	due                      int64 // arrivals in the window of an open load
}

// peaks are values of which the maximum over generators counts.
type peaks struct {
	busyNs   int64 // CPU time of the busiest load thread
	windowNs int64 // length of the window, shorter than Spec.Window if the load ended within it
	lateNs   int64 // from the window's opening until the last thread ran in it
	short    int64 // requested streams per connection that the server does not permit
}

// NewLedger returns an empty ledger for a load that other processes send. It fails if the spec is
// invalid.
func NewLedger(s Spec) (*Ledger, error) {
	return ledgerOf(s, s.grid())
}

// ledgerOf returns an empty ledger with the intervals of a grid.
func ledgerOf(s Spec, g grid) (*Ledger, error) {
	if err := s.checkLoad(); err != nil {
		return nil, err
	}
	b := newBook(g, nil)
	p := &plan{flow: s.Scenario.Flow, routes: make([]route, len(s.Scenario.Requests))}
	b.extend(p, 0, false)
	l := &Ledger{spec: s, total: b, wakeup: newHist(), tls: newHist(), delay: newHist()}
	for _, r := range s.Scenario.Requests {
		l.names = append(l.names, r.called())
	}
	return l, nil
}

// Opens sets when the window opened: clock.Mono and Unix time, ns.
func (l *Ledger) Opens(fromNs, wall int64) { l.fromNs, l.wall = fromNs, wall }

// Describe sets the engine that the load used.
func (l *Ledger) Describe(e EngineInfo) { l.spec.Describe = e }

// Hash returns the pace.Hash of the arrivals that were sent, in the order of the schedule. It is
// empty for a closed load.
func (l *Ledger) Hash() string { return l.hash }

// Window returns the length of the window in ns.
func (l *Ledger) Window() int64 { return l.peaks.windowNs }

// ledger merges the books of all threads.
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
	l.peaks = peaks{busyNs: busiest.cpuNs, windowNs: r.window(), lateNs: r.opened() - r.cfg.openAt}
	l.handshakes(r)
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
		l.sums.due = l.due(from, to)
		l.hash = pace.Hash(s.schedule(), to)
	}
	return l
}

// Health returns the fields by which a generator is judged separately, see verdict.Alone. It has no
// series, so it need not draw the schedule again.
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

// Late returns how long after the window's opening the last thread first ran in it, ns.
func (l *Ledger) Late() int64 { return l.peaks.lateNs }

// due returns how many arrivals of this part were to be sent in the window, from which a load by
// number sends the first ones. Parameters are in ns from the load's begin.
func (l *Ledger) due(from, to int64) int64 {
	due := pace.Count(l.spec.schedule(), from, to)
	if most := l.spec.Part.share(l.spec.Requests); most >= 0 {
		return min(due, most)
	}
	return due
}

// since returns the sample with moments from the window's opening.
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

// since returns the mark with moments from the window's opening. Without a first byte, it uses the
// send moment instead.
func (m mark) since(openAt int64) mark {
	if m.first == 0 {
		m.first = m.sent
	}
	m.due, m.sent, m.first, m.done = m.due-openAt, m.sent-openAt, m.first-openAt, m.done-openAt
	return m
}

// counters returns all counters that add up, except those of intervals, in a fixed order.
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

// greatest returns the values of which the maximum counts.
func (l *Ledger) greatest() []*int64 {
	b, p := l.total, &l.peaks
	return []*int64{&b.batchMax, &b.stillNs, &p.busyNs, &p.windowNs, &p.lateNs, &p.short}
}

// histograms returns all histograms except those of intervals, in a fixed order.
func (l *Ledger) histograms() []*hdrhistogram.Histogram {
	out := append(l.total.histogramsOf(), l.wakeup, l.tls, l.delay)
	for i := range l.total.routes {
		out = append(out, l.total.routes[i].response, l.total.routes[i].service)
	}
	return out
}

// words returns the texts; merging keeps the first nonempty one of each.
func (l *Ledger) words() []*string {
	return []*string{&l.pacing, &l.priority, &l.spoken, &l.total.exampleOf, &l.total.party}
}

// called returns the request's name in results.
func (r *Request) called() string { return cmp.Or(r.Name, r.Method+" "+r.Path) }

// RouteNames returns the names of the routes in the result; one request alone has no route.
func (s *Scenario) RouteNames() (names []string) {
	for i := range s.Requests {
		if len(s.Requests) > 1 {
			names = append(names, s.Requests[i].called())
		}
	}
	return names
}
