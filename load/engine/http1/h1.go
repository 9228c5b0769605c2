// Package http1 reads HTTP/1.1 responses piece by piece, without allocations and without copying
// bodies. It serves a load generator: it finds the end and the status of a response and passes the
// body through; it keeps no headers unless Expect requests them (RFC 9112). A bare CR or LF in a
// line that affects framing is an error, as §2.2 permits, because line ends decide where a response
// ends.
//
// Non-goals: responses to CONNECT.
package http1

import (
	"bytes"
	"errors"
)

// MaxHead bounds the head of a response in bytes; a longer one is an error. The trailers and each
// chunk extension have the same bound.
const MaxHead = 32 << 10

// switching is the status of a response after which the connection speaks another protocol.
const switching = 101

// Errors after which the stream cannot be read further.
var (
	ErrHead   = errors.New("response head is not HTTP/1.x")
	ErrBareLF = errors.New("response head has a bare LF: its lines must end with CRLF")
	ErrLarge  = errors.New("response head is larger than 32 KiB")
	ErrChunk  = errors.New("chunked body is malformed")
	ErrLength = errors.New("response has a malformed Content-Length")
	ErrColon  = errors.New("response has a header field without a colon right after its name")
	ErrCoding = errors.New("response of HTTP/1.0 has a Transfer-Encoding")
	ErrSwitch = errors.New("response has status 101, but no request names a protocol")
)

type state uint8

const (
	inHead state = iota
	inBody
	inChunkSize
	inChunkSpace // after a chunk's size
	inChunkExt   // the chunk extension, to be skipped
	inChunk
	inChunkEnd
	inTrailer
	untilClose
)

// Response is the reader's state for one connection. The zero value expects a head.
type Response struct {
	Status int   // valid once the head is complete
	Close  bool  // the server will close the connection after this response
	Bytes  int64 // of body, so far

	state     state
	remaining int64 // of the body or the chunk
	sized     bool  // the chunk size has a digit
	cr        bool  // the last byte of the framing was a CR, so the next must be a LF
	line      bool  // the current trailer line has a byte
	over      int   // bytes of the trailers or of the chunk extension
	plain     bool  // the response is to a HEAD: its head can announce a body that never comes
	keep      bool
	head      []byte
	retained  []byte
	cache     *Cache
}

// Reset makes the reader expect a new response on the same connection.
func (r *Response) Reset() {
	*r = Response{head: r.head[:0], retained: r.retained[:0], cache: r.cache}
}

// Expect configures the next response: whether it is to a HEAD request, so no body follows (RFC
// 9112 §6.3), and whether to keep its head.
func (r *Response) Expect(toHead, keep bool) { r.plain, r.keep = toHead, keep }

// Use makes the reader compare response heads with c before it parses them. It stays in force until
// the next call; nil ends it.
func (r *Response) Use(c *Cache) { r.cache = c }

// Head returns the status line and the header lines, each with its CRLF, if Expect requested to
// keep them. It is valid until Reset.
func (r *Response) Head() []byte { return r.retained }

// Next consumes bytes of b. It returns how many, a piece of the body (a part of b) if there is one,
// and whether the response is complete. Call it again with the rest until it has consumed all of b
// or the response is complete. It does not consume bytes after the response.
func (r *Response) Next(b []byte) (n int, body []byte, done bool, err error) {
	switch r.state {
	case inHead:
		n, done, err = r.readHead(b)
		return n, nil, done, err
	case inBody, inChunk:
		n = len(b)
		if int64(n) > r.remaining {
			n = int(r.remaining)
		}
		r.remaining -= int64(n)
		r.Bytes += int64(n)
		if r.remaining == 0 {
			if r.state == inBody {
				return n, b[:n], true, nil
			}
			r.state = inChunkEnd
		}
		return n, b[:n], false, nil
	case untilClose:
		r.Bytes += int64(len(b))
		return len(b), b, false, nil
	}
	n, done, err = r.readFraming(b)
	return n, nil, done, err
}

// IsFarewell reports whether b begins with the announcement of a server that it waits for no
// further request (408), which it may send without a request (RFC 9110, section 15.5.9).
func IsFarewell(b []byte) bool {
	const head = len("HTTP/1.1 ")
	return len(b) >= head+3 && string(b[:5]) == "HTTP/" && string(b[head:head+3]) == "408"
}

// Interim reports whether an interim response is complete, and nothing of the final one has come.
func (r *Response) Interim() bool {
	return r.state == inHead && r.Status > 0 && r.Status < 200 && len(r.head) == 0
}

// EOF reports whether the response is complete if the server closes the connection now.
func (r *Response) EOF() bool { return r.state == untilClose }

