package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// A request's block has the fields of its text, in the order that HTTP/2 requires, and a repeated
// text gives the same block.
func TestRequest(t *testing.T) {
	h := heads{scheme: placeHTTP}
	check := func(text, want string) {
		t.Helper()
		for range 2 {
			k, err := h.of([]byte(text))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			fields, err := hpack.NewDecoder(0, nil).DecodeFull(k.block)
			var got []string
			for _, f := range fields {
				got = append(got, f.Name+"="+f.Value)
			}
			if s := strings.Join(got, " "); s != want || err != nil {
				t.Errorf("%q became %q, %v; want %q", text, s, err, want)
			}
			if k.plain != strings.HasPrefix(text, "HEAD") || !strings.HasPrefix(text,
				string(k.text)) || !strings.HasSuffix(string(k.text), "\r\n\r\n") {
				t.Errorf("%q is known as %q, bare %v", text, k.text, k.plain)
			}
		}
	}
	check("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		":method=GET :scheme=http :path=/ :authority=a.example")
	check("POST /x?y=1 HTTP/1.1\r\nX-One: 1\r\nContent-Length: 5\r\nHost: h\r\nConnection: close"+
		"\r\nAccept: */*\r\n\r\nhello", ":method=POST :scheme=http :path=/x?y=1 :authority=h "+
		"x-one=1 content-length=5 accept=*/*")
	check("GET / HTTP/1.1\r\nTE: trailers\r\nHost: h\r\n\r\n",
		":method=GET :scheme=http :path=/ :authority=h te=trailers")
	long := strings.Repeat("n", 300)
	check("HEAD /"+long+" HTTP/1.1\r\nHost: h\r\n"+long+": "+long+"\r\nCookie: a=b\r\n\r\n",
		":method=HEAD :scheme=http :path=/"+long+" :authority=h "+long+"="+long+" cookie=a=b")
	for n := 120; n < 400; n++ { // around the limits of one and two bytes for a length
		long := strings.Repeat("n", n)
		check("GET /"+long+" HTTP/1.1\r\nHost: h\r\n\r\n",
			":method=GET :scheme=http :path=/"+long+" :authority=h")
	}
	for _, bad := range []string{"", "GET / HTTP/1.1\r\n", "GET /\r\n\r\n", "\r\n\r\n"} {
		if k, err := h.of([]byte(bad)); err == nil {
			t.Errorf("%q became %q", bad, k.block)
		}
	}
}

// encode encodes a block like servers that use a table.
func encode(to *hpack.Encoder, into *bytes.Buffer, pairs ...string) []byte {
	into.Reset()
	for k := 0; k < len(pairs); k += 2 {
		f := hpack.HeaderField{Name: pairs[k], Value: pairs[k+1],
			Sensitive: strings.HasPrefix(pairs[k], "x-never")}
		if err := to.WriteField(f); err != nil {
			panic("a buffer takes all: " + err.Error())
		}
	}
	return bytes.Clone(into.Bytes())
}

func TestAnswer(t *testing.T) {
	f := newFields(false)
	var into bytes.Buffer
	to := hpack.NewEncoder(&into)
	for k := range 40 {
		date := fmt.Sprintf("date %d", k/9)
		block := encode(to, &into, ":status", "200", "content-length", "5", "date", date,
			"x-never", "1")
		a, err := f.read(block)
		want := "HTTP/1.1 200 \r\ndate: " + date + "\r\nx-never: 1\r\n"
		if err != nil || string(a.text) != want || a.status != 200 || a.length != 5 {
			t.Fatalf("answer %d is %+v, %v", k, a, err)
		}
	}
	same := encode(to, &into, ":status", "200", "date", "date 4")
	if n := testing.AllocsPerRun(100, func() {
		if _, err := f.read(same); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a block that is known", n)
	}
}

// A cached block that refers to the table is dropped when the table has changed.
func TestForgotten(t *testing.T) {
	for _, change := range [][]byte{{0x20, 0x88}, {0x88, 0x40, 1, 'a', 1, 'b'}} {
		f := newFields(false)
		if _, err := f.read([]byte{0x88, 0x40, 1, 'x', 1, 'y'}); err != nil {
			t.Fatal(err)
		}
		place := []byte{0x88, 0x80 | 62} // the table's latest
		for range 2 {
			if a, err := f.read(place); err != nil || !strings.Contains(string(a.text), "x: y") {
				t.Errorf("%+v, %v", a, err)
			}
		}
		if _, err := f.read(change); err != nil {
			t.Fatal(err)
		}
		a, err := f.read(place)
		if err == nil && strings.Contains(string(a.text), "x: y") {
			t.Errorf("after %x the block has its old meaning: %q", change, a.text)
		}
	}
}

// Invalid responses are rejected, and the table stays equal to the peer's: the next block is
// decoded.
func TestMalformed(t *testing.T) {
	f := newFields(false)
	var into bytes.Buffer
	to := hpack.NewEncoder(&into)
	check := func(want string, pairs ...string) {
		t.Helper()
		_, err := f.read(encode(to, &into, pairs...))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pairs, err, want)
		}
		a, err := f.read(encode(to, &into, ":status", "404", pairs[0], "x"))
		if pairs[0] == "x" && (err != nil || string(a.text) != "HTTP/1.1 404 \r\nx: x\r\n") {
			t.Errorf("after %q: %+v, %v", pairs, a, err)
		}
	}
	check("", ":status", "200", "x", "y")
	check("", "x", "trailer")
	check(`status "20"`, ":status", "20")
	check(`status "+20"`, ":status", "+20")
	check(`status "099"`, ":status", "099")
	check(`status "200"`, ":status", "200", ":status", "200")
	check(`status "200"`, "x", "y", ":status", "200")
	check(`":path"`, ":path", "/")
	check(`"Upper"`, "Upper", "x")
	check(`""`, "", "x")
	check("connection", "connection", "close")
	check("transfer-encoding", "transfer-encoding", "chunked")
	check(`the value "a\r\nb: c"`, "x", "a\r\nb: c")
	check("content-length", "content-length", "+5")
	check("content-length", "content-length", "")
	check("content-length", "content-length", "5", "content-length", "6")
	check("", "content-length", "5", "content-length", "5")
	check("more than 32 KiB", "x", strings.Repeat("y", 20000), "y", strings.Repeat("y", 20000))
	if _, err := f.read([]byte{0xff, 0xff, 0xff, 0x7f}); err == nil {
		t.Error("a place beyond the table was read")
	}
	if _, err := f.read([]byte{0x40, 5, 'a'}); err == nil {
		t.Error("a name that is cut short was read")
	}
}

