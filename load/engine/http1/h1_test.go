package http1

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// answer is a reader's result for a text.
type answer struct {
	status int
	close  bool
	body   string
	rest   string // the part of the text that it did not consume
	done   bool   // whole
	eof    bool   // complete if the server closes now
	err    error
}

// read feeds the pieces to r as a connection would and checks every guarantee of Next.
func read(t testing.TB, r *Response, pieces ...string) (a answer) {
	t.Helper()
	var body strings.Builder
	for k, piece := range pieces {
		b := []byte(piece)
		for len(b) > 0 && !a.done && a.err == nil {
			n, part, done, err := r.Next(b)
			if n < 0 || n > len(b) || len(part) > n || n == 0 && !done && err == nil {
				t.Fatalf("Next(%q) took %d bytes, %d of body, done %v, error %v", b, n, len(part),
					done, err)
			}
			body.Write(part)
			a.done, a.err = done, err
			b = b[n:]
		}
		if a.err != nil {
			return answer{err: a.err}
		}
		if a.done {
			a.rest = string(b) + strings.Join(pieces[k+1:], "")
			break
		}
	}
	a.eof = !a.done && r.EOF()
	if a.done || a.eof {
		a.status, a.close, a.body = r.Status, r.Close, body.String()
		if r.Bytes != int64(body.Len()) {
			t.Fatalf("Bytes is %d, the body has %d", r.Bytes, body.Len())
		}
	}
	return a
}

// check reads the text in one piece, cut in two at every byte, and byte by byte: the result must be
// the same. It uses one reader for all, which also tests Reset.
func check(t *testing.T, text string, want answer) {
	t.Helper()
	var r Response
	name := text[:min(len(text), 200)]
	hold := func(how string, pieces ...string) {
		t.Helper()
		r.Reset()
		got := read(t, &r, pieces...)
		if got.err != want.err || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Fatalf("%q %s:\n got %+v\nwant %+v", name, how, got, want)
		}
	}
	hold("whole", text)
	for i := 1; i < len(text); i++ {
		hold(fmt.Sprintf("cut at %d", i), text[:i], text[i:])
	}
	hold("byte by byte", strings.Split(text, "")...)
}

const ok = "HTTP/1.1 200 OK\r\n"

