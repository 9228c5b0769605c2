package http2

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unsafe"
)

// heads caches header blocks by the text of requests, so that the fields of a route with constant
// requests are encoded once.
type heads struct {
	known  [headsKnown]head
	scheme byte   // index in the static table
	call   []byte // gRPC: the encoded fields of every call
}

const headsKnown = 64

// head is the head of a request, in both forms.
type head struct {
	text  []byte // in HTTP/1.1, with the empty line
	block []byte
	plain bool // the response has no body
}

// of returns the head that a request begins with. It is valid until the next call.
func (h *heads) of(b []byte) (*head, error) {
	offset := uintptr(
		unsafe.Pointer(unsafe.SliceData(b)),
	) // a hash: a constant request keeps its address
	k := &h.known[(offset>>5^offset>>11)%headsKnown]
	if len(k.text) > 0 && bytes.HasPrefix(b, k.text) {
		return k, nil
	}
	n := bytes.Index(b, []byte("\r\n\r\n"))
	if n < 0 {
		return nil, wrong(codeInternal, "the request has no end of its head")
	}
	k.text = k.text[:0]
	block, err := h.append(k.block[:0], b[:n+2])
	if k.block = block; err != nil {
		return nil, err
	}
	k.text = append(k.text, b[:n+4]...)
	k.plain = bytes.HasPrefix(b, []byte("HEAD "))
	return k, nil
}

// Indexes in the static table (RFC 7541, appendix A).
const (
	placeAuthority = 1
	placeGet       = 2
	placePost      = 3
	placePath      = 4
	placeHTTP      = 6
	placeHTTPS     = 7
	indexed        = 0x80
)

// places are the static table's indexes of names of request fields.
var places = map[string]int{
	"accept-charset": 15, "accept-encoding": 16, "accept-language": 17, "accept-ranges": 18,
	"accept": 19, "access-control-allow-origin": 20, "age": 21, "allow": 22, "authorization": 23,
	"cache-control": 24, "content-disposition": 25, "content-encoding": 26,
	"content-language": 27, "content-length": 28, "content-location": 29, "content-range": 30,
	"content-type": 31, "cookie": 32, "date": 33, "etag": 34, "expect": 35, "expires": 36,
	"from": 37, "host": 38, "if-match": 39, "if-modified-since": 40, "if-none-match": 41,
	"if-range": 42, "if-unmodified-since": 43, "last-modified": 44, "link": 45, "location": 46,
	"max-forwards": 47, "proxy-authenticate": 48, "proxy-authorization": 49, "range": 50,
	"referer": 51, "refresh": 52, "retry-after": 53, "server": 54, "set-cookie": 55,
	"strict-transport-security": 56, "transfer-encoding": 57, "user-agent": 58, "vary": 59,
	"via": 60, "www-authenticate": 61,
}

// hops are the HTTP/1.1 fields for the connection (RFC 9113, section 8.2.2), which HTTP/2 forbids.
var hops = map[string]bool{"connection": true, "keep-alive": true, "proxy-connection": true,
	"transfer-encoding": true, "upgrade": true, "te": true}

// trailers is the only value of TE in HTTP/2.
const trailers = "trailers"

// Carries reports whether requests, or gRPC calls, can have a header field. HTTP/2 and HTTP/3
// forbid fields for the connection (RFC 9114, section 4.2), and gRPC sets some fields itself.
func Carries(name, value string, call bool) bool {
	name = strings.ToLower(name)
	return (!hops[name] || name == "te" && value == trailers) && !(call && reserved[name])
}

// append appends the header block for a request's lines, each with its CRLF. The lines come from
// the generator, so no other form of HTTP occurs. All gRPC calls use POST.
func (h *heads) append(dst, lines []byte) ([]byte, error) {
	first, lines, _ := bytes.Cut(lines, []byte("\r\n"))
	method, path, _ := bytes.Cut(first, []byte(" "))
	path, version, ok := bytes.Cut(path, []byte(" "))
	if !ok || string(version) != "HTTP/1.1" {
		return dst, wrong(codeInternal, "%q is not a request line", first)
	}
	switch {
	case h.call != nil || string(method) == "POST":
		dst = append(dst, indexed|placePost)
	case string(method) == "GET":
		dst = append(dst, indexed|placeGet)
	default:
		dst = appendString(append(dst, placeGet), method)
	}
	dst = append(dst, indexed|h.scheme)
	if string(path) == "/" {
		dst = append(dst, indexed|placePath)
	} else {
		dst = appendString(append(dst, placePath), path)
	}
	for all := lines; len(all) > 0; { // the authority must precede other fields
		var line []byte
		line, all, _ = bytes.Cut(all, []byte("\r\n"))
		if name, value, _ := bytes.Cut(line, []byte(":")); isHost(name) {
			dst = appendString(append(dst, placeAuthority), bytes.TrimSpace(value))
			break
		}
	}
	dst = append(dst, h.call...)
	for len(lines) > 0 {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\r\n"))
		dst = appendField(dst, line, h.call != nil)
	}
	return dst, nil
}

func isHost(name []byte) bool { return bytes.EqualFold(name, []byte("host")) }

// appendField appends a line as a literal without indexing. In a gRPC call the value is
// base64-encoded if the name ends in -bin.
func appendField(dst, line []byte, call bool) []byte {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if value = bytes.TrimSpace(value); isHost(name) {
		return dst
	}
	const room = 32
	var lower [room]byte
	if len(name) <= room {
		known := lower[:len(name)]
		for i, c := range name {
			known[i] = toLower(c)
		}
		te := !call && string(known) == "te" && string(value) == trailers
		if hops[string(known)] && !te || call && reserved[string(known)] {
			return dst
		}
		if place := places[string(known)]; place > 0 {
			return appendString(appendInt(dst, 0, 4, place), value)
		}
	}
	dst = appendInt(append(dst, 0), 0, 7, len(name))
	for _, c := range name {
		dst = append(dst, toLower(c))
	}
	if n := len(dst); call && bytes.HasSuffix(dst[n-len(name):], []byte("-bin")) {
		dst = appendInt(dst, 0, 7, base64.RawStdEncoding.EncodedLen(len(value)))
		return base64.RawStdEncoding.AppendEncode(dst, value)
	}
	return appendString(dst, value)
}

func toLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// appendString appends a string without Huffman coding, which saves the receiver the decoding.
func appendString(dst, s []byte) []byte { return append(appendInt(dst, 0, 7, len(s)), s...) }

// appendInt appends an integer with a prefix of some bits in the first byte (RFC 7541, section
// 5.1).
func appendInt(dst []byte, first byte, bits uint, n int) []byte {
	most := 1<<bits - 1
	if n < most {
		return append(dst, first|byte(n))
	}
	dst = append(dst, first|byte(most))
	for n -= most; n >= 0x80; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, byte(n))
}
