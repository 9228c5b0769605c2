package http2

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"prony.example/load/engine"
)

// bench is an engine whose wires end at a Framer of golang.org/x/net in the same test. It is also a
// Handler that records its events.
type bench struct {
	*Engine
	t     testing.TB
	wires []wire
	told  []told
	takes int      // maximum bytes of a push
	left  []string // requests that have left, with the moment at which their stream was permitted

	during     func() // events of the next Wait
	onReceived func(i int)
	onClosed   func(i int)
}

// wire is a connection of the engine below.
type wire struct {
	open   bool
	pushes int          // that took something
	sent   bytes.Buffer // by the engine, and not read yet
	out    bytes.Buffer // by the peer, and not delivered yet
	*http2.Framer
	fields bytes.Buffer
	*hpack.Encoder
}

type told struct {
	opened int
	got    string
	closed []string
	again  int // of these, the ones that report an unprocessed request
}

func newBench(t testing.TB, slots, streams int) *bench {
	b := &bench{t: t, told: make([]told, slots), takes: 1 << 30,
		wires: make([]wire, Below(slots, streams))}
	b.Engine = New((*under)(b), slots, streams, false)
	return b
}

// newCalls returns a bench for gRPC calls.
func newCalls(t testing.TB, slots, streams int) *bench {
	b := newBench(t, slots, streams)
	b.Engine = NewCalls((*under)(b), slots, streams, false, 5*time.Second)
	return b
}

// under is the engine below.
type under bench

func (u *under) Wait(int64, engine.Handler) error {
	if f := u.during; f != nil {
		u.during = nil
		f()
	}
	return nil
}

func (u *under) Open(k int) {
	w := &u.wires[k]
	if w.open {
		u.t.Errorf("connection %d is opened twice", k)
	}
	*w = wire{open: true}
	w.Framer = http2.NewFramer(&w.out, &w.sent)
	w.AllowIllegalWrites = true
	w.Encoder = hpack.NewEncoder(&w.fields)
}
func (u *under) Close(k int)      { u.wires[k].open = false }
func (u *under) Release()         {}
func (u *under) Unsent(int) int   { return 0 }
func (u *under) Send(int, []byte) { u.t.Error("sent, not pushed") }
func (u *under) Push(k int, b []byte) int {
	if !u.wires[k].open {
		u.t.Errorf("pushed to connection %d, which is closed", k)
	}
	n := min(len(b), u.takes)
	u.wires[k].pushes++
	u.wires[k].sent.Write(b[:n])
	return n
}

// Sent implements engine.Departures.
func (b *bench) Sent(i int, freeNs, _ int64) {
	b.left = append(b.left, fmt.Sprint(i, " ", max(freeNs, 0)))
}

// Opened, Received and Closed implement engine.Handler.
func (b *bench) Opened(i int, _ int64) { b.told[i].opened++ }

func (b *bench) Received(i int, _ int64, data []byte) {
	b.told[i].got += string(data)
	if len(data) == 0 {
		b.t.Errorf("slot %d received nothing", i)
	}
	if b.onReceived != nil {
		b.onReceived(i)
	}
}

func (b *bench) Closed(i int, _ int64, op engine.Op, err error) {
	b.told[i].closed = append(b.told[i].closed, fmt.Sprint(op, " ", err))
	if _, ok := err.(engine.Untaken); ok {
		b.told[i].again++
	}
	if b.onClosed != nil {
		b.onClosed(i)
	}
}

func (b *bench) wait() {
	if err := b.Wait(0, b); err != nil {
		b.t.Error(err)
	}
}

// hear delivers what the peer of a connection has written to the engine.
func (b *bench) hear(k int) {
	b.wait() // so that it has its Handler
	data := bytes.Clone(b.wires[k].out.Bytes())
	b.wires[k].out.Reset()
	if len(data) > 0 && b.wires[k].open {
		(*ear)(b.Engine).Received(k, 5, data)
	}
}

// open opens all slots and their connections.
func (b *bench) open(settings ...http2.Setting) {
	b.t.Helper()
	for i := range b.told {
		b.Open(i)
	}
	for k := range b.wires {
		if b.wires[k].open {
			b.greet(k, settings...)
		}
	}
	for i := range b.told {
		if b.told[i].opened != 1 {
			b.t.Fatalf("slot %d: %+v", i, b.told[i])
		}
	}
}

// greet opens a connection and reads the engine's first frames.
func (b *bench) greet(k int, settings ...http2.Setting) {
	b.t.Helper()
	b.wait()
	(*ear)(b.Engine).Opened(k, 1)
	w := &b.wires[k]
	if got := string(w.sent.Next(len(preface))); got != preface {
		b.t.Fatalf("the engine begins with %q", got)
	}
	b.must(w.WriteSettings(settings...))
	b.hear(k)
	b.heard(k, "SETTINGS", "WINDOW_UPDATE", "SETTINGS ACK")
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// heard compares what the engine has sent over a connection since the last call with the
// expectation.
func (b *bench) heard(k int, want ...string) {
	b.t.Helper()
	b.wait()
	var got []string
	w := &b.wires[k]
	for w.sent.Len() > 0 {
		f, err := w.ReadFrame()
		if err != nil {
			b.t.Fatalf("connection %d says %v, then %v", k, got, err)
		}
		got = append(got, show(f))
	}
	if !slices.Equal(got, want) {
		b.t.Fatalf("connection %d says %q, want %q", k, got, want)
	}
}

// show describes a frame, as far as tests need it.
func show(f http2.Frame) string {
	h := f.Header()
	text := h.Type.String()
	switch f := f.(type) {
	case *http2.HeadersFrame:
		text += fmt.Sprint(" ", h.StreamID)
		if f.StreamEnded() {
			text += " end"
		}
	case *http2.DataFrame:
		text += fmt.Sprint(" ", h.StreamID, " ", len(f.Data()))
		if f.StreamEnded() {
			text += " end"
		}
	case *http2.RSTStreamFrame:
		text += fmt.Sprint(" ", h.StreamID, " ", f.ErrCode)
	case *http2.GoAwayFrame:
		text += fmt.Sprint(" ", f.ErrCode)
	case *http2.SettingsFrame:
		if f.IsAck() {
			text += " ACK"
		}
	case *http2.PingFrame:
		text += fmt.Sprint(" ", f.Data[0], " ", f.IsAck())
	case *http2.WindowUpdateFrame:
		if h.StreamID > 0 {
			text += fmt.Sprint(" ", h.StreamID)
		}
	}
	return text
}

// answer writes fields of a stream.
func (b *bench) answer(k int, id uint32, end bool, pairs ...string) {
	b.t.Helper()
	w := &b.wires[k]
	w.fields.Reset()
	for i := 0; i < len(pairs); i += 2 {
		b.must(w.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}))
	}
	b.must(w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndStream: end, EndHeaders: true,
		BlockFragment: w.fields.Bytes()}))
}

const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// expect compares the events of a slot since the last call with the expectation.
func (b *bench) expect(i int, got string, closed ...string) {
	b.t.Helper()
	b.wait()
	x := &b.told[i]
	if x.got != got || !slices.EqualFunc(x.closed, closed, strings.Contains) {
		b.t.Fatalf("slot %d heard %q, %q; want %q, %q", i, x.got, x.closed, got, closed)
	}
	x.got, x.closed = "", nil
}
