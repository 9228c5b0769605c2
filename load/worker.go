package load

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/load/engine"
	"prony.example/load/engine/http1"
	"prony.example/load/pace"
	"prony.example/load/template"
)

// worker is one load thread with its connections, its share of the schedule and its book. While it
// runs, it shares only the fields of live.
type worker struct {
	cfg    *config
	engine Engine
	queues bool           // requests can wait in the engine
	delays engine.Delayer // nil: the engine adds no delay
	plan   *plan
	conns  []conn // capacity: the most connections that it may open
	first  int    // number of connections that the load begins with
	used   int    // number of connections opened so far
	coming int    // number of connections being opened because more are needed
	growAt int64  // no more connections are opened before this moment
	heard  int64  // when the last bytes from the server arrived
	opened int64  // when a connection was open last
	idleNs int64  // shortest time after which the server closed a connection without a request
	book   *book
	live   *live
	id     int

	free   []int32 // idle connections without a turn, a ring, longest idle first
	freeAt int
	freeN  int

	oldest, newest int32 // requests under way, in the order they were sent
	inFlight       int   // requests that have left and not ended
	pending        int   // requests that wait in the engine
	late           int64 // bound on the own delay of requests under way; see lateness
	lateBefore     int64 // the same for the last response
	turns          int   // flows begun and not ended

	timers timers // of connections whose turn continues later

	arrivals  pace.Process
	nextDue   int64           // the schedule's next arrival, absolute
	k         uint64          // index of the next turn, over all workers
	remaining int64           // turns that may still begin; negative: no bound
	values    template.Values // of the request being rendered
	room      []byte          // its path, if cookies are kept
	jars      []byte          // its additional header fields: trace and cookies
	scratch   []byte          // its body
	field     []byte          // its trace header fields
	caches    []http1.Cache   // of the heads of responses, by route
	alive     int             // connections that are idle or busy
	spin      int64           // ns before an arrival from which on the loop polls
	events    int64           // responses, or pieces of them, processed so far

	shutAt  int64                   // closed: the window's end, once a request was too late for it
	wakeup  *hdrhistogram.Histogram // open: how late the thread wakes
	ahead   bool                    // it has priority over other threads on its core
	breath  rtsched.Breath          // the time that it leaves to them
	slicing slicing                 // only for loads in slices
	stop    bool
	unwatch func() // releases the resources of its usage reader; nil: none
}

// retryAfterNs is the pause between attempts to reconnect; without it, a dead server would cause a
// busy loop.
const retryAfterNs = 20e6

// tickNs bounds the delay with which the loop detects timeouts, due retries and a stop.
const tickNs = 10e6

func newWorker(cfg *config, p *plan, id, conns, most int) *worker {
	w := &worker{
		cfg: cfg, plan: p, id: id, conns: make([]conn, most), free: make([]int32, most),
		first: conns, slicing: slicing{edgeNs: never}, idleNs: never,
		oldest: none, newest: none, k: uint64(id), remaining: -1,
		scratch: make([]byte, 0, p.outMax), caches: make([]http1.Cache,
			len(p.routes)), timers: make(timers, 0, conns),
		values: template.Values{Seed: p.seed},
	}
	if cfg.trace.limit > 0 {
		w.field = []byte(traceText)
	}
	for range conns {
		w.equip()
	}
	return w
}

// equip prepares the next connection to be opened.
func (w *worker) equip() {
	p, c := w.plan, &w.conns[w.used]
	sends := p.outMax
	if w.field != nil {
		sends = max(p.outMax, p.fixedMax) + len(traceText)
	}
	c.sends = make([]byte, 0, sends)
	c.wantBuf = make([]byte, 0, p.inMax)
	if len(p.vars) > 0 {
		c.vars = make([][]byte, len(p.vars))
	}
	if len(p.users) > 0 {
		w.who(c, w.used)
	}
	w.used++
}

const gentle = 8 // connections that are opened at once at the beginning

