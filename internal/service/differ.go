package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"time"
)

// excerptBytes is the length of a body's excerpt before and after a difference.
const excerptBytes = 32

// headDifferences describes the differences of an answer's head from a case.
func headDifferences(c goldenCase, r *http.Response) []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 {
		report("the response is in %s, want HTTP/1.1", r.Proto)
	}
	if c.Type != "" && r.StatusCode == c.Status {
		got := r.Header.Get("Content-Type")
		media, _, _ := mime.ParseMediaType(got) // empty when it is none
		if got == "" {
			report("no Content-Type header, want %s", c.Type)
		} else if media != c.Type {
			report("Content-Type %s, want %s", got, c.Type)
		}
	}
	if len(r.TransferEncoding) > 0 {
		report("chunked, want Content-Length")
	} else if r.StatusCode != http.StatusNoContent && r.Header.Get("Content-Length") == "" {
		report("no Content-Length")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" {
		report("Content-Encoding %s, want none", coding)
	}
	return out
}

// readBody reads a body and compares it with the case. It stops at the first difference, because a
// wrong answer may be endless. The error is the connection's.
func (c goldenCase) readBody(body io.Reader) (difference string, sum []byte, err error) {
	want, length := c.wanted()
	if want == nil {
		got, err := io.ReadAll(io.LimitReader(body, int64(c.Length)+1))
		switch {
		case err != nil:
			return "", nil, err
		case len(got) > c.Length:
			return fmt.Sprintf("the body continues after byte %d, where it should end",
					c.Length), got,
				nil
		case len(got) < c.Length:
			return fmt.Sprintf("the body ends after %d bytes, want %d bytes",
				len(got), c.Length), got, nil
		case !regexp.MustCompile(`^(?:` + c.Pattern + `)$`).Match(got):
			return fmt.Sprintf("the body, which begins with %q, does not match %s",
				got[:min(len(got),
					excerptBytes)], c.Pattern), got, nil
		}
		return "", got, nil
	}
	difference, err = compare(body, want, length)
	return difference, nil, err
}

// compare reads both streams until they differ. Bytes are counted from 1, as by cmp(1).
func compare(got, want io.Reader, length int64) (string, error) {
	const step = 32 << 10
	gotBuf, wantBuf := make([]byte, step), make([]byte, step)
	var retained int // bytes before the new ones, for the excerpt
	var before int64 // bytes of the body before the buffer
	for {
		n, err := fill(got, gotBuf[retained:])
		if err != nil {
			return "", err
		}
		m, _ := fill(want, wantBuf[retained:]) // from memory: no error
		g, w := gotBuf[:retained+n], wantBuf[:retained+m]
		for i := retained; i < min(len(g), len(w)); i++ {
			if g[i] != w[i] {
				return fmt.Sprintf("the body differs at byte %d: got %q, want %q",
					before+int64(i)+1,
					excerpt(g, i), excerpt(w, i)), nil
			}
		}
		switch {
		case n < m:
			return fmt.Sprintf("the body ends after %d bytes, want %d bytes", before+int64(len(g)),
				length), nil
		case n > m:
			return fmt.Sprintf("the body continues after byte %d, where it should end, with %q",
				length,
				g[len(w):min(len(g), len(w)+excerptBytes)]), nil
		case retained+n < step:
			return "", nil
		}
		retained = copy(gotBuf, g[len(g)-excerptBytes:])
		copy(wantBuf, w[len(w)-excerptBytes:])
		before += int64(len(g) - retained)
	}
}

// fill reads until the buffer is full or the reader ends, without an error at the end. io.ReadFull
// would return io.ErrUnexpectedEOF there, as does a body that its connection cut short.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = r.Read(buf[n:])
		n += more
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// excerpt returns the word around a byte, limited to excerptBytes on each side.
func excerpt(text []byte, pos int) []byte {
	from := max(0, pos-excerptBytes)
	if space := bytes.LastIndexByte(text[from:pos], ' '); space >= 0 {
		from += space + 1
	}
	to := min(len(text), pos+excerptBytes)
	if space := bytes.IndexByte(text[pos:to], ' '); space > 0 {
		to = pos + space
	}
	return text[from:to]
}

// alike returns what is wrong with two bodies that should be random and independent; empty:
// nothing. Random characters of an alphabet of 62 agree at 1 of 62 positions; a stored body with a
// counter agrees at nearly all.
func alike(a, b []byte) string {
	if bytes.Equal(a, b) {
		return "two responses have the same body, want a new random body for each request"
	}
	same := 0
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			same++
		}
	}
	if same*2 > min(len(a), len(b)) {
		return fmt.Sprintf("two bodies have %d of %d equal bytes, want a new random body for "+
			"each request", same,
			len(b))
	}
	return ""
}

func timeDifference(c goldenCase, elapsed time.Duration) string {
	switch {
	case c.TookMin > 0 && elapsed < c.TookMin:
		return fmt.Sprintf("the response took %v, want at least %v", elapsed, c.TookMin)
	case c.TookMax > 0 && elapsed > c.TookMax:
		return fmt.Sprintf("the response took %v, want at most %v", elapsed, c.TookMax)
	}
	return ""
}
