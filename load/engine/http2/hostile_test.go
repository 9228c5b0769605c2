package http2

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"prony.example/load/engine"
	"prony.example/load/engine/http1"
)

// hostile lets a server act until the connection ends, and checks that memory is bounded and that
// both sides get an error with the reason.
func hostile(t *testing.T, name, want string, code http2.ErrCode, act func(b *bench, w *wire)) {
	t.Helper()
	b := newBench(t, 2, 2)
	b.open()
	b.Send(0, []byte(get))
	b.heard(0, "HEADERS 1 end")
	w := &b.wires[0]
	for n := 0; n < 30_000 && w.open; n++ {
		act(b, w)
		b.hear(0)
	}
	if len(b.told[0].closed) != 1 || !strings.Contains(b.told[0].closed[0], want) || w.open ||
		len(b.told[1].closed) != 1 {
		t.Fatalf("%s: %q, %q, want %q", name, b.told[0].closed, b.told[1].closed, want)
	}
	c := &b.conns[0]
	if n := cap(c.out) + cap(c.block) + cap(c.in.part) + cap(b.text); n > 1<<20 {
		t.Errorf("%s: %d bytes are held", name, n)
	}
	all := w.sent.Bytes()
	if w.sent.Len() > 0 && !bytes.HasSuffix(all, appendGoAway(nil, uint32(code))) {
		t.Errorf("%s: the engine's last words are %q, want %v", name, all[max(0, len(all)-20):],
			code)
	}
}

const (
	calm     = http2.ErrCodeEnhanceYourCalm
	protocol = http2.ErrCodeProtocol
)

// Floods of any kind come to an end.
func TestFloods(t *testing.T) {
	check := func(name, want string, code http2.ErrCode, act func(b *bench, w *wire)) {
		t.Helper()
		hostile(t, name, want, code, act)
	}
	check("pings", "bring nothing", calm, func(b *bench, w *wire) {
		b.must(w.WritePing(false, [8]byte{}))
	})
	check("pings that nobody reads", "takes none", calm, func(b *bench, w *wire) {
		b.takes = 0
		b.must(w.WritePing(false, [8]byte{}))
	})
	check("settings that nobody reads", "takes none", calm, func(b *bench, w *wire) {
		b.takes = 0
		b.must(w.WriteSettings())
	})
	check("empty data", "bring nothing", calm, func(b *bench, w *wire) {
		if !b.lanes[0].answered {
			b.answer(0, 1, false, ":status", "200")
		}
		b.must(w.WriteDataPadded(1, false, nil, nil))
	})
	check("interim answers", "bring nothing", calm, func(b *bench, _ *wire) {
		b.answer(0, 1, false, ":status", "103", "link", "x")
	})
	check("resets of what is over", "bring nothing", calm, func(b *bench, w *wire) {
		b.Close(1)
		b.Open(1)
		b.must(w.WriteRawFrame(typePriority, 0, 9, make([]byte, 5)))
	})
	check("fields without end", "more than 64 KiB", calm, func(b *bench, w *wire) {
		if !b.conns[0].in.withinFields() {
			b.must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}))
		}
		b.must(w.WriteContinuation(1, false, bytes.Repeat([]byte{0, 1, 'a', 1, 'b'}, 3000)))
	})
	check("fields that go on with nothing", "bring nothing", calm, func(b *bench, w *wire) {
		if !b.conns[0].in.withinFields() {
			b.must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}))
		}
		b.must(w.WriteContinuation(1, false, nil))
	})
	check("a bomb of fields", "more than 32 KiB", calm, func(b *bench, w *wire) {
		w.fields.Reset()
		for range 9000 { // each is a byte that expands to 4000
			b.must(w.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 4000)}))
		}
		b.must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true,
			BlockFragment: w.fields.Bytes()}))
	})
}