func TestFramings(t *testing.T) {
	keep := answer{status: 200, body: "hello", done: true}
	closing := answer{status: 200, body: "hello", done: true, close: true}
	untilClose := answer{status: 200, body: "hello", eof: true, close: true}
	empty := answer{status: 200, done: true}

	// A length.
	check(t, ok+"Content-Length: 5\r\n\r\nhello", keep)
	check(t, ok+"content-LENGTH:5\r\n\r\nhello", keep)
	check(t, ok+"Content-Length: \t 5 \t\r\n\r\nhello", keep)
	check(t, ok+"Content-Length: 0005\r\n\r\nhello", keep)
	check(t, ok+"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", keep) // the same twice: §6.3
	check(t, ok+"X-Content-Length: 9\r\nContent-Length: 5\r\nContent-Lengths: 9\r\n\r\nhello", keep)
	check(t, ok+"Server: a\r\nDate: b\r\nA: b\r\nContent-Length: 5\r\nX: y\r\n\r\nhello", keep)
	check(t, ok+"Content-Length: 0\r\n\r\n", empty)
	check(t, "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", empty)  // no reason, no space
	check(t, "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", empty) // no reason

	// Chunks.
	chunked := ok + "Transfer-Encoding: chunked\r\n\r\n"
	check(t, chunked+"5\r\nhello\r\n0\r\n\r\n", keep)
	check(t, chunked+"1\r\nh\r\n004\r\nello\r\n000\r\n\r\n", keep)
	check(t, chunked+strings.Repeat("0", 30)+"5\r\nhello\r\n"+strings.Repeat("0", 30)+"\r\n\r\n",
		keep) // any number of zeros may lead a size (§7.1)
	check(t, chunked+"0\r\n\r\n", empty)
	check(t, chunked+"5;a=b\r\nhello\r\n0;c=\"d;e\"\r\n\r\n", keep)
	// White space that §7.1.1 requires to be tolerated.
	check(t, chunked+"5 \t;a\r\nhello\r\n0 \r\n\r\n", keep)
	check(t, chunked+"5\r\nhello\r\n0\r\nX: y\r\nLong-Trailer: z\r\n\r\n", keep)
	check(t, chunked+"5\r\nhello\r\n0\r\n\r\nHTTP", answer{status: 200, body: "hello", done: true,
		rest: "HTTP"})
	check(t, chunked+"1A\r\n"+strings.Repeat("x", 26)+"\r\n0\r\n\r\n",
		answer{status: 200, body: strings.Repeat("x", 26), done: true})
	check(t, chunked+"1a\r\n"+strings.Repeat("x", 26)+"\r\n0\r\n\r\n",
		answer{status: 200, body: strings.Repeat("x", 26), done: true})

	// Until the server closes.
	check(t, ok+"\r\nhello", untilClose)
	check(t, ok+"Server: x\r\n\r\nhello", untilClose)
	check(t, ok+"Connection: keep-alive\r\n\r\nhello", untilClose)

	// RFC 9112 §6.3: Transfer-Encoding wins over Content-Length, and a coding that does not end in
	// chunked ends with the connection.
	check(t, ok+"Transfer-Encoding: Chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		keep)
	check(t, ok+"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		keep)
	check(t, ok+"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", keep)
	check(t, ok+"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"5\r\nhello\r\n0\r\n\r\n", keep)
	check(t, ok+"Transfer-Encoding: gzip\r\nContent-Length: 2\r\n\r\nhello", untilClose)
	check(t, ok+"Transfer-Encoding: chunked, gzip\r\nContent-Length: 2\r\n\r\nhello", untilClose)

	// Who closes: §9.3 and §9.6.
	check(t, ok+"Connection: close\r\nContent-Length: 5\r\n\r\nhello", closing)
	check(t, ok+"Content-Length: 5\r\nCONNECTION:CLOSE\r\n\r\nhello", closing)
	check(t, ok+"Connection: TE ,\tclose\r\nContent-Length: 5\r\n\r\nhello", closing)
	check(t, ok+"Connection: close\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
		closing)
	check(t, ok+"Connection: keep-alive, close\r\nContent-Length: 5\r\n\r\nhello", closing)
	check(t, ok+"Connection: closed\r\nContent-Length: 5\r\n\r\nhello", keep)
	check(t, ok+"Connection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", keep)
	check(t, "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", closing)
	check(t, "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", keep)
}

// Responses that have no body whatever their head says, and interim responses.
func TestStatusDecides(t *testing.T) {
	check(t, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHTTP/",
		answer{status: 204, done: true, rest: "HTTP/"})
	check(t, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", answer{status: 304,
		done: true})
	check(t, "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
		answer{status: 304, done: true})
	check(t, "HTTP/1.1 100 Continue\r\n\r\n"+ok+"Content-Length: 2\r\n\r\nok",
		answer{status: 200, body: "ok", done: true})
	check(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n"+
		"Connection: close\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"+
		"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nok",
		answer{status: 500, body: "ok", done: true})
	check(t, "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno",
		answer{status: 404, body: "no", done: true})
	check(t, "HTTP/1.1 999 ?\r\nContent-Length: 0\r\n\r\n", answer{status: 999, done: true})
}

// Incomplete input causes no error and no response, and a close now would be premature.
func TestUnfinished(t *testing.T) {
	for _, text := range []string{
		"", "H", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r",
		ok + "Content-Length: 5\r\n\r\nhell",
		ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n",
	} {
		check(t, text, answer{})
	}
}

func TestMalformed(t *testing.T) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\n\r\n", "\r\n\r\n", "hello there\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
		"HTTP/1.x 200 OK\r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n",
		"HTTP/1.1200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
		"HTTP/1.1 +20 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
		"HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 000 OK\r\n\r\n", "HTTP/1.1 200\r OK\r\n\r\n",
		" HTTP/1.1 200 OK\r\n\r\n",
		// A folded line that would change the framing (§5.2).
		ok + "Transfer-Encoding:\r\n chunked\r\n\r\n",
		ok + "Content-Length: 1\r\n\t2\r\n\r\n",
	} {
		check(t, text, answer{err: ErrHead})
	}
	// A name and its colon belong together (§5.1). Without this length, the body would be endless.
	for _, text := range []string{
		ok + "Content-Length : 5\r\n\r\nhello",
		ok + "content-length\t: 5\r\n\r\nhello",
		ok + "Content-Length 5\r\n\r\nhello",
		ok + "Content-Length\r\n\r\nhello",
		ok + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		ok + "Connection : close\r\nContent-Length: 0\r\n\r\n",
	} {
		check(t, text, answer{err: ErrColon})
	}
	check(t, ok+"Content-Length-Hint : 7\r\nContent-Length: 2\r\n\r\nok",
		answer{status: 200, body: "ok", done: true})
	// A fold elsewhere does not matter.
	check(t, ok+"Set-Cookie: a\r\n Content-Length: 7\r\nContent-Length: 2\r\n\r\nok",
		answer{status: 200, body: "ok", done: true})
}

