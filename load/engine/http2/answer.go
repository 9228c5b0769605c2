package http2

import (
	"bytes"
	"strconv"

	"golang.org/x/net/http2/hpack"

	"prony.example/load/engine/http1"
)

const (
	tableSize = 4096     // bytes of the decoder's table, which is the default
	blockMax  = 64 << 10 // of a block of fields
	listMax   = http1.MaxHead
	knownMax  = 8 // answers that a connection remembers
)

// fields reads the blocks of a connection.
type fields struct {
	decoder *hpack.Decoder
	got     answer
	err     error // of the block that is being read
	begun   bool  // other fields than pseudo-fields have come
	listed  int   // bytes of the block's list
	calls   bool  // they are of gRPC
	known   [knownMax]known
	next    int
}

// answer is what a block says.
type answer struct {
	status int    // 0: it has none, as trailers have not
	length int64  // as announced; -1: it is not
	text   []byte // the head in HTTP/1.1, but for what says how the body ends
	said          // gRPC: the text is that of its status
}

// known is a block that has been read: the same bytes mean the same while the table is the same.
type known struct {
	block []byte
	answer
}

func newFields(calls bool) *fields {
	f := &fields{calls: calls}
	f.decoder = hpack.NewDecoder(tableSize, f.field)
	f.decoder.SetMaxStringLength(listMax)
	return f
}

// read takes a whole block. What it returns is good until the next call.
func (f *fields) read(block []byte) (*answer, error) {
	for k := range f.known {
		if bytes.Equal(f.known[k].block, block) && len(block) > 0 {
			return &f.known[k].answer, nil
		}
	}
	f.got = answer{length: -1, text: f.got.text[:0], said: said{code: none}}
	f.err, f.begun, f.listed = nil, false, len("HTTP/1.1 200 \r\n")
	_, err := f.decoder.Write(block)
	if err == nil {
		err = f.decoder.Close()
	}
	if err != nil {
		return nil, wrong(codeCompress, "the server's fields cannot be read: %v", err)
	}
	changed := changes(block)
	for k := range f.known {
		if changed {
			f.known[k].block = f.known[k].block[:0]
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	if changed {
		return &f.got, nil
	}
	k := &f.known[f.next]
	f.next = (f.next + 1) % knownMax
	k.block = append(k.block[:0], block...)
	k.answer, f.got.text = f.got, k.text // which is overwritten by the next that is not known
	return &k.answer, nil
}

// changes reports whether a block that was read well changes the table (RFC 7541, section 6).
func changes(block []byte) bool {
	for len(block) > 0 {
		switch c := block[0]; {
		case c >= 0x80:
			_, block = number(block, 7)
		case c >= 0x20:
			return true
		default:
			place, tail := number(block, 4)
			if place == 0 {
				tail = skip(tail)
			}
			block = skip(tail)
		}
	}
	return false
}

// number reads one whose first byte has so many bits of it.
func number(b []byte, bits uint) (n int, tail []byte) {
	most := 1<<bits - 1
	if n = int(b[0]) & most; n < most {
		return n, b[1:]
	}
	for i, c := range b[1:] {
		n += int(c&0x7f) << (7 * uint(i))
		if c < 0x80 {
			return n, b[i+2:]
		}
	}
	return 0, nil // cannot be: it was read well
}

// skip leaves a string behind.
func skip(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	n, tail := number(b, 7)
	return tail[min(n, len(tail)):]
}

// field takes one. The decoder must go on to the end whatever it is, or its table would not be the
// peer's any more.
func (f *fields) field(h hpack.HeaderField) {
	if f.err == nil {
		f.err = f.take(h.Name, h.Value)
	}
}

func (f *fields) take(name, value string) error {
	if name == ":status" {
		n, err := strconv.Atoi(value)
		if f.begun || f.got.status != 0 || err != nil || len(value) != 3 || n < 100 {
			return malformed("status %q", value)
		}
		f.got.status = n
		if f.calls {
			return nil
		}
		f.got.text = append(append(append(f.got.text, "HTTP/1.1 "...), value...), " \r\n"...)
		return nil
	}
	f.begun = true
	if !isName(name) {
		return malformed("a field by the name of %q", name)
	}
	if hops[name] {
		return malformed("a field %s, which HTTP/2 does not have", name)
	}
	for i := range len(value) {
		if c := value[i]; c == '\r' || c == '\n' || c == 0 {
			return malformed("the value %q", value)
		}
	}
	if name == "content-length" {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || value[0] < '0' || f.got.length >= 0 && f.got.length != n {
			return malformed("content-length %q", value)
		}
		f.got.length = n
		return nil
	}
	if f.listed += len(name) + len(value) + len(": \r\n"); f.listed > listMax {
		return wrong(codeCalm, "the answer's fields are more than 32 KiB")
	}
	if f.calls {
		f.say(name, value)
		return nil
	}
	t := append(append(f.got.text, name...), ": "...)
	f.got.text = append(append(t, value...), "\r\n"...)
	return nil
}

func malformed(format string, args ...any) error {
	return wrong(codeProtocol, "the answer is malformed: it has "+format, args...)
}

// isName reports whether a field may be called so (RFC 9113, section 8.2.1).
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == ':' || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return len(s) > 0
}