// connect opens all connections and serves the engine until each is open or has failed, or until
// the deadline. The number of concurrent connects grows with the number of open connections, as in
// RFC 5681's slow start: a cold service that handles a hundred handshakes in turns finishes none of
// them for as long as all of them take, and a short accept queue overflows.
func (w *worker) connect(deadline int64) error {
	requested := 0
	for {
		settled, late := w.settled(requested), clock.Mono() >= deadline
		for requested < w.used && (late || requested-settled < settled+gentle) {
			w.open(requested, clock.Mono())
			requested++
		}
		if late || settled == w.used {
			return nil
		}
		if err := w.engine.Wait(clock.Mono()+tickNs, w); err != nil {
			return err
		}
	}
}

// settled counts the connections among the first n that are open or have failed.
func (w *worker) settled(n int) int {
	settled := 0
	for i := range w.conns[:n] {
		if w.conns[i].phase != opening {
			settled++
		}
	}
	return settled
}

// loop is the hot loop. It sends due requests on free connections, then waits for a response or the
// next moment, whichever comes first.
func (w *worker) loop() error {
	if w.arrivals != nil {
		w.nextDue = w.due(w.arrivals.Next())
	} else {
		w.nextDue = w.cfg.start
	}
	if w.cfg.users != nil {
		w.enlist()
	}
	nextTick := w.cfg.start
	w.opened = nextTick
	polledAt, before, passed := int64(0), int64(0), int64(0)
	for {
		now := clock.Mono()
		if polledAt != 0 && w.events == before && w.passed() == passed {
			w.book.spun(polledAt, now)
		}
		if w.ahead {
			w.breath.Take(now)
		}
		if now >= nextTick {
			w.book.stood(nextTick, now)
			w.tick(now)
			nextTick = now + tickNs
		}
		if now >= w.book.boundary {
			w.book.cross(now)
		}
		w.live.done.Store(w.book.total)
		if w.over(now) {
			for i := w.oldest; i != none; i = w.conns[i].next {
				w.unsent(int(i))
			}
			w.book.end(now, w.inFlight)
			w.live.end(w.book, now, w.inFlight)
			return nil
		}
		w.more(now)
		deadline := w.deadline(nextTick)
		polledAt = 0
		if w.spin > 0 && deadline <= now {
			polledAt = now
		}
		before, passed = w.events, w.passed()
		under := w.inFlight
		if err := w.engine.Wait(deadline, w); err != nil {
			return err
		}
		w.book.turn(now, w.events-before, int64(under))
	}
}

// passed counts what the engine held and passed on because of a network's delay, which a poll must
// not count as idle time.
func (w *worker) passed() int64 {
	if w.delays == nil {
		return 0
	}
	return w.delays.Passed()
}

// due converts an offset of the schedule to a moment.
func (w *worker) due(offset int64) int64 {
	if offset == pace.Never {
		return never
	}
	return w.cfg.start + offset
}

// over reports whether the load has ended for this worker.
func (w *worker) over(now int64) bool {
	done := w.inFlight == 0 && w.pending == 0 && w.turns == 0
	if w.remaining == 0 && done && !w.awaits(now) {
		return true
	}
	if now < w.cfg.closeAt {
		return w.stop
	}
	if now >= w.cfg.endAt || w.stop {
		return true
	}
	unsent := w.arrivals != nil && w.nextDue < w.cfg.closeAt && w.remaining != 0
	return done && !unsent && !w.awaitsEdge()
}

// awaits reports whether the turn of a user waits for its connection, for no longer than the
// timeout of a request.
func (w *worker) awaits(now int64) bool {
	return slices.ContainsFunc(w.conns[:w.used], func(c conn) bool {
		return c.task == waiting && now-c.due < w.cfg.timeoutNs
	})
}

// more sends all that may be sent now. It is called as soon as a connection becomes free, without
// waiting for the next turn of the loop.
func (w *worker) more(now int64) {
	if now < w.cfg.start || w.stop {
		return
	}
	for len(w.timers) > 0 && w.timers[0].atNs <= now {
		w.resume(w.timers.pop(), now)
	}
	if w.arrivals != nil || w.cfg.users == nil && (now < w.cfg.closeAt || w.awaitsEdge()) {
		w.dispatch(now)
	}
}

