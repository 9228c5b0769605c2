package load

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"prony.example/internal/base/clock"
	"prony.example/load/engine"
	"prony.example/load/pace"
	"prony.example/record"
)

// Trace links single requests to the service's traces. A share of the requests carries a trace id
// (W3C Trace Context, https://www.w3.org/TR/trace-context/), and the times of some of these
// requests are kept with it. All other requests have no trace header, so the service's own sampling
// decides about them.
//
// Each request has its own trace id, even the steps of a flow: the kept times are those of one
// request, and the load sends no span that could be the parent of a flow's steps.
type Trace struct {
	Share float64 // of the requests, from 0, none, to 1, all
	Keep  int     // how many of each class to keep: slowest, failed, uniform; 0: 16
	Salt  uint64  // of the ids: loads with a different salt or name share no id
}

// Numbers of requests that are kept in each class.
const (
	keepUsual = 16
	keepMost  = 1024 // each new entry scans all of them
)

// traceFields are the names of the header fields of W3C Trace Context.
var traceFields = []string{"traceparent", "tracestate"}

// traceText is added to the head of a request, before its ids are filled in: the version, the trace
// id, the span id, and the flag "sampled". The vendor entry marks the trace as Prony's for its
// readers.
const (
	traceText = "traceparent: 00-" + "00000000000000000000000000000000" + "-" +
		"0000000000000000" + "-01\r\ntracestate: prony=1\r\n"
	traceAt = len("traceparent: 00-")
	spanAt  = traceAt + 32 + len("-")
)

func (t *Trace) check(requests []Request) error {
	switch {
	case math.IsNaN(t.Share) || t.Share < 0 || t.Share > 1:
		return fmt.Errorf("trace share %v is not from 0, none, to 1, all", t.Share)
	case t.Keep < 0 || t.Keep > keepMost:
		return fmt.Errorf("%d traced requests of each class cannot be kept; up to %d can", t.Keep,
			keepMost)
	case t.Share == 0:
		return nil
	}
	for _, r := range requests {
		for _, h := range r.Headers {
			if slices.Contains(traceFields, strings.ToLower(h.Name)) {
				return fmt.Errorf("%s %s has a header field %s of its own, and a share of the "+
					"requests is to be traced; leave out one of them", r.Method, r.Path, h.Name)
			}
		}
	}
	return nil
}

// carries returns an error if the engine's protocol cannot carry trace ids.
func (t *Trace) carries(e Engine) error {
	if h, ok := e.(engine.Headless); ok && t.Share > 0 && h.Headless() {
		return errors.New("messages of its protocol have no header fields to carry a trace id " +
			"in; leave out the share of traced requests")
	}
	return nil
}

// tracer decides which requests are traced, and under which ids, by pure functions of seed, salt,
// the load's name and the request's number. It is read-only.
type tracer struct {
	limit        uint64 // requests whose draw of 53 bits is below are traced; 0: none
	keep         int
	pick         uint64 // seed of the draws
	hi, lo, span uint64 // seeds of the ids
}

// drawBits is the resolution of shares: that of a float64 between ½ and 1.
const drawBits = 53

func newTracer(t Trace, name string, seed uint64) tracer {
	h := fnv.New64a()
	h.Write([]byte(name))
	id := pace.Mix(pace.Mix(seed^traceSalt, t.Salt), h.Sum64())
	return tracer{
		limit: uint64(math.Ceil(t.Share * (1 << drawBits))), keep: cmp.Or(t.Keep, keepUsual),
		pick: seed ^ traceSalt,
		hi:   pace.Mix(id, 0), lo: pace.Mix(id, 1), span: pace.Mix(id, 2),
	}
}

// draw decides whether a request is traced. It also returns the draw, because the traced requests
// with the smallest draws are a uniform sample.
func (t *tracer) draw(k uint64, step int32) (draw uint64, traced bool) {
	draw = pace.Mix(t.pick^uint64(step)*stepSalt, k)
	return draw, draw>>(64-drawBits) < t.limit
}

// ids returns the two halves of the trace id and the id of the request's span. The standard forbids
// ids that are zero; a nonzero second half is enough for the trace id.
func (t *tracer) ids(k uint64, step int32) (hi, lo, span uint64) {
	s := uint64(step) * stepSalt
	return pace.Mix(t.hi^s, k), max(pace.Mix(t.lo^s, k), 1), max(pace.Mix(t.span^s, k), 1)
}

