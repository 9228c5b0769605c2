package delayed

import (
	"prony.example/internal/base/clock"
	"prony.example/load/engine"
)

// below is the Handler of the engine below: it holds the events.
type below struct{ *Engine }

// Wait implements engine.Engine. The wait ends when something held is due.
func (e *Engine) Wait(deadline int64, h engine.Handler) error {
	if len(e.queue) > 0 {
		deadline = min(deadline, e.queue[0].atNs)
	}
	e.to = h
	if err := e.below.Wait(deadline, below{e}); err != nil {
		return err
	}
	now := clock.Mono()
	for len(e.queue) > 0 && e.queue[0].atNs <= now {
		x := e.queue.pop()
		e.passed++
		e.pass(&x, now)
		now = clock.Mono()
	}
	return nil
}

// pass passes on what is due.
func (e *Engine) pass(x *item, now int64) {
	i, s := int(x.slot), &e.slots[x.slot]
	if x.gen != s.gen {
		e.free(x.b)
		return
	}
	switch x.kind {
	case sending, pushing:
		if s.ended {
			e.free(x.b)
			return
		}
		e.leave(s, x, now)
		e.drained(i, s, now)
	case opened:
		e.to.Opened(i, now)
	case received:
		if s.crossed && x.sinceNs >= s.passedNs {
			s.crossed = false
			// The value is in range, so RecordValue cannot fail.
			_ = e.added.RecordValue(max(s.heldNs+now-x.sinceNs, 1))
		}
		e.to.Received(i, now, x.b)
		e.free(x.b)
	case closed:
		e.to.Closed(i, now, s.op, s.err)
	}
}

// drained calls Drained after an incomplete Push, once there is room again.
func (e *Engine) drained(i int, s *slot, now int64) {
	if s.full && s.bytes < pushMax {
		s.full = false
		e.to.(engine.Drained).Drained(i, now)
	}
}

// Opened implements engine.Handler.
func (e below) Opened(i int, atNs int64) {
	e.enqueue(item{kind: opened, sinceNs: atNs}, i, in, e.draw(i, out)+e.draw(i, in))
}

// Received implements engine.Handler.
func (e below) Received(i int, atNs int64, b []byte) {
	e.enqueue(item{kind: received, sinceNs: atNs, b: e.copy(b)}, i, in, e.draw(i, in))
}

// Closed implements engine.Handler.
func (e below) Closed(i int, atNs int64, op engine.Op, err error) {
	s := &e.slots[i]
	s.ended, s.op, s.err = true, op, err
	delayNs := e.draw(i, in)
	if op == engine.Connecting {
		delayNs += e.draw(i, out)
	}
	e.enqueue(item{kind: closed, sinceNs: atNs}, i, in, delayNs)
}

// Drained implements engine.Drained.
func (e below) Drained(i int, atNs int64) {
	s := &e.slots[i]
	n := e.stream.Push(i, s.refused)
	s.bytes -= n
	s.refused = append(s.refused[:0], s.refused[n:]...)
	e.drained(i, s, atNs)
}

// kind is what an item is.
type kind uint8

const (
	sending kind = iota
	pushing
	opened
	received
	closed
	dropped // passed on before it was due
)

// leaves reports whether it goes to the service.
func (k kind) leaves() bool { return k == sending || k == pushing }

// item is something that is held.
type item struct {
	atNs, sinceNs int64 // when it is due, and from when it is held
	order         uint64
	b             []byte
	slot          int32
	gen           uint32
	kind          kind
}

// heap is a binary heap of items, ordered by when they are due, then by when they came.
type heap []item

func (h heap) less(i, j int) bool {
	return h[i].atNs < h[j].atNs || h[i].atNs == h[j].atNs && h[i].order < h[j].order
}

func (h *heap) push(x item) {
	*h = append(*h, x)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		q[i], q[parent] = q[parent], q[i]
		i = parent
	}
}

func (h *heap) pop() item {
	q := *h
	x := q[0]
	n := len(q) - 1
	q[0] = q[n]
	q[n] = item{}
	q = q[:n]
	*h = q
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if q.less(child, least) {
				least = child
			}
		}
		if least == i {
			return x
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
