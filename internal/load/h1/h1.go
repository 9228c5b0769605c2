// Package h1 reads HTTP/1.1 responses piece by piece, without allocation and without copying bodies.
// It is a reader for a load generator: it finds where an answer ends and what its status is, and hands
// the body through; it keeps no headers (RFC 9112).
package h1

import (
	"bytes"
	"errors"
)

// MaxHead bounds the head of a response in bytes; a longer one is an error.
const MaxHead = 32 << 10

// Errors that end a connection: after them the stream cannot be read on.
var (
	ErrHead  = errors.New("response head is not HTTP/1.x")
	ErrLarge = errors.New("response head is larger than 32 KiB")
	ErrChunk = errors.New("chunked body is malformed")
	ErrBody  = errors.New("response has a malformed Content-Length")
)

type state uint8

const (
	inHead state = iota
	inBody
	inChunkSize
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

	state  state
	left   int64 // of the body or the chunk
	digits int8  // seen of a chunk size
	line   int   // bytes in the current trailer line
	ext    bool  // in a chunk extension, to be skipped
	head   []byte
}

// Reset makes the reader expect a new response on the same connection.
func (r *Response) Reset() {
	head := r.head[:0]
	*r = Response{head: head}
}

// Next consumes from b. It returns how many bytes it took, a piece of the body if it met one (a part
// of b), and whether the response is whole. Call it again with the rest until it has taken all of b or
// the response is done. Bytes after a whole response stay in b.
func (r *Response) Next(b []byte) (n int, body []byte, done bool, err error) {
	switch r.state {
	case inHead:
		n, done, err = r.readHead(b)
		return n, nil, done, err
	case inBody, inChunk:
		n = len(b)
		if int64(n) > r.left {
			n = int(r.left)
		}
		r.left -= int64(n)
		r.Bytes += int64(n)
		if r.left == 0 {
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
		if i := bytes.Index(b, headEnd); i >= 0 {
			done, err = r.parseHead(b[:i+2])
			return i + 4, done, err
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

// parseHead reads "HTTP/1.1 200 OK\r\n" and the header lines after it, all ending in CRLF.
func (r *Response) parseHead(h []byte) (done bool, err error) {
	if len(h) < 14 || string(h[:7]) != "HTTP/1." || h[8] != ' ' {
		return false, ErrHead
	}
	d0, d1, d2 := h[9]-'0', h[10]-'0', h[11]-'0'
	if d0 > 9 || d1 > 9 || d2 > 9 || h[12] != ' ' && h[12] != '\r' {
		return false, ErrHead
	}
	r.Status = int(d0)*100 + int(d1)*10 + int(d2)
	r.Close = h[7] == '0'
	length, chunked := int64(-1), false
	for i := bytes.IndexByte(h, '\n') + 1; i > 0 && i < len(h); {
		end := bytes.IndexByte(h[i:], '\n')
		if end < 0 {
			break
		}
		if err = r.header(h[i:i+end], &length, &chunked); err != nil {
			return false, err
		}
		i += end + 1
	}
	return r.frame(length, chunked), nil
}

// header looks at one line, without its LF. Only three headers decide where an answer ends.
func (r *Response) header(line []byte, length *int64, chunked *bool) error {
	if len(line) < 10 {
		return nil
	}
	switch line[0] | 0x20 {
	case 'c':
		if v, ok := value(line, "content-length"); ok {
			n, good := number(v)
			if !good || *length >= 0 && *length != n {
				return ErrBody
			}
			*length = n
		} else if v, ok := value(line, "connection"); ok {
			if equalFold(v, "close") {
				r.Close = true
			} else if equalFold(v, "keep-alive") {
				r.Close = false
			}
		}
	case 't':
		if v, ok := value(line, "transfer-encoding"); ok {
			*chunked = equalFold(v, "chunked")
		}
	}
	return nil
}

// frame decides how the body ends (RFC 9112 §6.3) and reports whether there is none.
func (r *Response) frame(length int64, chunked bool) (done bool) {
	switch {
	case r.Status < 200: // an interim answer: the real one follows
		r.state = inHead
		return false
	case r.Status == 204 || r.Status == 304:
		return true
	case chunked:
		r.state = inChunkSize
		return false
	case length >= 0:
		r.left = length
		r.state = inBody
		return length == 0
	}
	r.state = untilClose
	r.Close = true
	return false
}

// readFraming consumes the bytes between chunks, one state at a time.
func (r *Response) readFraming(b []byte) (n int, done bool, err error) {
	for n < len(b) {
		c := b[n]
		n++
		switch r.state {
		case inChunkSize:
			if err = r.chunkSize(c); err != nil {
				return n, false, err
			}
			if r.state == inChunk {
				return n, false, nil
			}
		case inChunkEnd:
			if c == '\n' {
				r.state, r.left, r.digits, r.ext = inChunkSize, 0, 0, false
			} else if c != '\r' {
				return n, false, ErrChunk
			}
		case inTrailer:
			if c == '\n' {
				if r.line == 0 {
					return n, true, nil
				}
				r.line = 0
			} else if c != '\r' {
				r.line++
			}
		}
	}
	return n, false, nil
}

func (r *Response) chunkSize(c byte) error {
	switch {
	case c == '\n':
		if r.digits == 0 {
			return ErrChunk
		}
		r.state = inChunk
		if r.left == 0 {
			r.state, r.line = inTrailer, 0
		}
	case c == '\r' || r.ext:
	case c == ';' || c == ' ':
		r.ext = true
	default:
		d, ok := hex(c)
		if !ok || r.digits >= 15 {
			return ErrChunk
		}
		r.left = r.left<<4 | int64(d)
		r.digits++
	}
	return nil
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