// dispatch begins due turns on free connections. In an open load, an arrival that finds no free
// connection stays at the head of the schedule: the schedule itself is the queue, so it cannot
// overflow or drop arrivals.
func (w *worker) dispatch(now int64) {
	if w.arrivals == nil {
		for w.freeN > 0 && w.remaining != 0 && w.shutAt != w.cfg.closeAt {
			w.begin(w.pop(), now, now)
		}
		return
	}
	for w.freeN > 0 && w.nextDue <= now && w.nextDue < w.cfg.closeAt && w.remaining != 0 {
		w.begin(w.pop(), w.nextDue, now)
		w.nextDue = w.due(w.arrivals.Next())
	}
	if w.freeN+w.coming <= w.used/spareOf && w.used < len(w.conns) && now >= w.growAt {
		w.grow(now)
	}
}

const (
	spareOf  = 8     // one in spareOf connections should be free
	growNs   = 200e3 // minimum time between connects because more are needed
	growIdle = 100e3 // minimum time until the next arrival, while a connection is free
	growMany = 8     // connects at once if the server has been silent for silentNs
	silentNs = 1e6
)

// grow opens more connections, because arrivals continue during a stall, and a stall must affect as
// many users as it would in production. Connecting takes longer than sending, so it must not delay
// requests: with a free connection, grow opens the next only if the next arrival is far enough
// away; without one, it opens one at a time. While the server is silent, no request is delayed, so
// it opens several.
func (w *worker) grow(now int64) {
	n := 1
	switch {
	case now >= w.cfg.closeAt:
		return
	case w.freeN > 0 && w.nextDue-now < growIdle:
		return
	case now-w.heard > silentNs:
		n = min(growMany, len(w.conns)-w.used)
	}
	w.growAt = now + growNs
	for range n {
		i := w.used
		w.equip()
		w.coming++
		w.open(i, now)
	}
}

// turnedAway handles a failed connect beyond the connections that the load began with. No request
// is lost, and the worker waits a while before it tries again.
func (w *worker) turnedAway(i int, now int64) {
	w.coming--
	w.growAt = now + retryAfterNs
	c := &w.conns[i]
	c.phase, c.since = dead, w.growAt
}

// deadline returns when the loop must turn again even without a response. With precise pacing it
// lies before the next due moment: when it has passed, the engine only polls, and the loop reads
// the clock in every turn.
func (w *worker) deadline(nextTick int64) int64 {
	d := min(nextTick, w.book.boundary, w.cfg.endAt)
	if w.arrivals != nil && w.freeN > 0 && w.nextDue < w.cfg.closeAt && w.remaining != 0 {
		d = min(d, w.nextDue-w.spin)
	}
	if len(w.timers) > 0 {
		d = min(d, w.timers[0].atNs-w.spin)
	}
	if w.arrivals != nil && w.freeN == 0 && w.coming <= w.used/spareOf && w.used < len(w.conns) {
		d = min(d, max(w.growAt, w.nextDue))
	}
	return d
}

// tick does periodic work that need not be exact: timeouts, retries, stop requests and progress
// reports.
func (w *worker) tick(now int64) {
	w.stop = w.live.stop.Load()
	w.live.show(w.book, now, w.inFlight)
	w.live.ended.Store(int64(w.book.cur))
	for w.oldest != none {
		c := &w.conns[w.oldest]
		if now-c.passed < w.cfg.timeoutNs {
			break
		}
		w.fail(int(w.oldest), now, failTimeout, reason{})
	}
	switch {
	case w.alive > 0:
		w.opened = now
	case w.remaining >= 0 && now-w.opened > w.cfg.timeoutNs:
		// A load by number has no other end, and the failed connects tell why.
		w.stop = true
		w.live.stop.Store(true)
	}
	if w.alive == w.used {
		return
	}
	for i := range w.used {
		c := &w.conns[i]
		if c.phase == dead && now >= c.since {
			if i >= w.first && !c.met {
				w.coming++
			}
			w.open(i, now)
		} else if c.phase == opening && now-c.since > w.cfg.timeoutNs {
			w.engine.Close(i)
			if i >= w.first && !c.met {
				w.turnedAway(i, now)
				continue
			}
			w.book.refused(now, because("no answer within the timeout"))
			c.phase, c.since = dead, now+retryAfterNs
		}
	}
}
