package logstore

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"prony/internal/telemetry/logs"
	"prony/internal/telemetry/spans"
	"prony/internal/telemetry/spanstore"
)

// arrival is a record as it came.
type arrival struct {
	record  plog.LogRecord
	service string
	logger  string
	wallNs  int64 // when
}

// time is when it was written, or first seen; if it does not say, the present. Times after the year
// 2262 are cut to its last moment in int64.
func (a arrival) time() int64 {
	for _, t := range []pcommon.Timestamp{a.record.Timestamp(), a.record.ObservedTimestamp()} {
		if t > 0 {
			return int64(min(uint64(t), 1<<63-1))
		}
	}
	return a.wallNs
}

// levelOf is the index in logs.Severities. Some appenders send only the word.
func levelOf(r plog.LogRecord) int {
	if n := int(r.SeverityNumber()); n > 0 {
		return min((n+3)/4, len(logs.Severities)-1)
	}
	return max(0, logs.Level(r.SeverityText()))
}

// hash depends on what the record says alone, so that the sample is the same in whatever order
// records come.
func (a arrival) hash() uint64 {
	h := fnv.New64a()
	trace, span := a.record.TraceID(), a.record.SpanID()
	ns := binary.LittleEndian.AppendUint64(nil, uint64(a.time()))
	const head = 256 // of the body; more tells records apart no better
	body := ""
	if a.record.Body().Type() == pcommon.ValueTypeStr {
		body = a.record.Body().Str()
	}
	for _, b := range [][]byte{ns, trace[:], span[:], []byte(a.service),
		[]byte(body[:min(len(body), head)])} {
		_, _ = h.Write(b) // never fails (package hash)
	}
	return spanstore.Mix(h.Sum64())
}

// copy makes the record that is kept, and says about how many bytes it takes.
func (a arrival) copy(t *trial, level int) (logs.Record, int64) {
	const fixed = 336
	r := logs.Record{
		Trial: t.ID, Target: t.Target, Ns: a.time(), Service: a.service,
		Severity: logs.Severities[level], Logger: spans.CutText(a.logger, spans.MaxNameBytes),
		Body: bodyOf(a.record.Body()),
	}
	if id := a.record.TraceID(); !id.IsEmpty() {
		r.TraceID = id.String()
	}
	if id := a.record.SpanID(); !id.IsEmpty() {
		r.SpanID = id.String()
	}
	r.Attributes, r.Cut = spanstore.AttributesOf(a.record.Attributes())
	r.Cut += int64(a.record.DroppedAttributesCount())
	return r, int64(fixed+len(r.Body)) + spanstore.SizeOfKept(map[string]any(r.Attributes))
}

// bodyOf is the text, or what else the body is, as JSON.
func bodyOf(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeStr {
		return spans.CutText(v.Str(), spans.MaxValueBytes)
	}
	short := pcommon.NewValueEmpty()
	if err := short.FromRaw(spanstore.ValueOf(v)); err != nil {
		return "" // ValueOf makes only what FromRaw knows
	}
	return spans.CutText(short.AsString(), spans.MaxValueBytes)
}

// entry is a record that has a place or is held.
type entry struct {
	spanstore.Seat
	record logs.Record
	ns     int64
	level  int
	hash   uint64
	trace  pcommon.TraceID
}

// Where an entry is: in which place, and whether it is held for its trace.
const (
	warnings = iota
	uniform
	places
	isTraced = 1 << places
)

func byTime(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.hash, b.hash))
}

func (e *entry) classes() (out []string) {
	for i, name := range []string{logs.Warning, logs.Uniform, logs.Traced} {
		if e.In&(1<<i) != 0 {
			out = append(out, name)
		}
	}
	return out
}

// byValue puts the severest first, of equal ones those of the lowest hash.
func byValue(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.level, a.level), cmp.Compare(a.hash, b.hash),
		cmp.Compare(a.ns, b.ns))
}

func byHash(a, b *entry) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.ns, b.ns))
}

// newGroup has the places of one window, traced records apart.
func newGroup(o Options) spanstore.Group[*entry] {
	return spanstore.Group[*entry]{warnings: {Limit: o.Warnings, Order: byValue},
		uniform: {Limit: o.Uniform, Order: byHash}}
}

// Eligible says which place a record may have.
func (e *entry) Eligible(place int) bool {
	return (place == warnings) == (e.level >= logs.Warn)
}
