package otlp

import (
	"sync"

	logpb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"prony.example/record"
)

// Memory of decoded telemetry, in bytes. Two bytes on the wire may become an empty span of 300
// bytes, so the encoded size says nothing: the elements are counted before decoding. The costs are
// those of the largest types of their kind in the OpenTelemetry Collector's pdata, with the pointer
// to each and the growth of a list that doubles.
const (
	costMessage = 360 // a span or a point
	costValue   = 96  // an attribute or a value in its list, with a box for the variant
	costByte    = 2   // of text, which is copied
	costNumber  = 8   // of a packed list of numbers, which take at least a byte each
)

// deepest limits the nesting of messages. OTLP's own nest ten deep, and values may nest
// arbitrarily; decoders recurse, and a full stack ends the program.
const deepest = 64

// shape describes a message type: which of its fields are messages, packed numbers or ids.
type shape struct {
	cost    int64
	fields  map[protowire.Number]*shape
	numbers map[protowire.Number]bool
	ids     map[protowire.Number]int // bytes of each
	span    protowire.Number         // of the span's id
}

// shapes returns OTLP's message types, by signal, from the protocol's own descriptors.
var shapes = sync.OnceValue(func() map[string]*shape {
	known := map[protoreflect.FullName]*shape{}
	return map[string]*shape{
		record.Spans:  shapeOf((&tracepb.TracesData{}).ProtoReflect().Descriptor(), known),
		record.Points: shapeOf((&metricpb.MetricsData{}).ProtoReflect().Descriptor(), known),
		record.Logs:   shapeOf((&logpb.LogsData{}).ProtoReflect().Descriptor(), known),
	}
})

func shapeOf(d protoreflect.MessageDescriptor, known map[protoreflect.FullName]*shape) *shape {
	if s := known[d.FullName()]; s != nil {
		return s
	}
	s := &shape{cost: costMessage, fields: map[protowire.Number]*shape{},
		numbers: map[protowire.Number]bool{}, ids: map[protowire.Number]int{}}
	if d.Name() == "KeyValue" || d.Name() == "AnyValue" {
		s.cost = costValue
	}
	known[d.FullName()] = s
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if m := f.Message(); m != nil {
			s.fields[f.Number()] = shapeOf(m, known)
		}
		s.numbers[f.Number()] = f.IsPacked()
		if n := idBytes[string(f.Name())]; n > 0 && f.Kind() == protoreflect.BytesKind {
			s.ids[f.Number()] = n
		}
		if f.Name() == "span_id" {
			s.span = f.Number()
		}
	}
	return s
}

// weigh returns an upper estimate of a message's decoded size, and its depth, at most one more than
// deepest. It stops at malformed data, as the decoder does.
func (s *shape) weigh(b []byte, depth int) (bytes int64, deep int) {
	bytes, deep = s.cost, depth
	if depth > deepest {
		return bytes, deep
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return bytes, deep
		}
		b = b[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return bytes, deep
			}
			bytes += costNumber // lists of numbers may be unpacked
			b = b[n:]
			continue
		}
		content, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return bytes, deep
		}
		b = b[n:]
		switch inner := s.fields[number]; {
		case inner != nil:
			more, at := inner.weigh(content, depth+1)
			bytes, deep = bytes+more, max(deep, at)
		case s.numbers[number]:
			bytes += costNumber * int64(len(content))
		default:
			bytes += costValue/2 + costByte*int64(len(content)) // a string, perhaps in a list
		}
	}
	return bytes, deep
}

// weighJSON is weigh for JSON of OTLP or Zipkin: each brace may be a message, and each comma may
// separate two values of a list.
func weighJSON(b []byte) (bytes int64, deep int) {
	bytes = costByte * int64(len(b))
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			bytes += costMessage
			depth++
			deep = max(deep, depth)
		case c == '[':
			bytes += costValue
			depth++
			deep = max(deep, depth)
		case c == ',':
			bytes += costNumber
		case c == '}' || c == ']':
			depth--
		}
	}
	return bytes, deep
}

// zipkinShape is the shape of Zipkin's protobuf: a list of spans with at most two endpoints, and
// annotations and tags. Each field of the first three levels may be a message.
var (
	zipkinShape = &shape{cost: costMessage, fields: map[protowire.Number]*shape{1: zipkinSpan}}
	zipkinSpan  = &shape{cost: costMessage, fields: map[protowire.Number]*shape{
		8: zipkinPart, 9: zipkinPart, 10: zipkinPart, 11: zipkinPart}}
	zipkinPart = &shape{cost: costMessage} // endpoints, annotations, tags
)