// put writes the ids into a copy of traceText.
func (t *tracer) put(field []byte, k uint64, step int32) {
	hi, lo, span := t.ids(k, step)
	var b [24]byte
	binary.BigEndian.PutUint64(b[:], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	binary.BigEndian.PutUint64(b[16:], span)
	hex.Encode(field[traceAt:], b[:16])
	hex.Encode(field[spanAt:], b[16:])
}

// mark decides whether the request of connection c is traced, and returns the header fields to add.
func (w *worker) mark(c *conn) []byte {
	t := &w.cfg.trace
	if c.draw, c.traced = t.draw(c.k, c.step); !c.traced {
		return nil
	}
	t.put(w.field, c.k, c.step)
	return w.field
}

// mark is what is kept of a traced request; its ids follow from its number. Moments are as in conn.
type mark struct {
	k, draw                uint64
	due, sent, first, done int64
	step                   int32
	route                  int32
	failed                 bool
}

// why is the class in which a traced request is kept.
type why uint8

const (
	slowest why = iota // of the requests with a response time: good responses and timeouts
	failed             // the earliest ones
	uniform            // a uniform sample of all
	whys
)

// whyNames are the values of record.Traced.Class.
var whyNames = [whys]string{"slowest", "failed", "uniform"}

// order compares two marks; a class keeps those that come first. No two requests compare equal, so
// the kept marks do not depend on how the load was spread over threads.
func (y why) order(a, b *mark) int {
	n := 0
	switch y {
	case slowest:
		n = cmp.Compare(b.done-b.due, a.done-a.due)
	case failed:
		n = cmp.Compare(a.done, b.done)
	case uniform:
		n = cmp.Compare(a.draw, b.draw)
	}
	if n == 0 {
		n = cmp.Compare(a.k, b.k)
	}
	if n == 0 {
		n = cmp.Compare(a.step, b.step)
	}
	return n
}

// shelf keeps the first marks of a class, up to its capacity.
type shelf struct {
	marks []mark
	last  int // index of the last mark in the class's order, once the shelf is full
}

// offer scans all marks only when one enters, which soon becomes rare: about keep·ln(n/keep) of n
// requests enter, if they come in random order.
func (s *shelf) offer(y why, m *mark) {
	switch {
	case len(s.marks) < cap(s.marks):
		s.marks = append(s.marks, *m)
	case y.order(m, &s.marks[s.last]) < 0:
		s.marks[s.last] = *m
	default:
		return
	}
	if len(s.marks) < cap(s.marks) {
		return
	}
	for i := range s.marks {
		if y.order(&s.marks[s.last], &s.marks[i]) < 0 {
			s.last = i
		}
	}
}

// shelves are the shelves of one thread, by class.
type shelves [whys]shelf

func newShelves(keep int) *shelves {
	var s shelves
	for y := range s {
		s[y].marks = make([]mark, 0, keep)
	}
	return &s
}

// note records a traced request that was due in the window and has ended. timed reports whether its
// response time counts.
func (s *shelves) note(c *conn, now int64, bad, timed bool) {
	m := mark{
		k: c.k, draw: c.draw, due: c.due, sent: c.sent, first: c.first, done: now, step: c.step,
		route: int32(c.route.index), failed: bad,
	}
	if timed {
		s[slowest].offer(slowest, &m)
	}
	if bad {
		s[failed].offer(failed, &m)
	}
	s[uniform].offer(uniform, &m)
}

// traced returns the kept requests of all threads, by class, each with the slowest first. A request
// in two classes is listed in both, because removing it from one would bias the uniform sample.
func (l *Ledger) traced() (out []record.Traced) {
	if l.spec.Trace.Share <= 0 {
		return nil
	}
	means := newTracer(l.spec.Trace, l.spec.Name, l.spec.Seed)
	for y := range whys {
		all := slices.Clone(l.marks[y])
		slices.SortFunc(all, func(a, b mark) int { return y.order(&a, &b) })
		all = all[:min(len(all), means.keep)]
		slices.SortFunc(all, func(a, b mark) int { return slowest.order(&a, &b) })
		for i := range all {
			out = append(out, l.tell(&means, &all[i], whyNames[y]))
		}
	}
	return out
}

// tell converts a mark whose moments count from the window's opening.
func (l *Ledger) tell(means *tracer, m *mark, why string) record.Traced {
	hi, lo, _ := means.ids(m.k, m.step)
	t := record.Traced{
		TraceID: fmt.Sprintf("%016x%016x", hi, lo), Class: why, ScheduledNs: m.due,
		FirstByteNs: m.first - m.sent, // 0: the request failed before its first byte
		LagNs:       m.sent - m.due, ResponseNs: m.done - m.due, Failed: m.failed,
	}
	if len(l.names) > 1 {
		t.Route = l.names[m.route]
	}
	return t
}

// wallAt returns the Unix time, in ns, of a moment of clock.Mono. It reads the wall clock between
// two readings of the monotonic clock and uses the closest pair; the error is at most half of what
// the three readings take, about 50 ns. Both clocks are slewed alike, so the result holds for any
// moment until the wall clock is set (clock_gettime(2), adjtimex(2)).
func wallAt(mono int64) int64 {
	const readings = 16
	offset, width := int64(0), int64(math.MaxInt64)
	for range readings {
		before := clock.Mono()
		wall := clock.Wall().UnixNano()
		after := clock.Mono()
		if after-before < width {
			offset, width = wall-before-(after-before)/2, after-before
		}
	}
	return mono + offset
}
