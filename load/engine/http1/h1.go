// Package http1 reads HTTP/1.1 responses piece by piece, without allocation and without copying
// bodies. It is a reader for a load generator: it finds where an answer ends and what its status
// is, and hands the body through; it keeps no headers (RFC 9112). Where a line of the framing ends
// decides where the answer does, so that a bare CR or LF there is an error, as §2.2 permits.
//
// Non-goals: the answer to a CONNECT.
package http1

import (
	"bytes"
	"errors"
)

// MaxHead bounds the head of a response in bytes; a longer one is an error. The trailers and each
// chunk extension have the same bound.
const MaxHead = 32 << 10

// Errors that end a connection: after them the stream cannot be read on.
var (
	ErrHead   = errors.New("response head is not HTTP/1.x")
	ErrLarge  = errors.New("response head is larger than 32 KiB")
	ErrChunk  = errors.New("chunked body is malformed")
	ErrLength = errors.New("response has a malformed Content-Length")
	ErrCoding = errors.New("response of HTTP/1.0 has a Transfer-Encoding")
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
	Status int   // valid once the head is whole
	Close  bool  // the server will close the connection after this answer
	Bytes  int64 // of body, so far

	state     state
	remaining int64 // of the body or the chunk
	digits    int8  // seen of a chunk size
	cr        bool  // the last byte of the framing was a CR, so that the next is a LF
	line      bool  // the current trailer line has a byte
	over      int   // bytes of the trailers or of the chunk extension
	plain     bool  // the answer is to a HEAD: its head may announce a body that never comes
	keep      bool
	head      []byte
	retained  []byte
	cache     *Cache
}

// Reset makes the reader expect a new response on the same connection.
func (r *Response) Reset() {
	*r = Response{head: r.head[:0], retained: r.retained[:0], cache: r.cache}
}

// Expect says more of the response to come: it is to a HEAD request, which no body follows (RFC
// 9112 §6.3), and its head is to be kept.
func (r *Response) Expect(toHead, keep bool) { r.plain, r.keep = toHead, keep }

// Use has the heads of responses compared with what c remembers before they are read. It stays in
// force until another call; nil ends it.
func (r *Response) Use(c *Cache) { r.cache = c }

// Head returns the status line and the header lines, each with its CRLF, if they were to be kept.
// It is valid until Reset.
func (r *Response) Head() []byte { return r.retained }

// Next consumes from b. It returns how many bytes it took, a piece of the body if it met one (a
// part of b), and whether the response is whole. Call it again with the rest until it has taken all
// of b or the response is done. Bytes after a whole response stay in b.
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

// EOF tells the reader that the server closed. It reports whether that completes the response.
func (r *Response) EOF() bool { return r.state == untilClose }

// Started reports whether any byte of a response was taken since the last Reset.
func (r *Response) Started() bool { return r.state != inHead || len(r.head) > 0 }

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
				return 0, false, ErrLarge
			}
			done, err = r.parseHead(b[:i+2])
			if cache != nil && err == nil {
				cache.learn(r, b[:n])
			}
			return n, done, err
		}
	}
	// The head came in pieces, which is rare: gather it. The end mark may straddle the pieces.
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
		if len(r.head) >= MaxHead {
			return 0, false, ErrLarge
		}
		return len(take), false, nil
	}
	end := from + i + 4
	head := r.head[:end-2]
	r.head = r.head[:0]
	done, err = r.parseHead(head)
	return end - old, done, err
}

// framing is what the header lines say about where the answer ends and what becomes of the
// connection.
type framing struct {
	length      int64 // -1 for none
	coding      coding
	close, keep bool
}

// coding is the last transfer coding, the one that decides.
type coding uint8

const (
	noCoding coding = iota
	chunked
	otherCoding
)

// parseHead reads "HTTP/1.1 200 OK\r\n" and the header lines after it, all ending in CRLF.
func (r *Response) parseHead(h []byte) (done bool, err error) {
	if len(h) < 14 || string(h[:7]) != "HTTP/1." || h[7]-'0' > 9 || h[8] != ' ' {
		return false, ErrHead
	}
	d0, d1, d2 := h[9]-'0', h[10]-'0', h[11]-'0'
	if d0 < 1 || d0 > 9 || d1 > 9 || d2 > 9 || h[12] != ' ' && string(h[12:14]) != "\r\n" {
		return false, ErrHead
	}
	r.Status = int(d0)*100 + int(d1)*10 + int(d2)
	f := framing{length: -1}
	framed := false // the line before this one was about framing
	for i := 0; i < len(h); {
		line := h[i:]
		end := bytes.IndexByte(line, '\n')
		if end < 1 || line[end-1] != '\r' {
			return false, ErrHead
		}
		line = line[:end-1]
		switch {
		case i == 0: // the status line
		case line[0] == ' ' || line[0] == '\t': // RFC 9112 §5.2: the line before goes on
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

// header looks at one line, without its CRLF, and reports whether it is one of the three that
// decide where an answer ends.
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
	case 't':
		if v, ok := value(line, "transfer-encoding"); ok {
			f.coding = otherCoding
			if equalFold(bytes.TrimSpace(v[bytes.LastIndexByte(v, ',')+1:]), "chunked") {
				f.coding = chunked
			}
			return true, nil
		}
	}
	return false, nil
}

// connection reads the options of a Connection header, a list (RFC 9110 §7.6.1).
func (f *framing) connection(v []byte) {
	for more := true; more; {
		var option []byte
		option, v, more = bytes.Cut(v, comma)
		option = bytes.TrimSpace(option)
		f.close = f.close || equalFold(option, "close")
		f.keep = f.keep || equalFold(option, "keep-alive")
	}
}

var comma = []byte(",")

// frame decides how the body ends (RFC 9112 §6.3) and reports whether there is none.
func (r *Response) frame(f framing) (done bool) {
	switch {
	case r.Status < 200: // an interim answer: the real one follows
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
	r.state, r.remaining, r.digits, r.over = inChunkSize, 0, 0, 0
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

// endLine follows a CRLF. It reports whether that ends the answer.
func (r *Response) endLine() (done bool, err error) {
	switch r.state {
	case inTrailer:
		done, r.line = !r.line, false
		return done, nil
	case inChunkEnd:
		r.beginChunk()
		return false, nil
	}
	if r.digits == 0 {
		return false, ErrChunk
	}
	r.state = inChunk
	if r.remaining == 0 {
		r.state, r.over = inTrailer, 0
	}
	return false, nil
}

// within takes a byte inside a line.
func (r *Response) within(c byte) error {
	switch r.state {
	case inTrailer, inChunkExt:
		r.line = r.state == inTrailer
		if r.over++; r.over > MaxHead {
			return ErrLarge
		}
		return nil
	case inChunkSize, inChunkSpace:
		if r.digits == 0 && (c == ';' || c == ' ' || c == '\t') {
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
		if !ok || r.digits >= 15 || r.state == inChunkSpace {
			return ErrChunk
		}
		r.remaining = r.remaining<<4 | int64(d)
		r.digits++
		return nil
	}
	return ErrChunk // a byte where the chunk's CRLF should be
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

// equalFold compares ASCII without regard to case; lower is in lower case.
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
