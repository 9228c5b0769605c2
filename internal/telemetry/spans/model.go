package spans

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Bounds of what is kept of one span. What is cut is told beside it.
const (
	MaxAttributes = 128      // of a span, an event or a link: the SDKs' own default
	MaxValueBytes = 16 << 10 // of a value's text: a stack trace of Java fits
	MaxNameBytes  = 1 << 10
	maxEvents     = 128
	maxLinks      = 128
	maxElements   = 128 // of a list or a map in a value
	maxDepth      = 4   // of lists and maps in each other
)

// Trace is a kept trace, one line of spans.ndjson. Times are Unix time in ns.
type Trace struct {
	Trial      string   `json:"trial"`
	Target     string   `json:"target"`
	Window     string   `json:"window,omitempty"` // that its root began in; empty: between them
	Classes    []string `json:"classes"`          // why it was kept, the weightiest first
	TraceID    string   `json:"traceId"`          // 32 hexadecimal digits
	Service    string   `json:"service"`          // of its root
	Name       string   `json:"name"`             // of its root
	StartNs    int64    `json:"startNs"`
	DurationNs int64    `json:"durationNs"` // of its root
	Errors     int      `json:"errors"`     // spans whose status is an error
	// Cut is how many spans came and are not here, because there were too many of them.
	Cut int64 `json:"cut,omitempty"`
	// Roots is how many spans have no parent here; more than one: some spans never came.
	Roots int    `json:"roots"`
	Spans []Span `json:"spans"`
}

// Span is one span of a trace. Kind and Status are lower-case words of OTLP: "server", "error".
type Span struct {
	ID         string     `json:"id"`               // 16 hexadecimal digits
	Parent     string     `json:"parent,omitempty"` // likewise
	Service    string     `json:"service"`
	Name       string     `json:"name"`
	Kind       string     `json:"kind"`
	StartNs    int64      `json:"startNs"`
	DurationNs int64      `json:"durationNs"`
	Status     string     `json:"status,omitempty"` // empty: unset
	Message    string     `json:"message,omitempty"`
	State      string     `json:"tracestate,omitempty"`
	Attributes Attributes `json:"attributes,omitempty"`
	Cut        int64      `json:"cut,omitempty"` // attributes, events and links that are not here
	Events     []Event    `json:"events,omitempty"`
	Links      []Link     `json:"links,omitempty"`
}

// EndNs is when the span ended.
func (s *Span) EndNs() int64 { return s.StartNs + s.DurationNs }