var headEnd = []byte("\r\n\r\n")

func (r *Response) readHead(b []byte) (n int, done bool, err error) {
	if len(r.head) == 0 {
		cache := r.cache
		if r.plain || r.keep {
			cache = nil
		}
		if cache != nil && cache.matches(b) {
			n, done = r.use(cache)
			return n, done, nil
		}
		if i := bytes.Index(b, headEnd); i >= 0 {
			n = i + len(headEnd)
			if n > MaxHead {
				return 0, false, blame(b[:MaxHead], ErrLarge)
			}
			if done, err = r.parseHead(b[:i+2]); err != nil {
				return n, false, blame(b[:i+2], err)
			}
			if cache != nil {
				cache.learn(r, b[:n])
			}
			return n, done, nil
		}
	}
	// The head came in pieces, which is rare: collect it. The end mark can straddle pieces.
	from := max(len(r.head)-3, 0)
	old := len(r.head)
	room := MaxHead - old
	if room <= 0 {
		return 0, false, ErrLarge
	}
	take := b[:min(len(b), room)]
	r.head = append(r.head, take...)
	i := bytes.Index(r.head[from:], headEnd)
	if i < 0 {
		err = flaw(r.head, old)
		if err == nil && len(r.head) >= MaxHead {
			err = ErrLarge
		}
		return len(take), false, err
	}
	end := from + i + 4
	head := r.head[:end-2]
	r.head = r.head[:0]
	if done, err = r.parseHead(head); err != nil {
		err = blame(head, err)
	}
	return end - old, done, err
}

// flaw returns why no head can begin with h, or nil. It lets an incomplete head fail at once, since
// its end may never come. The bytes before from have passed already.
func flaw(h []byte, from int) error {
	const begin = "HTTP/1."
	if n := min(len(h), len(begin)); string(h[:n]) != begin[:n] {
		return ErrHead
	}
	for {
		k := bytes.IndexByte(h[from:], '\n')
		if k < 0 {
			return nil
		}
		if from += k + 1; h[from-2] != '\r' {
			return ErrBareLF
		}
	}
}

// blame returns the error of a complete head: its flaw, which is the error also if the head comes
// in pieces, otherwise err.
func blame(h []byte, err error) error {
	if why := flaw(h, 0); why != nil {
		return why
	}
	return err
}

// framing holds the header values that decide where the response ends and whether the connection
// stays open.
type framing struct {
	length      int64 // -1 for none
	coding      coding
	close, keep bool
}

// coding is the last transfer coding, which determines the framing.
type coding uint8

const (
	noCoding coding = iota
	chunked
	otherCoding
)

// parseHead parses "HTTP/1.1 200 OK\r\n" and the header lines after it, each ending in CRLF.
func (r *Response) parseHead(h []byte) (done bool, err error) {
	if len(h) < 14 || string(h[:7]) != "HTTP/1." || h[7]-'0' > 9 || h[8] != ' ' {
		return false, ErrHead
	}
	d0, d1, d2 := h[9]-'0', h[10]-'0', h[11]-'0'
	if d0 < 1 || d0 > 9 || d1 > 9 || d2 > 9 || h[12] != ' ' && string(h[12:14]) != "\r\n" {
		return false, ErrHead
	}
	if r.Status = int(d0)*100 + int(d1)*10 + int(d2); r.Status == switching {
		return false, ErrSwitch // no final response follows (RFC 9110 §15.2.2)
	}
	f := framing{length: -1}
	framed := false // the previous line was about framing
	for i := 0; i < len(h); {
		line := h[i:]
		end := bytes.IndexByte(line, '\n')
		if end < 1 || line[end-1] != '\r' {
			return false, ErrHead
		}
		line = line[:end-1]
		switch {
		case i == 0: // the status line
		case line[0] == ' ' || line[0] == '\t': // RFC 9112 §5.2: continues the previous line
			if framed {
				return false, ErrHead
			}
		default:
			if framed, err = f.header(line); err != nil {
				return false, err
			}
		}
		i += end + 1
	}
	if r.keep {
		r.retained = append(r.retained[:0], h...)
	}
	ten := h[7] == '0'
	if ten && f.coding != noCoding { // §6.1
		return false, ErrCoding
	}
	r.Close = f.close || ten && !f.keep // §9.3
	return r.frame(f), nil
}