// Input that no server may send ends the connection.
func TestForbidden(t *testing.T) {
	check := func(name, want string, code http2.ErrCode, act func(b *bench, w *wire)) {
		t.Helper()
		hostile(t, name, want, code, act)
	}
	check("fields that are none", "cannot be read", http2.ErrCodeCompression,
		func(b *bench, w *wire) {
			b.must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true,
				BlockFragment: []byte{0xff, 0xff}}))
		})
	check("a push", "pushes", protocol, func(b *bench, w *wire) {
		b.must(w.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2,
			EndHeaders: true}))
	})
	check("a wish to push", "may push", protocol, func(b *bench, w *wire) {
		b.must(w.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 1}))
	})
	check("a stream of its own", "stream 2", protocol, func(b *bench, _ *wire) {
		b.answer(0, 2, true, ":status", "200")
	})
	check("a stream that is to come", "stream 7", protocol, func(b *bench, w *wire) {
		b.must(w.WriteRSTStream(7, 0))
	})
	check("a window beyond all bounds", "window is", http2.ErrCodeFlowControl,
		func(b *bench, w *wire) { b.must(w.WriteWindowUpdate(0, windowMax)) })
	check("a stream's window beyond all bounds", "window of stream 1", http2.ErrCodeFlowControl,
		func(b *bench, w *wire) { b.must(w.WriteWindowUpdate(1, windowMax)) })
	check("a window of nothing", "0 more", http2.ErrCodeFlowControl, func(b *bench, w *wire) {
		b.must(w.WriteWindowUpdate(1, 0))
	})
	check("windows beyond all bounds", "have a window of", http2.ErrCodeFlowControl,
		func(b *bench, w *wire) {
			b.must(w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31}))
		})
	check("small frames", "takes frames of", protocol, func(b *bench, w *wire) {
		b.must(w.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 100}))
	})
}

// withinFields reports whether fields continue in the next frame.
func (r *reader) withinFields() bool { return r.pending != 0 }

