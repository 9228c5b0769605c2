package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// reference parses a text with net/http: the response after any interim ones, its body, and the
// rest.
func reference(text string) (a answer, good bool) {
	in := bufio.NewReader(strings.NewReader(text))
	for {
		res, err := http.ReadResponse(in, &http.Request{Method: http.MethodGet})
		if err != nil {
			return answer{}, false
		}
		if res.StatusCode >= 100 && res.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return answer{}, false
		}
		rest, err := io.ReadAll(in)
		if err != nil {
			return answer{}, false
		}
		return answer{status: res.StatusCode, close: res.Close, body: string(body),
			rest: string(rest)}, true
	}
}

// bareLF reports a LF without CR before it, which net/http accepts as the end of a line.
func bareLF(text string) bool {
	return strings.Count(text, "\n") != strings.Count(text, "\r\n")
}

// FuzzNext tests three properties for any text: cutting it changes nothing; if both this reader and
// net/http accept a response, it is the same; and this reader does not wait for more if net/http
// finds the response complete (except for bare LFs). Either may be stricter.
func FuzzNext(f *testing.F) {
	const chunked = ok + "Transfer-Encoding: chunked\r\n"
	for _, seed := range []string{
		"", "HTTP/1.1 200 OK\r\n\r\n", ok + "Content-Length: 5\r\n\r\nhello",
		ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello and more",
		ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		ok + "Content-Length: 0\r\nConnection: close\r\n\r\n" + ok,
		ok + "Content-Length : 5\r\n\r\nhello", ok + "Content-Length: 5, 5\r\n\r\nhello",
		chunked + "\r\n5\r\nhello\r\n0\r\n\r\n" + ok,
		chunked + "\r\n5;a=b\r\nhello\r\n1 \r\n!\r\n0\r\nX: y\r\n\r\nrest",
		chunked + "Content-Length: 3\r\n\r\n1F\r\n0123456789012345678901234567890\r\n0\r\n\r\n",
		chunked + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
		chunked + "\r\n5\nhello\n0\n\n", chunked + "\r\n0000000000000000000\r\n\r\n",
		ok + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		ok + "Set-Cookie: a\r\n b\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", ok + "Content-Length: x\r\nA: b\n\r\n\r\n",
		ok + "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 304 x\r\nConnection: Keep-Alive, Close\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nok",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + ok +
			"Content-Length: 2\r\n\r\nok",
		"HTTP/1.1 204 None\r\nContent-Length: 9\r\n\r\nrest", "HTTP/1.1 304 Same\r\n\r\n",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\nok\r\n\r\n", "HTTP/1.1 200\r\n\r\n",
		"HTTP/1.2 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 099 x\r\n\r\n",
		"\x16\x03\x01\x00\x05hello\r\n\r\n",
		ok + "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 2\r\n\r\nok" + ok +
			"Date: Sun, 06 Nov 1994 08:49:38 GMT\r\nContent-Length: 2\r\n\r\nok",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		text := string(data)
		var r Response
		whole := read(t, &r, text)
		var pieces []string
		for c := max(cut&0xff, 1); len(text) > c; text = text[c:] {
			pieces = append(pieces, text[:c])
		}
		r.Reset()
		if got := read(t, &r, append(pieces, text)...); got != whole {
			t.Fatalf("cut into pieces of %d: %+v, whole %+v", max(cut&0xff, 1), got, whole)
		}
		var c Cache // a second reading can come from the cache and must be the same
		r.Use(&c)
		for range 2 {
			r.Reset()
			if got := read(t, &r, string(data)); got != whole {
				t.Fatalf("from memory: %+v, read %+v", got, whole)
			}
		}
		want, good := reference(string(data))
		if !good || whole.err != nil {
			return
		}
		if !whole.done && !whole.eof {
			if bareLF(string(data)) {
				return
			}
			t.Fatalf("waits for more; net/http reads %+v", want)
		}
		want.done, want.eof = whole.done, whole.eof
		if want != whole {
			t.Fatalf("read %+v; net/http %+v", whole, want)
		}
	})
}

// The body that Next returns is a part of its input: nothing is copied.
func TestBodiesAreNotCopied(t *testing.T) {
	text := []byte(ok + "Content-Length: 5\r\n\r\nhello")
	var r Response
	n, _, _, err := r.Next(text)
	if err != nil {
		t.Fatal(err)
	}
	_, body, done, err := r.Next(text[n:])
	if err != nil || !done || &body[0] != &text[n] || !bytes.Equal(body, text[n:]) {
		t.Errorf("body %q, done %v, error %v", body, done, err)
	}
}
