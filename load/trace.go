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

// Trace ties single requests to the traces that the service makes of them: a share of the requests
// carries an id (W3C Trace Context, https://www.w3.org/TR/trace-context/), and the times of some of
// these are kept beside it. The other requests carry no such field at all, so that the service's
// own sampling decides for them.
//
// Each request has a trace id of its own, also the steps of a flow: the times that are kept are of
// one request, and nobody sends a span that the steps of a flow could have as their parent.
type Trace struct {
	Share float64 // of the requests, from 0, none, to 1, all
	Keep  int     // how many of each class are kept: slowest, failed, uniform; 0: 16
	Salt  uint64  // of the ids: loads that differ in it, or in their name, share none
}

// Numbers of requests that are kept in each class.
const (
	keepUsual = 16
	keepMost  = 1024 // all of them are looked through when one enters
)

// traceFields are the names of the header fields of W3C Trace Context, as it wants them written.
var traceFields = []string{"traceparent", "tracestate"}

// traceText is what is added to the head of a request, before its ids are put in: the version, the
// trace's id, the request's, and the flag that says that the trace is wanted. The vendor's entry
// tells those who read traces whose they are.
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

// carries says why the engine cannot do what is asked.
func (t *Trace) carries(e Engine) error {
	if h, ok := e.(engine.Headless); ok && t.Share > 0 && h.Headless() {
		return errors.New("messages of its protocol have no header fields to carry a trace id " +
			"in; leave out the share of traced requests")
	}
	return nil
}

// tracer says which requests are traced, and under which ids: pure functions of seed, salt, the
// load's name and the request's number. It is read-only.
type tracer struct {
	limit        uint64 // requests whose draw of 53 bits is below are traced; 0: none
	keep         int
	pick         uint64 // seed of the draws
	hi, lo, span uint64 // seeds of the ids
}

// drawBits is the grain of shares: that of a float64 between ½ and 1.
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

// draw decides whether a request is traced. The draw itself orders those that are: the ones with
// the smallest are a uniform sample of them.
func (t *tracer) draw(k uint64, step int32) (draw uint64, traced bool) {
	draw = pace.Mix(t.pick^uint64(step)*stepSalt, k)
	return draw, draw>>(64-drawBits) < t.limit
}

// ids are those of the trace, its first half and its second, and of the request's span in it. The
// standard forbids zeros; the second half alone keeps the trace's id from being one.
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

// mark decides whether the request of connection c is traced, and returns what is then added to its
// head.
func (w *worker) mark(c *conn) []byte {
	t := &w.cfg.trace
	if c.draw, c.traced = t.draw(c.k, c.step); !c.traced {
		return nil
	}
	t.put(w.field, c.k, c.step)
	return w.field
}

// mark is what is kept of a traced request; the ids follow from its number. Moments as in conn.
type mark struct {
	k, draw                uint64
	due, sent, first, done int64
	step                   int32
	route                  int32
	failed                 bool
}

// class of traced requests that are kept.
type why uint8

const (
	slowest why = iota // of those with a response time: answered well, or given up as too late
	failed             // the first ones
	uniform            // of all
	whys
)

// whyNames are those of record.Traced.
var whyNames = [whys]string{"slowest", "failed", "uniform"}

// order compares two marks: those of a class that come first are kept. It leaves no two requests
// equal, so that what is kept does not depend on how the load was spread over threads.
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

// shelf keeps the first marks of a class, as many as there is room for.
type shelf struct {
	marks []mark
	last  int // in the class's order, once there is no more room
}

// offer looks through all marks only when one enters, which gets rare soon: of n requests in any
// order but the worst, keep·ln(n/keep) do.
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

// shelves are a thread's, by class.
type shelves [whys]shelf

func newShelves(keep int) *shelves {
	var s shelves
	for y := range s {
		s[y].marks = make([]mark, 0, keep)
	}
	return &s
}

// note takes a traced request that was due in the window and has ended now. timed says whether its
// response time counts as one.
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

// traced are the requests kept of all threads, class after class, each with its slowest first. A
// request of two classes is in both: without it, the uniform ones would be none.
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

// tell is of a mark whose moments count from the window's opening.
func (l *Ledger) tell(means *tracer, m *mark, why string) record.Traced {
	hi, lo, _ := means.ids(m.k, m.step)
	t := record.Traced{
		TraceID: fmt.Sprintf("%016x%016x", hi, lo), Class: why, ScheduledNs: m.due,
		FirstByteNs: m.first - m.sent, // some fail before it: then none
		LagNs:       m.sent - m.due, ResponseNs: m.done - m.due, Failed: m.failed,
	}
	if len(l.names) > 1 {
		t.Route = l.names[m.route]
	}
	return t
}

// wallAt is the Unix time, in ns, of a moment of clock.Mono. The wall clock is read between two
// readings of the other, as close together as can be had; their middle is off by half of what the
// three take, some 50 ns. Both clocks are slewed alike, so that the answer holds for any moment
// until somebody sets the wall clock (clock_gettime(2), adjtimex(2)).
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