// A server with a smaller table is informed that this side's table is empty, once.
func TestTable(t *testing.T) {
	b := newBench(t, 1, 1)
	b.open(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	for turn := range 2 {
		b.Send(0, []byte(get))
		b.wait()
		f, err := b.wires[0].ReadFrame()
		b.must(err)
		block := f.(*http2.HeadersFrame).HeaderBlockFragment()
		if update := block[0] == 0x20; update != (turn == 0) {
			t.Errorf("turn %d: %x", turn, block)
		}
		b.answer(0, uint32(2*turn+1), true, ":status", "200")
		b.hear(0)
	}
}

// A slow stream is distinguished from all that begin and end meanwhile.
func TestLongStream(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.Send(0, []byte(get))
	b.wait()
	for n := range 40 {
		b.Send(1, []byte(get))
		b.wait()
		b.answer(0, b.lanes[1].id, true, ":status", "200")
		b.hear(0)
		if b.told[0].got != "" || len(b.told[1].got) != (n+1)*len("HTTP/1.1 200 \r\n"+
			"content-length: 0\r\n\r\n") {
			t.Fatalf("turn %d: %+v", n, b.told)
		}
	}
	b.answer(0, 1, true, ":status", "201")
	b.hear(0)
	b.expect(0, "HTTP/1.1 201 \r\ncontent-length: 0\r\n\r\n")
}

// A slot that is closed before it is open leaves no connection.
func TestCloseEarly(t *testing.T) {
	b := newBench(t, 2, 2)
	b.Open(0)
	b.Open(1)
	b.Close(0)
	if !b.wires[0].open {
		t.Error("the other's connection has ended")
	}
	b.Close(1)
	if b.wires[0].open || b.wires[1].open {
		t.Error("a connection is left")
	}
}

// Stream ids do not run out: another connection takes over.
func TestNumbers(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.conns[0].next = idMax - 4
	b.Send(0, []byte(get))
	b.greet2(1, "HEADERS 1 end")
	b.Send(1, []byte(get))
	b.heard(1, "HEADERS 3 end")
	b.Close(0)
	b.Close(1)
	for k := range b.wires {
		if b.wires[k].open && b.conns[k].members == 0 && b.conns[k].phase != leaving {
			t.Errorf("connection %d stays open", k)
		}
	}
}

// A connection without ids ends with its last lane, so that its turn can come again.
func TestNumbersAgain(t *testing.T) {
	for _, lanes := range []int{1, 2} {
		b := newBench(t, lanes, lanes)
		b.open()
		for n := range 3 {
			from, to := n%2, (n+1)%2
			b.conns[from].next = idMax - 4
			b.Send(0, []byte(get))
			b.greet2(to, "HEADERS 1 end")
			if lanes > 1 {
				b.Send(1, []byte(get))
				b.heard(to, "HEADERS 3 end")
				b.answer(to, 3, true, ":status", "200")
			}
			b.answer(to, 1, true, ":status", "200")
			b.hear(to)
			if b.wires[from].open || !b.wires[to].open {
				t.Fatalf("%d lanes, turn %d: both connections are open", lanes, n)
			}
		}
	}
	// A lane that was about to be told that it is open opens on the next connection.
	b := newBench(t, 2, 2)
	b.open()
	b.Close(1)
	b.conns[0].next = idMax - 4
	b.Open(1)
	b.told[1].opened = 0
	b.Send(0, []byte(get))
	b.greet2(1, "HEADERS 1 end")
	if b.told[1].opened != 1 || b.wires[0].open {
		t.Errorf("opened %d times", b.told[1].opened)
	}
}

// From a request to its response nothing is allocated, for any size of the response.
func TestNoAllocations(t *testing.T) {
	b := newBench(t, 4, 4)
	b.open()
	for i := range b.told {
		b.Send(i, []byte(get))
		b.answer(0, uint32(2*i+1), false, ":status", "200", "date", "now", "content-length", "9")
		b.must(b.wires[0].WriteData(uint32(2*i+1), true, []byte("its body.")))
	}
	b.hear(0)
	answer := func(id uint32) []byte { // all of whose fields are in the table
		b.answer(0, id, false, ":status", "200", "date", "now", "content-length", "9")
		b.must(b.wires[0].WriteData(id, true, []byte("its body.")))
		defer b.wires[0].out.Reset()
		return bytes.Clone(b.wires[0].out.Bytes())
	}
	said := answer(9)
	answers := 0
	h := &counter{&answers, "its body."}
	request := []byte(get)
	id := uint32(9)
	round := func() {
		b.Send(0, request)
		if err := b.Wait(0, h); err != nil {
			t.Error(err)
		}
		b.wires[0].sent.Reset()
		for _, at := range [...]int{5, len(said) - 13} { // in both frames
			said[at], said[at+1], said[at+2], said[at+3] = byte(id>>24), byte(id>>16), byte(id>>8),
				byte(id)
		}
		id += 2
		(*ear)(b.Engine).Received(0, 5, said)
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n != 0 || answers != 1002 {
		t.Errorf("%v allocations a request, %d answers", n, answers)
	}
}

// counter counts responses that are as expected.
type counter struct {
	n    *int
	want string
}

func (c *counter) Opened(int, int64)      {}
func (c *counter) Sent(int, int64, int64) {}
func (c *counter) Received(_ int, _ int64, b []byte) {
	if string(b) == c.want {
		*c.n++
	}
}
func (c *counter) Closed(_ int, _ int64, _ engine.Op, err error) {
	panic(fmt.Sprint("closed: ", err))
}

// Any input in any pieces gives the same result, and no slot is reported as closed twice.
func FuzzEngine(f *testing.F) {
	b := newBench(f, 1, 1)
	b.Open(0)
	w := &b.wires[0]
	b.wait()
	seed := func(act func()) {
		act()
		f.Add(bytes.Clone(w.out.Bytes()), uint8(3))
		w.out.Reset()
	}
	seed(func() {
		b.answer(0, 1, false, ":status", "200", "content-length", "5")
		b.must(w.WriteDataPadded(1, true, []byte("hello"), make([]byte, 3)))
		b.answer(0, 3, false, ":status", "200")
		b.must(w.WriteData(3, false, []byte("hello")))
		b.answer(0, 3, true, "trailer", "x")
		b.must(w.WriteWindowUpdate(5, 4000))
	})
	seed(func() {
		b.answer(0, 3, true, ":status", "404")
		b.must(w.WriteGoAway(1, http2.ErrCodeNo, nil))
		b.answer(0, 1, true, ":status", "204")
	})
	seed(func() {
		b.must(w.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 9}))
		b.must(w.WriteRSTStream(3, http2.ErrCodeRefusedStream))
		b.must(w.WritePing(false, [8]byte{}))
		b.must(w.WriteData(5, true, nil))
	})
	f.Fuzz(func(t *testing.T, said []byte, piece uint8) {
		whole, parts := converse(t, said, len(said)), converse(t, said, int(piece)+1)
		if whole != parts {
			t.Errorf("at once: %s\nin pieces: %s", whole, parts)
		}
	})
}

