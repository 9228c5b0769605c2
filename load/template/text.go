// Package template renders requests: texts with placeholders whose values are pure functions of the
// seed and the request's number, so every target gets the same bytes.
//
//	{key}               the key drawn for the request
//	{seq}               the request's number, from 0
//	{random 1..100}     a whole number of the range, both ends included, uniformly
//	{hex 16}            16 hexadecimal digits
//	{uuid}              a UUID of version 4 (RFC 9562)
//	{pick red|green}    one of the alternatives, with equal shares
//	{name}              a variable that an earlier step of the flow has set
//	${NAME}             a variable of the environment, filled in when a load begins: see Fill
//	{lab host}          host, port or source port, only in expected responses: see At
//
// A placeholder is a lower-case word directly after a brace, optionally a space and arguments
// without braces and line breaks, and a closing brace. Every other brace is literal, so JSON needs
// no escapes. {{key}} is the text {key}, and $${NAME} the text ${NAME}.
//
// A value is drawn from the seed, the request's number, the number of placeholders before it, and
// the text before it on its line. So two placeholders of one text draw independently; equal texts
// draw the same values, so an expected body that is written like the request body matches its echo;
// and the port in a Host line above, which differs from run to run, changes nothing.
//
// Non-goals: expressions, loops, reading files. If you need them, write a program that generates
// the bodies.
package template

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"prony.example/load/pace"
)

// Values are the inputs of one rendering.
type Values struct {
	Seed uint64
	K    uint64   // the request's number
	Key  uint64   // the key drawn for it
	Vars [][]byte // of the flow, by index: one for each name given to Parse, or more
}

// Text is a parsed text. It is read-only and may be shared between threads.
type Text struct {
	parts []part
	tail  []byte // after the last placeholder
	vars  []int
}

// part is a placeholder and the literal text before it.
type part struct {
	before []byte
	kind   kind
	salt   uint64   // of its draws
	lo     int64    // random: the first of the range
	span   uint64   // random: the size of the range
	n      int      // hex: digits; variable: its index
	items  [][]byte // pick: the alternatives
	name   string   // of an environment variable or a {lab …} placeholder
}

// kind is the kind of a placeholder.
type kind uint8

const (
	keyKind kind = iota
	seqKind
	randomKind
	hexKind
	uuidKind
	pickKind
	varKind
	envKind
	labKind
)

const (
	uint64Len = len("18446744073709551615")
	uuidLen   = len("00000000-0000-4000-8000-000000000000")
)

// Fixed reports whether the text has no placeholder, and returns its bytes if so. The caller must
// not change them.
func (t *Text) Fixed() ([]byte, bool) { return t.tail, len(t.parts) == 0 }

// Max returns an upper bound of the rendered length in bytes, without variables.
func (t *Text) Max() int {
	n := len(t.tail)
	for i := range t.parts {
		n += len(t.parts[i].before) + t.parts[i].max()
	}
	return n
}

func (p *part) max() int {
	switch p.kind {
	case keyKind, seqKind:
		return uint64Len
	case randomKind:
		hi := p.lo + int64(p.span-1)
		return max(len(strconv.FormatInt(p.lo, 10)), len(strconv.FormatInt(hi, 10)))
	case hexKind:
		return p.n
	case uuidKind:
		return uuidLen
	case pickKind:
		n := 0
		for _, o := range p.items {
			n = max(n, len(o))
		}
		return n
	case envKind:
		return len("${}") + len(p.name)
	case labKind:
		return len("{lab }") + len(p.name)
	}
	return 0
}

// Vars lists the indexes of the variables that the text needs, ascending.
func (t *Text) Vars() []int { return t.vars }

// HasKey reports whether the text holds the key.
func (t *Text) HasKey() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.kind == keyKind })
}

// Literals returns all text that can occur besides numbers, digits and variables: literal parts and
// the alternatives of picks. Callers check it for characters that are invalid in a path or a
// header, and must not change it.
func (t *Text) Literals() [][]byte {
	out := make([][]byte, 0, len(t.parts)+1)
	for i := range t.parts {
		out = append(append(out, t.parts[i].before), t.parts[i].items...)
	}
	return append(out, t.tail)
}

// Append appends the rendered text: at most Max bytes, plus the values of its variables. Within
// dst's capacity it does not allocate.
func (t *Text) Append(dst []byte, v *Values) []byte {
	for i := range t.parts {
		p := &t.parts[i]
		dst = append(dst, p.before...)
		switch p.kind {
		case keyKind:
			dst = strconv.AppendUint(dst, v.Key, 10)
		case seqKind:
			dst = strconv.AppendUint(dst, v.K, 10)
		case varKind:
			dst = append(dst, v.Vars[p.n]...)
		case envKind:
			dst = append(append(append(dst, "${"...), p.name...), '}')
		case labKind:
			dst = append(append(append(dst, "{lab "...), p.name...), '}')
		default:
			dst = p.draw(dst, pace.Mix(v.Seed^p.salt, v.K))
		}
	}
	return append(dst, t.tail...)
}

// draw appends a value from the random stream of this placeholder in this request.
func (p *part) draw(dst []byte, stream uint64) []byte {
	switch p.kind {
	case randomKind:
		return strconv.AppendInt(dst, p.lo+int64(pace.Below(stream, 0, p.span)), 10)
	case pickKind:
		return append(dst, p.items[pace.Below(stream, 0, uint64(len(p.items)))]...)
	case hexKind:
		return appendHex(dst, stream, p.n)
	default:
		return appendUUID(dst, stream)
	}
}

// appendHex appends n digits, sixteen from each draw.
func appendHex(dst []byte, stream uint64, n int) []byte {
	var b [8]byte
	var digits [16]byte
	for word := uint64(0); n > 0; word++ {
		binary.BigEndian.PutUint64(b[:], pace.Mix(stream, word))
		hex.Encode(digits[:], b[:])
		dst = append(dst, digits[:min(n, len(digits))]...)
		n -= len(digits)
	}
	return dst
}

// appendUUID appends two draws in the layout of RFC 9562, version 4.
func appendUUID(dst []byte, stream uint64) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], pace.Mix(stream, 0))
	binary.BigEndian.PutUint64(b[8:], pace.Mix(stream, 1))
	b[6] = b[6]&0x0f | 0x40 // the version
	b[8] = b[8]&0x3f | 0x80 // the variant
	dst = append(hex.AppendEncode(dst, b[:4]), '-')
	dst = append(hex.AppendEncode(dst, b[4:6]), '-')
	dst = append(hex.AppendEncode(dst, b[6:8]), '-')
	dst = append(hex.AppendEncode(dst, b[8:10]), '-')
	return hex.AppendEncode(dst, b[10:])
}
