package spanstore

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// held is a span of a trace under assembly. It is not copied: the memory of one span stays, not
// that of the request that brought it.
type held struct {
	span    ptrace.Span
	service string
}

// pending is a trace under assembly, in a list of those that were silent longest first.
type pending struct {
	id         pcommon.TraceID
	trial      *trial
	spans      []held
	cut        int64 // spans that came beyond the bounds
	errors     int
	asked      bool
	bytes      int64
	lastNs     int64 // when its last span came, monotonic
	prev, next *pending
}

// assembly is all traces under assembly.
type assembly struct {
	byID        map[pcommon.TraceID]*pending
	first, last *pending
	bytes       int64
}

func (a *assembly) push(p *pending) {
	p.prev, p.next = a.last, nil
	if a.last != nil {
		a.last.next = p
	} else {
		a.first = p
	}
	a.last = p
}

func (a *assembly) unlink(p *pending) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		a.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		a.last = p.prev
	}
	p.prev, p.next = nil, nil
}

// extra spans without a parent are taken beyond the bound: roots come last, for they end last, and
// a trace without its root has neither name nor duration.
const extraRoots = 8

// add takes a span in, unless the trace has as much as it may; it says whether it did.
func (a *assembly) add(p *pending, s ptrace.Span, service string, o Options) bool {
	s, size := trim(s)
	full := len(p.spans) >= o.TraceSpans || p.bytes+size > o.TraceBytes
	if full && (!s.ParentSpanID().IsEmpty() || len(p.spans) >= o.TraceSpans+extraRoots ||
		p.bytes+size > 2*o.TraceBytes) {
		p.cut++
		return false
	}
	p.spans = append(p.spans, held{s, service})
	p.bytes += size
	a.bytes += size
	return true
}

func (a *assembly) remove(p *pending) {
	a.unlink(p)
	delete(a.byID, p.id)
	a.bytes -= p.bytes
}

// isAsked says whether the lab sent the request: it puts a member of its own into the trace state
// (W3C Trace Context, 3.3), and spans carry that on.
func isAsked(state string) bool {
	if !strings.Contains(state, stateKey) {
		return false
	}
	for member := range strings.SplitSeq(state, ",") {
		if strings.HasPrefix(strings.TrimSpace(member), stateKey) {
			return true
		}
	}
	return false
}

const stateKey = "prony="

// root finds the span that stands for the whole: of those whose parent is not here the one that
// began first. A trace whose spans are all each other's parents (nobody honest sends that) has the
// earliest. It also says how many have no parent here.
func root(list []held) (at, roots int) {
	here := members(list)
	at = -1
	for i, h := range list {
		parent := h.span.ParentSpanID()
		if !parent.IsEmpty() && parent != h.span.SpanID() && here(parent) {
			continue
		}
		roots++
		if at < 0 || before(h.span, list[at].span) {
			at = i
		}
	}
	if at >= 0 {
		return at, roots
	}
	at = 0
	for i, h := range list {
		if before(h.span, list[at].span) {
			at = i
		}
	}
	return at, 0
}

// members tells which spans are in the list. Most traces are so short that looking through them is
// faster than making a map.
func members(list []held) func(pcommon.SpanID) bool {
	const short = 16
	if len(list) <= short {
		return func(id pcommon.SpanID) bool {
			return slices.ContainsFunc(list, func(h held) bool { return h.span.SpanID() == id })
		}
	}
	here := make(map[pcommon.SpanID]bool, len(list))
	for _, h := range list {
		here[h.span.SpanID()] = true
	}
	return func(id pcommon.SpanID) bool { return here[id] }
}

// before orders spans by their start; of equal ones the longer is first, then the lower id.
func before(a, b ptrace.Span) bool {
	if a.StartTimestamp() != b.StartTimestamp() {
		return a.StartTimestamp() < b.StartTimestamp()
	}
	if d, e := duration(a), duration(b); d != e {
		return d > e
	}
	x, y := a.SpanID(), b.SpanID()
	return string(x[:]) < string(y[:])
}