// The cache returns what decoding would: a reader with a cache and one without agree, for any
// blocks.
func FuzzFields(f *testing.F) {
	var into bytes.Buffer
	to := hpack.NewEncoder(&into)
	first := encode(to, &into, ":status", "200", "date", "now", "content-length", "9")
	f.Add(first, encode(to, &into, ":status", "200", "date", "now", "content-length", "9"))
	f.Add(first, encode(to, &into, ":status", "200", "date", "then", "x-never", "y"))
	f.Add([]byte{0x20, 0x88}, []byte{0x88, 0x0f, 0x0d, 0x01, '7'})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		a, b := newFields(false), newFields(false)
		for k, block := range [][]byte{one, two, two, one, two, one, one} {
			got, err := a.read(block)
			for i := range b.known {
				b.known[i].block = nil
			}
			want, other := b.read(block)
			if (err == nil) != (other == nil) {
				t.Fatalf("block %d: %v, want %v", k, err, other)
			}
			if err != nil {
				if err.Error() != other.Error() {
					t.Fatalf("block %d: %v, want %v", k, err, other)
				}
				if code := err.(*fault).code; code == codeCompress {
					return // the table differs from the peer's from now on
				}
				continue
			}
			if got.status != want.status || got.length != want.length ||
				!bytes.Equal(got.text, want.text) {
				t.Fatalf("block %d: %+v, want %+v", k, got, want)
			}
		}
	})
}
