package otlp

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"prony.example/record"
)

// nest wraps a body in fields of these numbers, the innermost first.
func nest(body []byte, fields ...protowire.Number) []byte {
	for _, f := range fields {
		body = protowire.AppendBytes(protowire.AppendTag(nil, f, protowire.BytesType), body)
	}
	return body
}

// TestWeigh checks weights from messages, values and bytes, and depths.
func TestWeigh(t *testing.T) {
	check := func(what, signal, kind string, zipkin bool, body []byte, bytes int64, deep int) {
		t.Helper()
		if b, d := weighed(signal, kind, zipkin, body); b != bytes || d != deep {
			t.Errorf("%s: %d bytes, %d deep; want %d, %d", what, b, d, bytes, deep)
		}
	}
	const proto, text = "application/x-protobuf", "application/json"
	check("nothing", record.Spans, proto, false, nil, costMessage, 0)
	check("three resources", record.Spans, proto, false, []byte("\n\x00\n\x00\n\x00"),
		4*costMessage, 1)
	// The request, a resource, a scope, a log record, its body of three letters.
	check("a line", record.Logs, proto, false, nest([]byte("abc"), 1, 5, 2, 2, 1),
		4*costMessage+costValue+costValue/2+3*costByte, 4)
	// Bucket counts of a histogram's point: eight bytes for each on the wire, at most.
	check("buckets", record.Points, proto, false, nest(make([]byte, 16), 6, 1, 9, 2, 2, 1),
		6*costMessage+16*costNumber, 5)
	// Each nested list has an AnyValue and an ArrayValue.
	var lists []byte
	for range deepest {
		lists = nest(lists, 1, 5)
	}
	_, deep := weighed(record.Logs, proto, false, nest(lists, 5, 2, 2, 1))
	if deep != deepest+1 {
		t.Errorf("lists in lists are %d deep", deep)
	}
	check("no protobuf", record.Spans, proto, false, []byte("\xff"), costMessage, 0)
	check("JSON", record.Spans, text, false, []byte(`{"a\"{":[{},{}]}`),
		3*costMessage+costValue+costNumber+16*costByte, 3)
	check("Zipkin's", record.Spans, proto, true, nest(nil, 8, 1), 3*costMessage, 2)
}

// The sum of decoded sizes is limited, and a request that never fits gets another error.
func TestDecodingIsBounded(t *testing.T) {
	d := &decoding{bytes: 10}
	check := func(weight int64, deep int, want string) {
		t.Helper()
		err := d.take(weight, deep)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes, %d deep: %v, want %s", weight, deep, err, want)
		}
	}
	check(6, 3, "")
	check(5, 3, "try again")
	check(4, 3, "")
	check(11, 3, "smaller batches")
	check(0, deepest+1, "send flat values")
	d.held.Add(-6)
	check(6, 3, "")
}
