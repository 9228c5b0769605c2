package otlp

import "google.golang.org/protobuf/encoding/protowire"

// idBytes are the lengths of OTLP's ids. The decoder refuses a whole request for one id of another
// length.
var idBytes = map[string]int{"trace_id": 16, "span_id": 8, "parent_span_id": 8}

// repaired returns a message in which spans and log records with an id of a wrong length have ids
// that are rejected later: no trace id, but a span id. It returns b itself if there are none, or if
// b is malformed. The length may stay the same.
func (s *shape) repaired(b []byte, depth int) (out []byte, changed bool) {
	if depth > deepest {
		return b, false
	}
	wrong := s.hasWrongID(b)
	changed, done := wrong, 0 // out has everything before done, from the first change on
	for at := 0; at < len(b); {
		number, kind, content, size := field(b[at:])
		if size < 0 {
			return b, false
		}
		from := at
		at += size
		if kind != protowire.BytesType {
			continue
		}
		if wrong && s.ids[number] > 0 {
			out = append(out, b[done:from]...)
			done = at
			continue
		}
		inner := s.fields[number]
		if inner == nil {
			continue
		}
		if now, repaired := inner.repaired(content, depth+1); repaired {
			out = protowire.AppendTag(append(out, b[done:from]...), number, kind)
			out = protowire.AppendBytes(out, now)
			changed, done = true, at
		}
	}
	if !changed {
		return b, false
	}
	out = append(out, b[done:]...)
	if wrong {
		out = protowire.AppendTag(out, s.span, protowire.BytesType)
		out = protowire.AppendBytes(out, []byte("no trace"))
	}
	return out, true
}

// hasWrongID reports whether a message itself has an id of a wrong length. Ids may be empty.
func (s *shape) hasWrongID(b []byte) bool {
	if len(s.ids) == 0 {
		return false
	}
	for len(b) > 0 {
		number, _, content, size := field(b)
		if size < 0 {
			return false
		}
		if n := s.ids[number]; n > 0 && len(content) != 0 && len(content) != n {
			return true
		}
		b = b[size:]
	}
	return false
}

// field returns the first field of a message, its content if it has a length, and its size, which
// is negative if it is malformed.
func field(b []byte) (number protowire.Number, kind protowire.Type, content []byte, size int) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return 0, 0, nil, n
	}
	m := protowire.ConsumeFieldValue(number, kind, b[n:])
	if m < 0 {
		return 0, 0, nil, m
	}
	if kind == protowire.BytesType {
		content, _ = protowire.ConsumeBytes(b[n:]) // it was consumed before
	}
	return number, kind, content, n + m
}
