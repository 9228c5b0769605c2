package load

import "prony.example/load/pace"

// rest pauses the turn of connection i until a moment.
func (w *worker) rest(i int, atNs int64) {
	w.conns[i].task = resting
	w.timers.push(timer{atNs, int32(i)})
}

// resume continues with connection i after its timer has fired: with the flow's next step, or with
// the user's next turn.
func (w *worker) resume(t timer, now int64) {
	c := &w.conns[t.slot]
	if c.step > 0 { // inside a flow
		c.task = waiting
		if c.phase == idle {
			w.send(t.slot, now)
		}
		return
	}
	c.task = spare
	if now >= w.cfg.closeAt || w.remaining == 0 {
		return
	}
	w.begin(t.slot, t.atNs, now)
}

// enlist starts each user when the profile's number of users reaches it.
func (w *worker) enlist() {
	for i := range w.conns {
		w.conns[i].task = spare
		w.join(i, 0)
	}
}

// number returns the number of the user of connection i, or of stream i, among the users of all
// threads. The first users have the first stream of each connection, and threads take turns by
// connections, so every thread and every connection has its share at any moment.
func (w *worker) number(i int) int {
	c := w.cfg
	link, stream := i/c.streams*c.threads+w.id, i%c.streams
	return stream*c.links + link - max(stream-c.last, 0)
}

// join starts user i at the first moment, from an offset on, at which it is active.
func (w *worker) join(i int, from int64) {
	c := &w.conns[i]
	u := w.number(i)
	atNs := w.cfg.users.Number.Next(u, from, false)
	if atNs == pace.Never {
		return
	}
	c.until = w.due(w.cfg.users.Number.Next(u, atNs, true))
	w.rest(i, w.due(atNs))
}

// think pauses user i after a turn, or stops the user if the profile's number has dropped below it.
func (w *worker) think(i int, now int64) {
	c := &w.conns[i]
	u := uint64(w.number(i))
	atNs := now + w.cfg.users.Think.draw(w.plan.seed^thinkSalt, u<<32|c.pause)
	c.pause++
	if atNs >= c.until {
		w.join(i, c.until-w.cfg.start)
		return
	}
	w.rest(i, atNs)
}

// draw returns the k-th pause in ns, a pure function of seed and k.
func (t *Think) draw(seed, k uint64) int64 {
	switch t.Kind {
	case "constant":
		return int64(t.Lo)
	case "uniform":
		return int64(t.Lo) + int64(pace.Below(seed, k, uint64(t.Hi-t.Lo)+1))
	case "exponential":
		return int64(pace.Exp(seed, k) * float64(t.Lo))
	}
	return 0
}

// timer is the moment at which a connection's turn continues.
type timer struct {
	atNs int64
	slot int32
}

// timers is a binary heap, earliest first. Each connection has at most one timer, so the heap never
// outgrows their number.
type timers []timer

func (h *timers) push(t timer) {
	q := append(*h, t)
	i := len(q) - 1
	for i > 0 && q[(i-1)/2].atNs > t.atNs {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = t
	*h = q
}

func (h *timers) pop() timer {
	q := *h
	top, t := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	if len(q) == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= len(q) {
			break
		}
		if c+1 < len(q) && q[c+1].atNs < q[c].atNs {
			c++
		}
		if q[c].atNs >= t.atNs {
			break
		}
		q[i] = q[c]
		i = c
	}
	q[i] = t
	return top
}
