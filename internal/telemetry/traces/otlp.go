package traces

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// WriteOTLP writes stored traces in OTLP's JSON format (OpenTelemetry protocol, "JSON Protobuf
// Encoding"), on one line: a resource for each service of each trial, with the attribute names of
// OpenTelemetry in the spans. Cut texts stay cut. It fails on an invalid id, which no store writes.
func WriteOTLP(w io.Writer, traces []*Trace) error {
	out := otlpTraces{ResourceSpans: []*otlpResource{}}
	byName := map[[2]string]*otlpScope{}
	for _, t := range traces {
		for i := range t.Spans {
			key := [2]string{t.Trial, t.Spans[i].Service}
			scope := byName[key]
			if scope == nil {
				r := &otlpResource{ScopeSpans: make([]otlpScope, 1)}
				r.Resource.Attributes = []otlpPair{{"service.name", otlpValue(t.Spans[i].Service)},
					{TrialAttribute, otlpValue(t.Trial)}, {TargetAttribute, otlpValue(t.Target)}}
				out.ResourceSpans = append(out.ResourceSpans, r)
				scope = &r.ScopeSpans[0]
				scope.Scope.Name = "prony/spans"
				byName[key] = scope
			}
			span, err := otlpOf(t, &t.Spans[i])
			if err != nil {
				return fmt.Errorf("export trace %s: %w", t.TraceID, err)
			}
			scope.Spans = append(scope.Spans, span)
		}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

type otlpTraces struct {
	ResourceSpans []*otlpResource `json:"resourceSpans"`
}

type otlpResource struct {
	Resource struct {
		Attributes []otlpPair `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []otlpScope `json:"scopeSpans"`
}

type otlpScope struct {
	Scope struct {
		Name string `json:"name"`
	} `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpSpan struct {
	TraceID    string      `json:"traceId,omitempty"`
	SpanID     string      `json:"spanId,omitempty"`
	State      string      `json:"traceState,omitempty"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name,omitempty"`
	Kind       int         `json:"kind,omitempty"`
	Start      int64       `json:"startTimeUnixNano,string,omitempty"`
	End        int64       `json:"endTimeUnixNano,string,omitempty"`
	Attributes []otlpPair  `json:"attributes,omitempty"`
	Dropped    uint32      `json:"droppedAttributesCount,omitempty"`
	Events     []otlpEvent `json:"events,omitempty"`
	Links      []otlpLink  `json:"links,omitempty"`
	Status     struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	} `json:"status"`
}

type otlpEvent struct {
	Ns         int64      `json:"timeUnixNano,string,omitempty"`
	Name       string     `json:"name,omitempty"`
	Attributes []otlpPair `json:"attributes,omitempty"`
}

type otlpLink struct {
	TraceID    string     `json:"traceId,omitempty"`
	SpanID     string     `json:"spanId,omitempty"`
	Attributes []otlpPair `json:"attributes,omitempty"`
}

type otlpPair struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

func otlpOf(t *Trace, s *Span) (out otlpSpan, err error) {
	out = otlpSpan{
		TraceID: t.TraceID, SpanID: s.ID, Parent: s.Parent, State: s.State, Name: s.Name,
		Kind: max(0, slices.Index(kinds, s.Kind)), Start: s.StartNs, End: s.EndNs(),
		Attributes: otlpPairs(s.Attributes), Dropped: uint32(max(0, min(s.Cut, 1<<31))),
	}
	out.Status.Code, out.Status.Message = max(0, slices.Index(statuses, s.Status)), s.Message
	for _, e := range s.Events {
		out.Events = append(out.Events, otlpEvent{e.Ns, e.Name, otlpPairs(e.Attributes)})
	}
	ids := []string{t.TraceID, s.ID, s.Parent}
	for _, l := range s.Links {
		out.Links = append(out.Links, otlpLink{l.TraceID, l.SpanID, otlpPairs(l.Attributes)})
		ids = append(ids, l.TraceID, l.SpanID, "")
	}
	for i, id := range ids {
		digits := 16
		if i%3 == 0 {
			digits = 32 // of a trace
		}
		if _, err := hex.DecodeString(id); err != nil || len(id) != digits && id != "" {
			return out, fmt.Errorf("id %q must have %d hexadecimal digits", id, digits)
		}
	}
	return out, nil
}

// otlpPairs returns attributes sorted by name, so that equal traces give equal texts.
func otlpPairs(byName map[string]any) []otlpPair {
	out := make([]otlpPair, 0, len(byName)) // not nil, so that an empty list is not written as null
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, otlpPair{name, otlpValue(byName[name])})
	}
	return out
}

// otlpValue wraps a value of Attributes with its type. Integers become texts, because a reader's
// float64 would change those of 64 bits.
func otlpValue(v any) map[string]any {
	switch v := v.(type) {
	case string:
		return map[string]any{"stringValue": v}
	case bool:
		return map[string]any{"boolValue": v}
	case int64:
		return map[string]any{"intValue": strconv.FormatInt(v, 10)}
	case float64:
		return map[string]any{"doubleValue": v}
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, otlpValue(e))
		}
		return map[string]any{"arrayValue": map[string]any{"values": list}}
	case map[string]any:
		return map[string]any{"kvlistValue": map[string]any{"values": otlpPairs(v)}}
	}
	return map[string]any{} // null, which no store writes
}
