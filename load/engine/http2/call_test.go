package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const ask = "POST /a.B/C HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nask"

// A call has the fields of gRPC and of the user; the message follows with its length.
func TestCallRequest(t *testing.T) {
	check := func(timeout time.Duration, text, want string) {
		t.Helper()
		h := NewCalls(nil, 1, 1, true, timeout).heads
		k, err := h.of([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		fields, err := hpack.NewDecoder(0, nil).DecodeFull(k.block)
		var got []string
		for _, f := range fields {
			got = append(got, f.Name+"="+f.Value)
		}
		if s := strings.Join(got, " "); s != want || err != nil {
			t.Errorf("%q became %q, %v; want %q", text, s, err, want)
		}
	}
	const first = ":method=POST :scheme=https :path=/a.B/C :authority=h content-type=" +
		"application/grpc te=trailers"
	check(0, "GET /a.B/C HTTP/1.1\r\nHost: h\r\n\r\n", first)
	check(5*time.Second, "POST /a.B/C HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nX-A: b"+
		"\r\nConnection: close\r\nTE: x\r\ngRPC-Timeout: 1n\r\nX-Bin: h\xffllo\r\n"+
		"Authorization: c\r\nContent-Length: 7\r\n\r\nmessage",
		first+" grpc-timeout=5000000u x-a=b x-bin=aP9sbG8 authorization=c")
	for d, want := range map[time.Duration]string{1: "1n", 99_999_999: "99999999n",
		100_000_001: "100001u", 100 * time.Second: "100000m", 30 * time.Hour: "108000S",
		1 << 62: "99999999S"} {
		if got := wait(d); got != want {
			t.Errorf("%v is told as %s, want %s", d, got, want)
		}
	}
	b := newCalls(t, 1, 1)
	b.open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 2})
	b.Send(0, []byte(ask))
	b.heard(0, "HEADERS 1", "DATA 1 2") // of the prefix
	b.must(b.wires[0].WriteWindowUpdate(1, 4))
	b.hear(0)
	b.wait()
	f, err := b.wires[0].ReadFrame()
	b.must(err)
	if got := f.(*http2.DataFrame).Data(); string(got) != "\x00\x00\x03a" {
		t.Errorf("the message goes on with %q", got)
	}
	b.must(b.wires[0].WriteWindowUpdate(1, 4))
	b.hear(0)
	b.heard(0, "DATA 1 2 end")
	b = newCalls(t, 1, 1)
	b.open()
	b.Send(0, []byte("POST /a.B/C HTTP/1.1\r\nHost: h\r\n\r\n")) // an empty message
	b.heard(0, "HEADERS 1", "DATA 1 5 end")
}

// say makes a call on a new bench with a response, and compares what the Handler and the server
// receive.
func say(t *testing.T, want, heard string, answer func(b *bench, w *wire)) {
	t.Helper()
	b := newCalls(t, 2, 2)
	b.open()
	b.Send(0, []byte(ask))
	b.heard(0, "HEADERS 1", "DATA 1 8 end")
	answer(b, &b.wires[0])
	b.hear(0)
	if len(b.told[0].closed) > 0 || !strings.HasSuffix(b.told[0].got, want) {
		t.Errorf("%+v, want %q", b.told[0], want)
	}
	var frames []string
	if heard != "" {
		frames = []string{heard}
	}
	b.heard(0, frames...)
	b.Send(0, []byte(ask)) // the stream has ended, the connection has not
	b.told[0].got = ""
	b.heard(0, "HEADERS 3", "DATA 3 8 end")
	b.answer(0, 3, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "9")
	b.hear(0)
	b.expect(0, "HTTP/1.1 609 \r\nContent-Length: 0\r\n\r\n")
}

func (b *bench) callHead(pairs ...string) {
	b.t.Helper()
	b.answer(0, 1, false, append([]string{":status", "200", "content-type", "application/grpc"},
		pairs...)...)
}

