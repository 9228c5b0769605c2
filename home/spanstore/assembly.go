package spanstore

import (
	"bytes"
	"cmp"
	"container/list"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/telemetry/traces"
)

// held is a span of a trace under assembly. It is not copied: this keeps the memory of the span,
// not that of its request.
type held struct {
	span    ptrace.Span
	service string
}

// pending is a trace under assembly.
type pending struct {
	id     pcommon.TraceID
	trial  *trial
	spans  []held
	cut    int64 // spans beyond the limits
	errors int
	asked  bool
	bytes  int64
	lastNs int64         // arrival of its last span, monotonic
	at     *list.Element // in the assembly's list
}

// assembly holds all traces under assembly, in a list by their last arrival, the oldest first.
type assembly struct {
	byID   map[pcommon.TraceID]*pending
	silent list.List // of *pending
	bytes  int64
}

// first returns the trace that was silent longest; nil: there is none.
func (a *assembly) first() *pending {
	if e := a.silent.Front(); e != nil {
		return e.Value.(*pending)
	}
	return nil
}

// extraRoots is the number of spans without a parent that are accepted beyond the limit: roots
// arrive last because they end last, and a trace without its root has no name or duration.
const extraRoots = 8

// add adds a span, or counts it as cut if the trace is full.
func (a *assembly) add(p *pending, s ptrace.Span, service string) {
	s, size := trim(s)
	full := len(p.spans) >= maxSpans || p.bytes+size > traceBytes
	if full && (!s.ParentSpanID().IsEmpty() || len(p.spans) >= maxSpans+extraRoots ||
		p.bytes+size > 2*traceBytes) {
		p.cut++
		return
	}
	p.spans = append(p.spans, held{s, service})
	p.bytes += size
	a.bytes += size
}

func (a *assembly) remove(p *pending) {
	a.silent.Remove(p.at)
	delete(a.byID, p.id)
	a.bytes -= p.bytes
}

// isAsked reports whether the load sent the request: Prony adds a member to the trace state (W3C
// Trace Context, 3.3), which spans propagate.
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

// root returns the index of the root span, and the number of spans without a parent.
func root(list []held) (at, roots int) {
	return traces.Root(len(list), func(i int) (id, parent pcommon.SpanID) {
		return list[i].span.SpanID(), list[i].span.ParentSpanID()
	}, func(i, j int) bool { return before(list[i].span, list[j].span) })
}

// before orders spans by start, then the longer first, then by id.
func before(a, b ptrace.Span) bool {
	x, y := a.SpanID(), b.SpanID()
	return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()),
		cmp.Compare(duration(b), duration(a)), bytes.Compare(x[:], y[:])) < 0
}
