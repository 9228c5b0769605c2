package spanstore

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"prony.example/internal/telemetry/traces"
)

// Limits of one span, besides those of its texts.
const (
	MaxAttributes = 128 // of a span, an event or a link: the default of SDKs
	maxEvents     = 128
	maxLinks      = 128
	maxElements   = 128 // of a list or a map in a value
	maxDepth      = 4   // of nested lists and maps
)

// AttributesOf copies at most MaxAttributes attributes, and returns the number left out.
func AttributesOf(m pcommon.Map) (out traces.Attributes, cut int64) {
	if m.Len() == 0 {
		return nil, 0
	}
	out = make(traces.Attributes, min(m.Len(), MaxAttributes))
	for k, v := range m.All() {
		if len(out) >= MaxAttributes {
			return out, int64(m.Len() - len(out))
		}
		out[traces.CutText(k, traces.MaxNameBytes)] = ValueOf(v)
	}
	return out, 0
}

// ValueOf copies a value, cut to traces.MaxValueBytes. Numbers that JSON lacks, such as NaN, become
// their names.
func ValueOf(v pcommon.Value) any { return valueOf(v, maxDepth) }

func valueOf(v pcommon.Value, depth int) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return traces.CutText(v.Str(), traces.MaxValueBytes)
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
		text := hex.EncodeToString(b[:min(len(b), traces.MaxValueBytes)])
		return traces.CutText(text, traces.MaxValueBytes)
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
		out[traces.CutText(k, traces.MaxNameBytes)] = valueOf(e, depth)
	}
	return out
}

// spanOf copies a span. If a clock was set back and the end is before the start, the duration is 0.
func spanOf(s ptrace.Span, service string) traces.Span {
	out := traces.Span{
		ID: s.SpanID().String(), Parent: s.ParentSpanID().String(), Service: service,
		Name: traces.CutText(s.Name(), traces.MaxNameBytes), Kind: traces.Kind(int32(s.Kind())),
		StartNs: nanos(s.StartTimestamp()), DurationNs: duration(s),
		Status:  traces.Status(int32(s.Status().Code())),
		Message: traces.CutText(s.Status().Message(), traces.MaxValueBytes),
		State:   traces.CutText(s.TraceState().AsRaw(), traces.MaxNameBytes),
	}
	out.Attributes, out.Cut = AttributesOf(s.Attributes())
	events, links := s.Events(), s.Links()
	out.Cut += int64(s.DroppedAttributesCount()) + int64(s.DroppedEventsCount()) +
		int64(s.DroppedLinksCount()) +
		int64(max(0, events.Len()-maxEvents)+max(0, links.Len()-maxLinks))
	for i := range min(events.Len(), maxEvents) {
		e := events.At(i)
		attributes, cut := AttributesOf(e.Attributes())
		out.Cut += cut + int64(e.DroppedAttributesCount())
		out.Events = append(out.Events, traces.Event{Ns: nanos(e.Timestamp()),
			Name: traces.CutText(e.Name(), traces.MaxNameBytes), Attributes: attributes})
	}
	for i := range min(links.Len(), maxLinks) {
		l := links.At(i)
		attributes, cut := AttributesOf(l.Attributes())
		out.Cut += cut + int64(l.DroppedAttributesCount())
		out.Links = append(out.Links, traces.Link{TraceID: l.TraceID().String(),
			SpanID: l.SpanID().String(), Attributes: attributes})
	}
	return out
}

func duration(s ptrace.Span) int64 {
	return max(0, nanos(s.EndTimestamp())-nanos(s.StartTimestamp()))
}

// nanos converts a Unix time, limited to the last moment in int64, in the year 2262.
func nanos(t pcommon.Timestamp) int64 { return int64(min(uint64(t), math.MaxInt64)) }

// sizeOf returns the approximate memory of a span, in bytes.
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

// maxSized limits the depth of nested lists and maps when their size is computed.
const maxSized = 64

// sizeOfValue returns the approximate memory of a value besides its own place, in bytes.
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

// SizeOfKept returns the approximate memory of a value of Attributes, in bytes.
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

// largeBytes is the size from which a span is trimmed on arrival, not only when stored.
const largeBytes = 64 << 10

// trim returns a small span unchanged, and a trimmed copy of a large one, with its size. The
// original is shared and must not change.
func trim(s ptrace.Span) (ptrace.Span, int64) {
	size := sizeOf(s)
	if size <= largeBytes {
		return s, size
	}
	out := ptrace.NewSpan()
	s.CopyTo(out)
	out.SetName(traces.CutText(s.Name(), traces.MaxNameBytes))
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
		switch size := sizeOfValue(v, maxSized); {
		case size <= traces.MaxValueBytes:
		case v.Type() == pcommon.ValueTypeStr:
			v.SetStr(traces.CutText(v.Str(), traces.MaxValueBytes))
		default:
			v.SetStr(fmt.Sprintf("… (cut from %d bytes)", size))
		}
		return false
	})
	return cut
}