// The result of a call is the text of a response, and the stream ends correctly. The library
// determines codes; see TestCallsAsTheLibrary.
func TestCallAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
	hello := []byte("\x00\x00\x00\x00\x05hello")
	say(t, ok, "", func(b *bench, w *wire) {
		b.callHead()
		b.must(w.WriteData(1, false, hello))
		b.answer(0, 1, true, "grpc-status", "0", "grpc-message", "")
	})
	say(t, ok, "", func(b *bench, w *wire) {
		b.callHead()
		for k := range hello {
			b.must(w.WriteDataPadded(1, false, hello[k:k+1], make([]byte, k)))
		}
		b.hear(0)
		if b.told[0].got != "" {
			t.Error("a message is told before its status")
		}
		b.answer(0, 1, true, "grpc-status", "0")
	})
	say(t, "HTTP/1.1 605 \r\nContent-Length: 9\r\n\r\nnot here\n", "", func(b *bench, _ *wire) {
		b.answer(0, 1, true, ":status", "200", "content-type", "application/grpc", "grpc-status",
			"5", "grpc-message", "not%20here%0a")
	})
	say(t, "601 \r\nContent-Length: 46\r\n\r\ngRPC: the server has reset the stream (CANCEL)",
		"", func(b *bench, w *wire) { b.must(w.WriteRSTStream(1, http2.ErrCodeCancel)) })
	say(t, "gRPC: the answer is none of gRPC, HTTP status 503: busy", "", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "503", "content-type", "text/plain")
		b.must(w.WriteData(1, true, []byte("busy")))
	})
	say(t, strings.Repeat("x", foreignMax), "RST_STREAM 1 CANCEL", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "200")
		b.must(w.WriteData(1, false, bytes.Repeat([]byte("x"), 2000)))
	})
	say(t, "compression was not requested", "RST_STREAM 1 CANCEL", func(b *bench, w *wire) {
		b.callHead("grpc-encoding", "gzip")
		b.must(w.WriteData(1, false, []byte("\x01\x00\x00\x00\x01x")))
	})
	say(t, "has no trailers", "", func(b *bench, w *wire) {
		b.callHead()
		b.must(w.WriteData(1, true, hello))
	})
	say(t, "a field connection, which HTTP/2 does not have (PROTOCOL_ERROR)",
		"RST_STREAM 1 PROTOCOL_ERROR", func(b *bench, _ *wire) { b.callHead("connection", "x") })
}

// A response that comes before all of the request was sent ends both.
func TestCallEarly(t *testing.T) {
	b := newCalls(t, 1, 1)
	b.open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 6})
	early := func(id uint32, heard ...string) {
		t.Helper()
		b.Send(0, []byte(ask))
		b.heard(0, fmt.Sprint("HEADERS ", id), fmt.Sprint("DATA ", id, " 6"))
		if heard == nil {
			b.must(b.wires[0].WriteRSTStream(id, http2.ErrCodeCancel))
		} else {
			b.answer(0, id, heard[0] != "RST_STREAM 3 PROTOCOL_ERROR", "content-type",
				"application/grpc", "grpc-status", "x")
		}
		b.hear(0)
		b.heard(0, heard...)
		b.told[0].got = ""
	}
	early(1)
	early(3, "RST_STREAM 3 PROTOCOL_ERROR")
	early(5, "RST_STREAM 5 PROTOCOL_ERROR")
}