// A head that cannot be valid is an error before its end, which may never come. A bare LF is one
// (§2.2 permits to refuse it), because line ends decide where the response ends.
func TestFlawsEndTheReading(t *testing.T) {
	testsets.Whole(t, "every cut of responses")
	for text, want := range map[string]error{
		"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello\r\n\r\n": ErrBareLF,
		"HTTP/1.1 200 OK\nContent-Length: 2\n\nok":            ErrBareLF,
		"HTTP/1.1 200 OK\n":                                   ErrBareLF,
		ok + "X: y\nContent-Length: 5\r\n\r\n":                ErrBareLF,
		ok + "Content-Length: 2\n":                            ErrBareLF,
		ok + "Content-Length: x\r\nA: b\n\r\n\r\n":            ErrBareLF,
		ok + "Content-Length: 2\r\n\n":                        ErrBareLF,
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\n":   ErrBareLF,
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":            ErrSwitch,
		"HTTP/1.1 2x0 OK\n":                                   ErrBareLF,
		"ok":                                                  ErrHead,
		"hello":                                               ErrHead,
		"HTTP/2":                                              ErrHead,
		"\n":                                                  ErrHead,
		"SSH-2.0-OpenSSH_9.2\r\n":                             ErrHead,
		"\x15\x03\x01\x00\x02":                                ErrHead, // a TLS alert
		ok + "X: " + strings.Repeat("x", MaxHead) + "\n":      ErrLarge,
		ok + "X: y\n" + strings.Repeat("x", MaxHead):          ErrBareLF,
	} {
		check(t, text, answer{err: want})
	}
	// The end of a head can still come.
	for _, text := range []string{"H", "HTTP/1.", ok, ok + "A: b\r", "HTTP/1.1 200 OK\r"} {
		check(t, text, answer{})
	}
	// identity is no coding, so the length counts.
	check(t, ok+"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
		answer{status: 200, body: "ok", done: true})
}

