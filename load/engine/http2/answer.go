package http2

import (
	"bytes"
	"strconv"

	"golang.org/x/net/http2/hpack"

	"prony.example/load/engine/http1"
)

const (
	tableSize = 4096     // bytes of the decoder's table, the default of HPACK
	blockMax  = 64 << 10 // of a block of fields
	listMax   = http1.MaxHead
	knownMax  = 8 // header blocks that a connection remembers
)

// fields decodes the header blocks of a connection.
type fields struct {
	decoder *hpack.Decoder
	got     answer
	err     error // of the current block
	begun   bool  // fields other than pseudo-fields have come
	listed  int   // bytes of the block's field list
	calls   bool  // the blocks belong to gRPC calls
	known   [knownMax]known
	next    int
}

// answer is a decoded header block.
type answer struct {
	status int    // 0: none, as in trailers
	length int64  // from content-length; -1: none
	text   []byte // the head in HTTP/1.1, without the fields that frame the body
	full   []byte // the whole head, if it has a length and is remembered
	said          // gRPC: the text is grpc-message
}

// known is a decoded block. The same bytes mean the same as long as the table does not change.
type known struct {
	block []byte
	answer
	head []byte // in HTTP/1.1, of a response with a length
}

func newFields(calls bool) *fields {
	f := &fields{calls: calls}
	f.decoder = hpack.NewDecoder(tableSize, f.field)
	f.decoder.SetMaxStringLength(listMax)
	return f
}

// read decodes a complete block. Its result is valid until the next call.
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
	k.answer, f.got.text = f.got, k.text // the next unknown block overwrites it
	if k.length >= 0 {
		k.head = append(appendLength(append(k.head[:0], k.text...), k.length), lineEnd...)
		k.full = k.head
	}
	return &k.answer, nil
}

// changes reports whether a valid block changes the table (RFC 7541, section 6).
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

// number decodes an integer with a prefix of some bits in the first byte.
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
	return 0, nil // impossible: the block was decoded before
}

// skip skips a string.
func skip(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	n, tail := number(b, 7)
	return tail[min(n, len(tail)):]
}

// field handles a decoded field. After an error it ignores fields, because the decoder must read
// all of the block to keep its table equal to the peer's.
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

// isName reports whether the name is valid for a field (RFC 9113, section 8.2.1).
func isName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == ':' || c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return len(s) > 0
}