// A server that sends GOAWAY answers accepted requests, and the response announces the end of the
// connection; requests that it has not accepted are lost, without a status of the server.
func TestCallGoAway(t *testing.T) {
	b := newCalls(t, 3, 3)
	b.open()
	for i := range 3 {
		b.Send(i, []byte(ask))
	}
	b.must(b.wires[0].WriteGoAway(3, http2.ErrCodeNo, nil))
	b.callHead()
	b.must(b.wires[0].WriteData(1, false, []byte("\x00\x00\x00\x00\x02ok")))
	b.answer(0, 1, true, "grpc-status", "0")
	b.answer(0, 3, true, ":status", "200", "content-type", "application/grpc", "grpc-status", "1")
	b.hear(0)
	b.expect(0, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	b.expect(1, "HTTP/1.1 601 \r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	b.expect(2, "", "before it took the request (NO_ERROR)")
	if b.wires[0].open || b.told[2].again != 1 {
		t.Errorf("the connection stays open (%v), or %+v", b.wires[0].open, b.told[2])
	}
}

// A refused call may be repeated once; the next consecutive refusal is its status, and after that
// the count begins again.
func TestCallRefused(t *testing.T) {
	b := newCalls(t, 1, 1)
	b.open()
	b.onClosed = func(i int) { b.Open(i) }
	id := uint32(1)
	refuse := func(want string) {
		t.Helper()
		b.Send(0, []byte(ask))
		b.wait()
		b.must(b.wires[0].WriteRSTStream(id, http2.ErrCodeRefusedStream))
		b.hear(0)
		b.wait() // which opens the lane again
		id += 2
		if got := fmt.Sprint(b.told[0].again, " ", b.told[0].got); !strings.HasPrefix(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
		b.told[0].got = ""
	}
	refuse("1 ")
	refuse("1 HTTP/1.1 614 ")
	refuse("2 ")
	b.Close(0) // the load gives the call up
	b.told[0].again, id = 0, 1
	b.Open(0)
	b.greet(0)
	refuse("1 ")
}

// Servers that never end a call get a reset, and the bytes held of their responses are bounded.
func TestCallFloods(t *testing.T) {
	check := func(want string, act func(b *bench, w *wire)) {
		t.Helper()
		b := newCalls(t, 1, 1)
		b.callMax = 100_000
		b.open()
		b.Send(0, []byte(ask))
		b.heard(0, "HEADERS 1", "DATA 1 8 end")
		b.callHead()
		for n := 0; n < 30_000 && b.told[0].got == "" && b.wires[0].open; n++ {
			act(b, &b.wires[0])
			b.hear(0)
		}
		if got := fmt.Sprint(b.told[0]); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if n := cap(b.lanes[0].retained) + cap(b.text); n > 3*b.callMax/2 {
			t.Errorf("%s: %d bytes are held", want, n)
		}
	}
	check("a message of 4294967295 bytes came, and 100000 are the most",
		func(b *bench, w *wire) { b.must(w.WriteData(1, false, []byte("\x00\xff\xff\xff\xff"))) })
	check("two messages", func(b *bench, w *wire) {
		b.must(w.WriteData(1, false, make([]byte, 5)))
	})
	pieces := 0
	check("two messages", func(b *bench, w *wire) { // the second of which is not kept
		if pieces++; pieces%10 == 1 {
			b.must(w.WriteData(1, false, []byte("\x00\x00\x01\x86\xa0")))
		}
		b.must(w.WriteData(1, false, make([]byte, 10_000)))
	})
	check("bring nothing", func(b *bench, w *wire) { b.must(w.WriteData(1, false, nil)) })
	check("within the response", func(b *bench, _ *wire) { b.callHead() })
}

func TestCallMax(t *testing.T) {
	for slots, want := range map[int]int{0: callTop, 1: callTop, 4: callTop, 8: 32 << 20,
		64: callMin, 1000: callMin} {
		if got := CallMax(slots); got != want {
			t.Errorf("%d calls may bring %d bytes each, want %d", slots, got, want)
		}
	}
}

// From a call to its response nothing is allocated.
func TestCallsDoNotAllocate(t *testing.T) {
	b := newCalls(t, 1, 1)
	b.open()
	answer := func(id uint32) []byte {
		b.answer(0, id, false, ":status", "200", "content-type", "application/grpc")
		b.must(b.wires[0].WriteData(id, false, []byte("\x00\x00\x00\x00\x05hello")))
		b.answer(0, id, true, "grpc-status", "0", "grpc-message", "")
		defer b.wires[0].out.Reset()
		return bytes.Clone(b.wires[0].out.Bytes())
	}
	request := []byte(ask)
	answers := 0
	h := &counter{n: &answers, want: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}
	id := uint32(1)
	round := func(said []byte) {
		b.Send(0, request)
		if err := b.Wait(0, h); err != nil {
			t.Error(err)
		}
		b.wires[0].sent.Reset()
		for at := 0; at < len(said); at += headSize + int(said[at+2]) {
			said[at+7], said[at+8] = byte(id>>8), byte(id)
		}
		id += 2
		(*ear)(b.Engine).Received(0, 5, said)
	}
	round(answer(1)) // which fills the table
	said := answer(3)
	round(said)
	if n := testing.AllocsPerRun(1000, func() { round(said) }); n != 0 || answers != 1003 {
		t.Errorf("%v allocations a call, %d answers", n, answers)
	}
}