func TestMalformedLengths(t *testing.T) {
	for _, length := range []string{
		"", "-1", "+5", "5x", "0x5", "5 5", "5, 5", "5,6", "5.0", "½", "1234567890123456789",
		"99999999999999999999",
	} {
		check(t, ok+"Content-Length: "+length+"\r\n\r\nhello", answer{err: ErrLength})
	}
	check(t, ok+"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", answer{err: ErrLength})
	check(t, ok+"Content-Length: 6\r\nX: y\r\ncontent-length: 5\r\n\r\nhello",
		answer{err: ErrLength})
	// §6.1: with HTTP/1.0 a Transfer-Encoding makes the framing faulty.
	check(t, "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		answer{err: ErrCoding})
}

func TestMalformedChunks(t *testing.T) {
	for _, body := range []string{
		"\r\n", "x\r\n", "-1\r\nx", "+5\r\n", " 5\r\nhello", ";a\r\n", "0x5\r\nhello",
		"5 6\r\nhello",
		"5\rx", "5\r5\r\nhello", // a CR is followed by LF
		"5\nhello", "5;a\nhello", // a LF is preceded by CR
		"5\r\nhello0\r\n\r\n",      // no line end after the chunk
		"5\r\nhelloo\r\n0\r\n\r\n", // longer than announced
		"5\r\nhello\n0\r\n\r\n", "5\r\nhello\r\r\n0\r\n\r\n", "5\r\nhello\rx",
		"0\r\n\n", "0\r\nX: y\n\r\n", "0\r\nX: y\rz", "0\r\n\rx",
		"1000000000000000\r\n", "fffffffffffffffff\r\n", // 2⁶⁰ and more
	} {
		check(t, ok+"Transfer-Encoding: chunked\r\n\r\n"+body, answer{err: ErrChunk})
	}
}

// A head of MaxHead bytes is accepted, one more byte is not, for any cuts.
func TestHugeHeads(t *testing.T) {
	rest := ok + "Content-Length: 2\r\nX: "
	head := func(size int) string {
		return rest + strings.Repeat("x", size-len(rest)-4) + "\r\n\r\n"
	}
	sizes := func(text string, want answer) {
		t.Helper()
		var r Response
		for _, at := range []int{0, 1, 100, 4096, MaxHead - 5, MaxHead - 1, MaxHead, MaxHead + 1} {
			r.Reset()
			cut := min(at, len(text))
			if got := read(t, &r, text[:cut], text[cut:]); got != want {
				t.Errorf("head of %d bytes cut at %d: %+v, want %+v", len(text)-2, at, got, want)
			}
		}
	}
	sizes(head(MaxHead)+"ok", answer{status: 200, body: "ok", done: true})
	sizes(head(MaxHead+1)+"ok", answer{err: ErrLarge})
	sizes(head(10*MaxHead)+"ok", answer{err: ErrLarge})
	sizes(ok+strings.Repeat("x", 2*MaxHead), answer{err: ErrLarge}) // no end in sight
	// Trailers and chunk extensions have the same bound.
	chunked := ok + "Transfer-Encoding: chunked\r\n\r\n"
	sizes(chunked+"0\r\nX: "+strings.Repeat("y", MaxHead)+"\r\n\r\n", answer{err: ErrLarge})
	sizes(chunked+"0\r\n"+strings.Repeat("X: y\r\n", MaxHead), answer{err: ErrLarge})
	sizes(chunked+"1;"+strings.Repeat("y", MaxHead+1)+"\r\nx\r\n0\r\n\r\n", answer{err: ErrLarge})
	sizes(chunked+strings.Repeat("0", MaxHead+1)+"\r\n\r\n", answer{err: ErrChunk})
	one := "1;" + strings.Repeat("y", 1000) + "\r\nx\r\n" // the bound is per line, not for all
	sizes(chunked+strings.Repeat(one, 40)+"0\r\n\r\n",
		answer{status: 200, body: strings.Repeat("x", 40), done: true})
}

// Bytes after a response belong to the next one.
func TestPipelined(t *testing.T) {
	text := ok + "Content-Length: 2\r\n\r\nab" + ok +
		"Transfer-Encoding: chunked\r\n\r\n2\r\ncd\r\n0\r\n\r\n" +
		"HTTP/1.1 204 None\r\n\r\n" + ok + "\r\nef"
	var r Response
	for _, want := range []string{"ab", "cd", "", "ef"} {
		r.Reset()
		a := read(t, &r, text)
		if a.err != nil || a.body != want || !a.done && !a.eof {
			t.Fatalf("%+v, want body %q", a, want)
		}
		text = a.rest
	}
	if text != "" {
		t.Errorf("%q is left", text)
	}
}

// Errors are sentences for the record's example.
func TestErrorsHaveWords(t *testing.T) {
	for _, err := range []error{ErrHead, ErrBareLF, ErrLarge, ErrChunk, ErrLength, ErrColon,
		ErrCoding} {
		if len(strings.Fields(err.Error())) < 4 || !errors.Is(err, err) {
			t.Errorf("%q says too little", err)
		}
	}
}

// Complete heads cause no allocations; split ones only the first time, for the buffer that the
// connection keeps.
func TestReadingDoesNotAllocate(t *testing.T) {
	run := func(name string, pieces ...string) {
		t.Helper()
		var r Response
		var b [][]byte
		for _, p := range pieces {
			b = append(b, []byte(p))
		}
		once := func() {
			r.Reset()
			for _, p := range b {
				for len(p) > 0 {
					n, _, done, err := r.Next(p)
					if err != nil || done {
						break
					}
					p = p[n:]
				}
			}
		}
		once()
		if n := testing.AllocsPerRun(1000, once); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
	const length = ok + "Server: x\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"
	const chunked = ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	run("length", length)
	run("chunks", chunked)
	run("until close", ok+"\r\nhello")
	run("split length", length[:30], length[30:])
	run("split chunks", strings.Split(chunked, "")...)
}

func BenchmarkNext(b *testing.B) {
	var r Response
	text := []byte(ok + "Server: x\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n" +
		"Content-Type: text/plain\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello")
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		for p := text; ; {
			n, _, done, err := r.Next(p)
			if err != nil {
				b.Fatal(err)
			}
			if done {
				break
			}
			p = p[n:]
		}
	}
}
