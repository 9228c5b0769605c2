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

// held is a span of a trace under assembly. It is not copied: the memory of one span stays, not
// that of the request that brought it.
type held struct {
	span    ptrace.Span
	service string
}

// pending is a trace under assembly.
type pending struct {
	id     pcommon.TraceID
	trial  *trial
	spans  []held
	cut    int64 // spans that came beyond the bounds
	errors int
	asked  bool
	bytes  int64
	lastNs int64         // when its last span came, monotonic
	at     *list.Element // in the assembly's list
}

// assembly is all traces under assembly, in a list of those that were silent longest first.
type assembly struct {
	byID   map[pcommon.TraceID]*pending
	silent list.List // of *pending
	bytes  int64
}

// first is the one that was silent longest; nil: there is none.
func (a *assembly) first() *pending {
	if e := a.silent.Front(); e != nil {
		return e.Value.(*pending)
	}
	return nil
}

// extra spans without a parent are taken beyond the bound: roots come last, for they end last, and
// a trace without its root has neither name nor duration.
const extraRoots = 8

// add takes a span in, unless the trace has as much as it may.
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

// root finds the span that stands for the whole.
func root(list []held) (at, roots int) {
	return traces.Root(len(list), func(i int) (id, parent pcommon.SpanID) {
		return list[i].span.SpanID(), list[i].span.ParentSpanID()
	}, func(i, j int) bool { return before(list[i].span, list[j].span) })
}

// before orders spans by their start; of equal ones the longer is first, then the lower id.
func before(a, b ptrace.Span) bool {
	x, y := a.SpanID(), b.SpanID()
	return cmp.Or(cmp.Compare(a.StartTimestamp(), b.StartTimestamp()),
		cmp.Compare(duration(b), duration(a)), bytes.Compare(x[:], y[:])) < 0
}