// header parses one line, without its CRLF, and reports whether it is one of the three that affect
// framing.
func (f *framing) header(line []byte) (bool, error) {
	switch line[0] | 0x20 {
	case 'c':
		if v, ok := value(line, "content-length"); ok {
			n, good := number(v)
			if !good || f.length >= 0 && f.length != n {
				return true, ErrLength
			}
			f.length = n
			return true, nil
		}
		if v, ok := value(line, "connection"); ok {
			f.connection(v)
			return true, nil
		}
		return false, noColon(line, "content-length", "connection")
	case 't':
		if v, ok := value(line, "transfer-encoding"); ok {
			switch {
			case equalFold(bytes.TrimSpace(v[bytes.LastIndexByte(v, ',')+1:]), "chunked"):
				f.coding = chunked
			case !equalFold(v, "identity"): // of RFC 2616, and no coding
				f.coding = otherCoding
			}
			return true, nil
		}
		return false, noColon(line, "transfer-encoding")
	}
	return false, nil
}

// noColon returns ErrColon if white space or nothing follows one of names in line. RFC 9112,
// section 5.1, forbids it. Without this field, the end of the body would be unknown.
func noColon(line []byte, names ...string) error {
	for _, name := range names {
		if n := len(name); len(line) >= n && equalFold(line[:n], name) &&
			(len(line) == n || line[n] == ' ' || line[n] == '\t') {
			return ErrColon
		}
	}
	return nil
}

// connection parses the options of a Connection header, a list (RFC 9110 §7.6.1).
func (f *framing) connection(v []byte) {
	for more := true; more; {
		var option []byte
		option, v, more = bytes.Cut(v, comma)
		option = bytes.TrimSpace(option)
		f.close = f.close || equalFold(option, "close")
		f.keep = f.keep || equalFold(option, "keep-alive")
	}
}

// Closes reports whether the value of a Connection header ends the connection.
func Closes(connection string) bool {
	var f framing
	f.connection([]byte(connection))
	return f.close
}

var comma = []byte(",")

// frame decides how the body ends (RFC 9112 §6.3) and reports whether there is no body.
func (r *Response) frame(f framing) (done bool) {
	switch {
	case r.Status < 200: // an interim response: the final one follows
		r.state = inHead
		return false
	case r.plain || r.Status == 204 || r.Status == 304:
		return true
	case f.coding == chunked:
		r.beginChunk()
		return false
	case f.coding == noCoding && f.length >= 0:
		r.remaining = f.length
		r.state = inBody
		return f.length == 0
	}
	r.state = untilClose
	r.Close = true
	return false
}

func (r *Response) beginChunk() {
	r.state, r.remaining, r.sized, r.over = inChunkSize, 0, false, 0
}

// readFraming consumes the bytes between chunks (RFC 9112 §7.1), one state at a time.
func (r *Response) readFraming(b []byte) (n int, done bool, err error) {
	for n < len(b) {
		c := b[n]
		n++
		if r.cr || c == '\r' || c == '\n' {
			if r.cr != (c == '\n') {
				return n, false, ErrChunk
			}
			r.cr = !r.cr
			if r.cr {
				continue
			}
			if done, err = r.endLine(); done || err != nil || r.state == inChunk {
				return n, done, err
			}
			continue
		}
		if err = r.within(c); err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// endLine handles a CRLF. It reports whether it ends the response.
func (r *Response) endLine() (done bool, err error) {
	switch r.state {
	case inTrailer:
		done, r.line = !r.line, false
		return done, nil
	case inChunkEnd:
		r.beginChunk()
		return false, nil
	}
	if !r.sized {
		return false, ErrChunk
	}
	r.state = inChunk
	if r.remaining == 0 {
		r.state, r.over = inTrailer, 0
	}
	return false, nil
}

// within handles a byte inside a line.
func (r *Response) within(c byte) error {
	switch r.state {
	case inTrailer, inChunkExt:
		r.line = r.state == inTrailer
		if r.over++; r.over > MaxHead {
			return ErrLarge
		}
		return nil
	case inChunkSize, inChunkSpace:
		if !r.sized && (c == ';' || c == ' ' || c == '\t') {
			return ErrChunk
		}
		switch c {
		case ';':
			r.state = inChunkExt
			return nil
		case ' ', '\t':
			r.state = inChunkSpace
			return nil
		}
		d, ok := hex(c)
		// Zeros may lead, in any number (RFC 9112 §7.1); the bound is that of a head.
		if r.over++; !ok || r.remaining >= 1<<56 || r.over > MaxHead || r.state == inChunkSpace {
			return ErrChunk
		}
		r.remaining, r.sized = r.remaining<<4|int64(d), true
		return nil
	}
	return ErrChunk // a byte in place of the chunk's CRLF
}

func hex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// value returns the trimmed value of the header if the line is that header.
func value(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !equalFold(line[:len(name)], name) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name)+1:]), true
}

// equalFold compares ASCII without regard to case; lower must be in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func number(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
