package spans

import (
	"encoding/hex"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// OTLP makes kept traces what they came as: a resource for each service of each trial, and in the
// spans the attribute names of OpenTelemetry. What was cut stays cut. An id that is none is an
// error: the line was not written by a store.
func OTLP(traces []*Trace) (ptrace.Traces, error) {
	out := ptrace.NewTraces()
	scopes := map[[2]string]ptrace.ScopeSpans{}
	for _, t := range traces {
		for i := range t.Spans {
			key := [2]string{t.Trial, t.Spans[i].Service}
			scope, ok := scopes[key]
			if !ok {
				r := out.ResourceSpans().AppendEmpty()
				r.Resource().Attributes().PutStr("service.name", t.Spans[i].Service)
				r.Resource().Attributes().PutStr(TrialAttribute, t.Trial)
				r.Resource().Attributes().PutStr(TargetAttribute, t.Target)
				scope = r.ScopeSpans().AppendEmpty()
				scope.Scope().SetName("prony/spans")
				scopes[key] = scope
			}
			if err := fill(scope.Spans().AppendEmpty(), t, &t.Spans[i]); err != nil {
				return out, fmt.Errorf("export trace %s: %w", t.TraceID, err)
			}
		}
	}
	return out, nil
}

func fill(out ptrace.Span, t *Trace, s *Span) error {
	var trace pcommon.TraceID
	var span, parent pcommon.SpanID
	for _, id := range []struct {
		to   []byte
		text string
	}{{trace[:], t.TraceID}, {span[:], s.ID}, {parent[:], s.Parent}} {
		if err := decodeID(id.to, id.text); err != nil {
			return err
		}
	}
	out.SetTraceID(trace)
	out.SetSpanID(span)
	out.SetParentSpanID(parent)
	out.TraceState().FromRaw(s.State)
	out.SetName(s.Name)
	out.SetKind(ptrace.SpanKind(indexOf(kinds, s.Kind)))
	out.SetStartTimestamp(pcommon.Timestamp(s.StartNs))
	out.SetEndTimestamp(pcommon.Timestamp(s.EndNs()))
	out.Status().SetCode(ptrace.StatusCode(indexOf(statuses, s.Status)))
	out.Status().SetMessage(s.Message)
	out.SetDroppedAttributesCount(uint32(max(0, min(s.Cut, 1<<31))))
	if err := out.Attributes().FromRaw(s.Attributes); err != nil {
		return err
	}
	for _, e := range s.Events {
		event := out.Events().AppendEmpty()
		event.SetName(e.Name)
		event.SetTimestamp(pcommon.Timestamp(e.Ns))
		if err := event.Attributes().FromRaw(e.Attributes); err != nil {
			return err
		}
	}
	for _, l := range s.Links {
		link := out.Links().AppendEmpty()
		if err := decodeID(trace[:], l.TraceID); err != nil {
			return err
		}
		if err := decodeID(span[:], l.SpanID); err != nil {
			return err
		}
		link.SetTraceID(trace)
		link.SetSpanID(span)
		if err := link.Attributes().FromRaw(l.Attributes); err != nil {
			return err
		}
	}
	return nil
}

func decodeID(to []byte, text string) error {
	clear(to)
	if text == "" {
		return nil
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(to) {
		return fmt.Errorf("id %q: want %d hexadecimal digits", text, 2*len(to))
	}
	copy(to, b)
	return nil
}

func indexOf(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return 0
}
