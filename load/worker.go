package load

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/rtsched"
	"prony.example/load/engine/http1"
	"prony.example/load/pace"
	"prony.example/load/template"
)

// worker is one load thread: its connections, its share of the schedule, its books. Nothing in it
// is shared while it runs, but for what is in live.
type worker struct {
	cfg    *config
	engine Engine
	plan   *plan
	conns  []conn // as many as there can be
	first  int    // of them, that the load begins with
	used   int    // of them, that were opened so far
	coming int    // of them, that are being opened because more are needed
	growAt int64  // not before this moment more are opened
	heard  int64  // when the server was last heard of
	book   *book
	live   *live
	id     int

	free   []int32 // idle connections without a turn, a ring, longest idle first
	freeAt int
	freeN  int

	oldest, newest int32 // requests under way, in the order they were sent
	inFlight       int
	late           int64 // the most that own lag can have cost those under way; see lateness
	turns          int   // flows begun and not ended

	timers timers // connections whose turn goes on later

	arrivals  pace.Process
	nextDue   int64           // the schedule's next arrival, absolute
	k         uint64          // index of the next turn, over all workers
	remaining int64           // turns that may still begin; negative: any number
	values    template.Values // of the request being made
	room      []byte          // its path, where cookies are kept
	jars      []byte          // its cookies, and what else it carries beside its own fields
	scratch   []byte          // its body
	field     []byte          // what its head has more when it is traced
	caches    []http1.Cache   // of the heads of answers, by route
	alive     int             // connections that are idle or busy
	spin      int64           // ns before an arrival from which on the loop polls
	events    int64           // answers, or pieces of them, taken so far

	shutAt  int64                   // closed: the window's end, once a request was too late for it
	wakeup  *hdrhistogram.Histogram // open: how late the thread wakes
	ahead   bool                    // it goes before the others on its core
	breath  rtsched.Breath          // that it leaves them
	slicing slicing                 // where the load is offered in slices
	stop    bool
	unwatch func() // ends the watch over its usage; nil: there is none
}

// retryAfterNs spaces attempts to reconnect, so that a dead server does not turn the thread into a
// busy loop.
const retryAfterNs = 20e6

// tickNs bounds how late timeouts, retries and a stop are noticed.
const tickNs = 10e6

func newWorker(cfg *config, p *plan, id, conns, most int) *worker {
	w := &worker{
		cfg: cfg, plan: p, id: id, conns: make([]conn, most), free: make([]int32, most),
		first: conns, slicing: slicing{edgeNs: never},
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

// equip makes the next connection ready to be opened.
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

const gentle = 8 // connections that are opened at once before the first is there

// connect opens all connections and serves the engine until each is open or has failed, or the
// bound is hit. As many more are asked for at once as there are already (RFC 5681's slow start): a
// cold service that shakes a hundred hands in turns has finished none of them for as long as all of
// them take, and a short queue of connections overflows.
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

// settled counts those of the first n connections that are open or have failed.
func (w *worker) settled(n int) int {
	settled := 0
	for i := range w.conns[:n] {
		if w.conns[i].phase != opening {
			settled++
		}
	}
	return settled
}

// loop is the hot loop: what is due goes out on what is free, then wait for whichever comes first,
// an answer or the next moment.
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
	polledAt, before := int64(0), int64(0)
	for {
		now := clock.Mono()
		if polledAt != 0 && w.events == before {
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
		before = w.events
		if err := w.engine.Wait(deadline, w); err != nil {
			return err
		}
		w.book.turn(now, w.events-before)
	}
}

// due turns an offset of the schedule into a moment.
func (w *worker) due(offset int64) int64 {
	if offset == pace.Never {
		return never
	}
	return w.cfg.start + offset
}

// over reports whether nothing is left to wait for.
func (w *worker) over(now int64) bool {
	if w.remaining == 0 && w.inFlight == 0 && w.turns == 0 {
		return true
	}
	if now < w.cfg.closeAt {
		return w.stop
	}
	if now >= w.cfg.endAt || w.stop {
		return true
	}
	unsent := w.arrivals != nil && w.nextDue < w.cfg.closeAt && w.remaining != 0
	return w.inFlight == 0 && w.turns == 0 && !unsent
}

// more sends what may be sent now. Whatever becomes free calls it, without waiting for the next
// turn of the loop.
func (w *worker) more(now int64) {
	if now < w.cfg.start || w.stop {
		return
	}
	for len(w.timers) > 0 && w.timers[0].atNs <= now {
		w.resume(w.timers.pop(), now)
	}
	if w.arrivals != nil || w.cfg.users == nil && now < w.cfg.closeAt {
		w.dispatch(now)
	}
}

// dispatch begins what is due on connections that are free. In the open model a due arrival that
// finds none stays at the head of the schedule: the schedule itself is the queue, so it can neither
// overflow nor drop anything.
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
	spareOf  = 8     // one of so many connections is to be free
	growNs   = 200e3 // between connections that are opened because more are needed
	growIdle = 100e3 // what there must be time for before the next arrival, where one is free
	growMany = 8     // opened at once where the server has been silent for
	silentNs = 1e6
)

// grow opens more connections: arrivals do not stop when the server does, and a stall is to be met
// by as many users as would meet it. To connect takes longer than to send, so that a thread with
// requests to send opens none ahead of need but in an idle moment, and one at a time without:
// connecting must not make late what it is for. While the server stands still there is all the time
// in the world.
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

// turnedAway is a connection that was not to be had beyond those that the load began with: no
// request is lost by it, and no more are asked for until a while later.
func (w *worker) turnedAway(i int, now int64) {
	w.coming--
	w.growAt = now + retryAfterNs
	c := &w.conns[i]
	c.phase, c.since = dead, w.growAt
}

// deadline is when the loop must turn again even if no answer comes. Shortly before something is
// due it has passed, so that the engine only polls and the loop looks at the clock all the time.
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

// tick does what need not be exact: timeouts, retries, the wish to stop or to see.
func (w *worker) tick(now int64) {
	w.stop = w.live.stop.Load()
	w.live.show(w.book, now, w.inFlight)
	w.live.ended.Store(int64(w.book.cur))
	for w.oldest != none {
		c := &w.conns[w.oldest]
		if now-c.sent < w.cfg.timeoutNs {
			break
		}
		w.fail(int(w.oldest), now, failTimeout, "")
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
			w.book.refused(now, "no answer within the timeout")
			c.phase, c.since = dead, now+retryAfterNs
		}
	}
}