// converse lets three slots send requests and a server send some input, and returns the events.
func converse(t *testing.T, said []byte, piece int) string {
	b := newBench(t, 3, 3)
	b.open()
	b.Send(0, []byte(get))
	b.Send(1, post(5))
	b.Send(2, post(100_000))
	b.wait()
	for len(said) > 0 && b.wires[0].open {
		n := min(piece, len(said))
		(*ear)(b.Engine).Received(0, 5, bytes.Clone(said[:n]))
		said = said[n:]
		b.wait()
	}
	for i, x := range b.told {
		if len(x.closed) > 1 || x.opened > 1 {
			t.Errorf("slot %d is told %+v", i, x)
		}
	}
	for i := range b.told { // chunks are as large as the input; lost responses do not count
		x := &b.told[i]
		if x.got = body(t, x.got); len(x.closed) > 0 {
			x.got = ""
		}
	}
	return fmt.Sprintf("%+v", b.told)
}

// body parses a response, or the part of it that has come.
func body(t *testing.T, text string) string {
	var r http1.Response
	var all []byte
	for b := []byte(text); len(b) > 0; {
		n, body, done, err := r.Next(b)
		if err != nil || done && n < len(b) {
			t.Fatalf("%q is not an answer, %v", text, err)
		}
		b, all = b[n:], append(all, body...)
	}
	return fmt.Sprint(r.Status, string(all))
}

// The cost of a request and its response without the kernel: on a connection of 16 streams, in
// turn.
func BenchmarkRound(b *testing.B) {
	const streams = 16
	x := newBench(b, streams, streams)
	x.open()
	w := &x.wires[0]
	ask := func() {
		for i := range streams {
			x.Send(i, []byte(get))
		}
		x.wait()
		w.sent.Reset()
	}
	answers := 0
	said := func(from uint32) []byte {
		for i := range uint32(streams) {
			x.answer(0, from+2*i, false, ":status", "200", "date", "now", "content-length", "9")
			x.must(w.WriteData(from+2*i, true, []byte("its body.")))
		}
		defer w.out.Reset()
		return bytes.Clone(w.out.Bytes())
	}
	h := &counter{&answers, "its body."}
	ask()
	x.must(x.Wait(0, h))
	(*ear)(x.Engine).Received(0, 5, said(1)) // which fills the table
	text := said(1 + 2*streams)
	request := []byte(get)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		x.conns[0].next = 1 + 2*streams // so that the same responses fit again
		for i := range streams {
			x.Send(i, request)
		}
		x.must(x.Wait(0, h))
		w.sent.Reset()
		(*ear)(x.Engine).Received(0, 5, text)
	}
	if answers == 0 {
		b.Fatal("nothing was answered")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/streams, "ns/request")
}

// The reason of a GOAWAY is that of the requests which the server had accepted, and does not
// answer.
func TestPartingWords(t *testing.T) {
	b := newBench(t, 1, 1)
	b.open()
	b.Send(0, []byte(get))
	b.heard(0, "HEADERS 1 end")
	b.must(b.wires[0].WriteGoAway(1, calm, []byte("too_many_pings")))
	b.hear(0)
	b.expect(0, "")
	(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
	b.expect(0, "", `went away before it answered (ENHANCE_YOUR_CALM, "too_many_pings")`)
}