// Event is something that happened in a span, such as an exception.
type Event struct {
	Ns         int64      `json:"ns"` // Unix time
	Name       string     `json:"name"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Link names a span of another trace.
type Link struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	Attributes Attributes `json:"attributes,omitempty"`
}

// Attributes are values by name: string, bool, int64, float64, []any or map[string]any.
type Attributes map[string]any

// UnmarshalJSON keeps whole numbers whole: ids of 64 bits would not survive a float64.
func (a *Attributes) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var raw map[string]any
	if err := d.Decode(&raw); err != nil {
		return err
	}
	for k, v := range raw {
		raw[k] = number(v)
	}
	*a = raw
	return nil
}

func number(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return string(v) // beyond any float64; its text says more than an infinity
		}
		return f
	case []any:
		for i := range v {
			v[i] = number(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = number(v[k])
		}
	}
	return v
}

// AttributesOf copies at most MaxAttributes, and says how many it left out.
func AttributesOf(m pcommon.Map) (out Attributes, cut int64) {
	if m.Len() == 0 {
		return nil, 0
	}
	out = make(Attributes, min(m.Len(), MaxAttributes))
	for k, v := range m.All() {
		if len(out) >= MaxAttributes {
			return out, int64(m.Len() - len(out))
		}
		out[CutText(k, MaxNameBytes)] = ValueOf(v)
	}
	return out, 0
}

// ValueOf copies a value, cut to MaxValueBytes. What JSON has no number for becomes its name.
func ValueOf(v pcommon.Value) any { return valueOf(v, maxDepth) }

func valueOf(v pcommon.Value, depth int) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return CutText(v.Str(), MaxValueBytes)
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return v.Int()
	case pcommon.ValueTypeDouble:
		if f := v.Double(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	case pcommon.ValueTypeBytes:
		b := v.Bytes().AsRaw()
		return CutText(hex.EncodeToString(b[:min(len(b), MaxValueBytes)]), MaxValueBytes)
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		if depth == 0 {
			return "…"
		}
		return nested(v, depth-1)
	}
	return ""
}

func nested(v pcommon.Value, depth int) any {
	if v.Type() == pcommon.ValueTypeSlice {
		list := []any{}
		for _, e := range v.Slice().All() {
			if len(list) == maxElements {
				return append(list, "…")
			}
			list = append(list, valueOf(e, depth))
		}
		return list
	}
	out := map[string]any{}
	for k, e := range v.Map().All() {
		if len(out) == maxElements {
			out["…"] = true
			break
		}
		out[CutText(k, MaxNameBytes)] = valueOf(e, depth)
	}
	return out
}

// CutText cuts a text to at most n bytes, between characters, and marks that it did. The mark is
// shorter than markBytes, and what is no longer than that beyond n stays whole, so that cutting
// again changes nothing.
func CutText(s string, n int) string {
	const markBytes = 64
	if len(s) <= n+markBytes {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (cut from %d bytes)", s[:n], len(s))
}

// kinds and statuses, by their numbers in OTLP.
var (
	kinds    = []string{"unspecified", "internal", "server", "client", "producer", "consumer"}
	statuses = []string{"", "ok", "error"}
)

func word(words []string, i int32) string {
	if i < 0 || int(i) >= len(words) {
		return words[0]
	}
	return words[i]
}

// spanOf copies a span. An end before the start is a duration of nothing: a clock was set back.
func spanOf(s ptrace.Span, service string) Span {
	out := Span{
		ID: s.SpanID().String(), Parent: s.ParentSpanID().String(), Service: service,
		Name: CutText(s.Name(), MaxNameBytes), Kind: word(kinds, int32(s.Kind())),
		StartNs: nanos(s.StartTimestamp()), DurationNs: duration(s),
		Status:  word(statuses, int32(s.Status().Code())),
		Message: CutText(s.Status().Message(), MaxValueBytes),
		State:   CutText(s.TraceState().AsRaw(), MaxNameBytes),
	}
	out.Attributes, out.Cut = AttributesOf(s.Attributes())
	out.Cut += int64(s.DroppedAttributesCount()) + int64(s.DroppedEventsCount()) +
		int64(s.DroppedLinksCount())
	for i, e := range s.Events().All() {
		if i == maxEvents {
			out.Cut += int64(s.Events().Len() - i)
			break
		}
		attributes, cut := AttributesOf(e.Attributes())
		out.Cut += cut + int64(e.DroppedAttributesCount())
		out.Events = append(out.Events, Event{nanos(e.Timestamp()),
			CutText(e.Name(), MaxNameBytes), attributes})
	}
	for i, l := range s.Links().All() {
		if i == maxLinks {
			out.Cut += int64(s.Links().Len() - i)
			break
		}
		attributes, cut := AttributesOf(l.Attributes())
		out.Cut += cut + int64(l.DroppedAttributesCount())
		out.Links = append(out.Links, Link{l.TraceID().String(), l.SpanID().String(), attributes})
	}
	return out
}

func duration(s ptrace.Span) int64 {
	return max(0, nanos(s.EndTimestamp())-nanos(s.StartTimestamp()))
}

// nanos is a Unix time; those after the year 2262 are cut to its last moment in int64.
func nanos(t pcommon.Timestamp) int64 { return int64(min(uint64(t), math.MaxInt64)) }

// sizeOf is about what a span takes in memory, in bytes.
func sizeOf(s ptrace.Span) int64 {
	const fixed, pair = 400, 64
	n := int64(fixed + len(s.Name()) + len(s.TraceState().AsRaw()) + len(s.Status().Message()))
	n += sizeOfMap(s.Attributes(), pair, maxSized)
	for _, e := range s.Events().All() {
		n += pair + int64(len(e.Name())) + sizeOfMap(e.Attributes(), pair, maxSized)
	}
	for _, l := range s.Links().All() {
		n += pair + sizeOfMap(l.Attributes(), pair, maxSized)
	}
	return n
}

func sizeOfMap(m pcommon.Map, pair int64, depth int) int64 {
	n := int64(m.Len()) * pair
	for k, v := range m.All() {
		n += int64(len(k)) + sizeOfValue(v, depth)
	}
	return n
}

// SizeOf is about what a value holds beside its own place, in bytes.
func SizeOf(v pcommon.Value) int64 { return sizeOfValue(v, maxSized) }

// maxSized is how deep lists and maps in each other are looked into for their size.
const maxSized = 64

func sizeOfValue(v pcommon.Value, depth int) (n int64) {
	const place = 48
	if depth == 0 {
		return place
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return int64(len(v.Str()))
	case pcommon.ValueTypeBytes:
		return int64(v.Bytes().Len())
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			n += place + sizeOfValue(e, depth-1)
		}
	case pcommon.ValueTypeMap:
		n = sizeOfMap(v.Map(), place, depth-1)
	}
	return n
}

// SizeOfKept is about what a value of Attributes takes in memory, in bytes.
func SizeOfKept(v any) (n int64) {
	const place = 64
	switch v := v.(type) {
	case string:
		return place + int64(len(v))
	case []any:
		for _, e := range v {
			n += SizeOfKept(e)
		}
	case map[string]any:
		for k, e := range v {
			n += int64(len(k)) + SizeOfKept(e)
		}
	}
	return n + place
}

// largeBytes is what a span may take before it is trimmed at once, not only when it is kept.
const largeBytes = 64 << 10

// trim returns a span that is not large, cut as it would be when it is kept, and its size. The
// span that came is shared with others and stays as it is.
func trim(s ptrace.Span) (ptrace.Span, int64) {
	size := sizeOf(s)
	if size <= largeBytes {
		return s, size
	}
	out := ptrace.NewSpan()
	s.CopyTo(out)
	out.SetName(CutText(s.Name(), MaxNameBytes))
	cut := trimMap(out.Attributes())
	out.SetDroppedAttributesCount(out.DroppedAttributesCount() + cut)
	n := uint32(0)
	out.Events().RemoveIf(func(e ptrace.SpanEvent) bool {
		e.SetDroppedAttributesCount(e.DroppedAttributesCount() + trimMap(e.Attributes()))
		n++
		return n > maxEvents
	})
	out.SetDroppedEventsCount(out.DroppedEventsCount() + n - uint32(out.Events().Len()))
	n = 0
	out.Links().RemoveIf(func(l ptrace.SpanLink) bool {
		l.SetDroppedAttributesCount(l.DroppedAttributesCount() + trimMap(l.Attributes()))
		n++
		return n > maxLinks
	})
	out.SetDroppedLinksCount(out.DroppedLinksCount() + n - uint32(out.Links().Len()))
	return out, sizeOf(out)
}

func trimMap(m pcommon.Map) (cut uint32) {
	seen := 0
	m.RemoveIf(func(_ string, v pcommon.Value) bool {
		seen++
		if seen > MaxAttributes {
			cut++
			return true
		}
		switch size := SizeOf(v); {
		case size <= MaxValueBytes:
		case v.Type() == pcommon.ValueTypeStr:
			v.SetStr(CutText(v.Str(), MaxValueBytes))
		default:
			v.SetStr(fmt.Sprintf("… (cut from %d bytes)", size))
		}
		return false
	})
	return cut
}
