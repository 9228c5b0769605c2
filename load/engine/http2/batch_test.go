package http2

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/net/http2"

	"prony.example/load/engine"
)

// gone compares the requests that have left since the last call with the expectation: the slot, and
// the moment at which the stream was permitted for which the request had waited.
func (b *bench) gone(want ...string) {
	b.t.Helper()
	b.wait()
	if !slices.Equal(b.left, want) {
		b.t.Fatalf("%q have left, want %q", b.left, want)
	}
	b.left = nil
}

// answers returns the answers to streams of a connection, each in bytes of its own.
func (b *bench) answers(k int, ids ...uint32) (out [][]byte) {
	for _, id := range ids {
		calls := b.callMax > 0
		b.answer(k, id, !calls, ":status", "200", "content-type", "application/grpc")
		if calls {
			b.must(b.wires[k].WriteData(id, false, []byte("\x00\x00\x00\x00\x02ok")))
			b.answer(k, id, true, "grpc-status", "0")
		}
		out = append(out, bytes.Clone(b.wires[k].out.Bytes()))
		b.wires[k].out.Reset()
	}
	return out
}

// The requests that the events of a Wait lead to leave together at its end, in one write for each
// connection, however many pieces bring the events.
func TestBatches(t *testing.T) {
	check := func(b *bench, request string) {
		t.Helper()
		b.open()
		for i := range b.told {
			b.Send(i, []byte(request))
		}
		b.wait()
		b.left = nil
		from := [2]int{b.wires[0].pushes, b.wires[2].pushes}
		b.onReceived = func(i int) { b.Send(i, []byte(request)) }
		first, second := b.answers(0, 1, 3, 5, 7), b.answers(2, 7, 5, 3, 1)
		b.during = func() {
			for n := range first {
				(*ear)(b.Engine).Received(0, 5, first[n])
				(*ear)(b.Engine).Received(2, 5, second[n])
			}
			if len(b.left) > 0 || b.wires[0].pushes > from[0] || b.wires[2].pushes > from[1] {
				t.Errorf("%q have left within the batch", b.left)
			}
		}
		b.must(b.Wait(0, b))
		if n, m := b.wires[0].pushes-from[0], b.wires[2].pushes-from[1]; n != 1 || m != 1 {
			t.Errorf("a batch of 4 and 4 requests left in %d and %d writes", n, m)
		}
		b.onReceived = nil
		b.gone("0 0", "1 0", "2 0", "3 0", "7 0", "6 0", "5 0", "4 0")
	}
	check(newBench(t, 8, 4), get)
	check(newCalls(t, 8, 4), ask)
}

// A request that is sent outside of a Wait leaves when the next Wait begins, not when it ends.
func TestAtOnce(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.Send(1, []byte(get))
	if len(b.left) > 0 {
		t.Errorf("%q have left in Send", b.left)
	}
	b.during = func() {
		if !slices.Equal(b.left, []string{"1 0"}) {
			t.Errorf("before the engine waits, %q have left", b.left)
		}
	}
	b.must(b.Wait(0, b))
}

// A batch does not grow beyond a number of requests, or of bytes that were read.
func TestBatchBounds(t *testing.T) {
	const streams = 2*batchRequests + 1
	b := newBench(t, streams, streams)
	b.open()
	var ids []uint32
	for i := range streams {
		b.Send(i, []byte(get))
		ids = append(ids, uint32(2*i+1))
	}
	b.wait()
	b.left = nil
	b.onReceived = func(i int) { b.Send(i, []byte(get)) }
	pieces := b.answers(0, ids...)
	b.during = func() {
		for n, piece := range pieces {
			(*ear)(b.Engine).Received(0, 5, piece)
			if want := (n + 1) / batchRequests * batchRequests; len(b.left) != want {
				t.Fatalf("after %d answers %d requests have left, want %d", n+1, len(b.left), want)
			}
		}
	}
	b.must(b.Wait(0, b))
	if len(b.left) != streams {
		t.Errorf("at the end %d requests have left, want %d", len(b.left), streams)
	}

	b = newBench(t, 2, 2)
	b.open()
	b.Send(0, []byte(get))
	b.heard(0, "HEADERS 1 end")
	b.left = nil
	b.during = func() {
		b.Send(1, []byte(get))
		b.answer(0, 1, false, ":status", "200")
		for n := 0; n+frameMax <= batchBytes; n += frameMax {
			if len(b.left) > 0 {
				t.Fatalf("%q have left after %d bytes", b.left, n)
			}
			b.must(b.wires[0].WriteData(1, false, make([]byte, frameMax)))
			data := bytes.Clone(b.wires[0].out.Bytes())
			b.wires[0].out.Reset()
			(*ear)(b.Engine).Received(0, 5, data)
		}
		if len(b.left) != 1 {
			t.Errorf("after %d bytes %q have left", batchBytes, b.left)
		}
	}
	b.must(b.Wait(0, b))
}

// A request that waits for a stream leaves when the stream begins. The engine reports the moment at
// which the server permitted the stream.
func TestDepartures(t *testing.T) {
	b := newBench(t, 4, 4)
	b.open(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	for i := range 4 {
		b.Send(i, []byte(get))
	}
	b.gone("0 0", "1 0")
	b.Close(2) // which waits, and never leaves
	(*ear)(b.Engine).Received(0, 7, b.answers(0, 3)[0])
	b.gone("3 7")
	b.Send(1, []byte(get))
	b.gone()
	b.must(b.wires[0].WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 3}))
	b.hear(0)
	b.gone("1 5")

	// A request leaves with its head: its body waits for the server's windows or the kernel's room.
	b = newBench(t, 2, 2)
	b.open(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
	b.Send(0, post(100))
	b.heard(0, "HEADERS 1", "DATA 1 1")
	b.gone("0 0")
	b.takes = 0
	b.Send(1, []byte(get))
	b.gone("1 0")
	b.takes = 1 << 30
	(*ear)(b.Engine).Drained(0, 7)
	b.heard(0, "HEADERS 3 end")
	b.gone()
}

// After a GOAWAY, a request that had waited leaves on the next connection, once; one whose stream
// has begun in the same batch leaves before it is lost, because its frames are in the output.
func TestDeparturesAfterGoAway(t *testing.T) {
	b := newBench(t, 3, 3)
	b.open(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	b.Send(0, []byte(get))
	b.Send(1, []byte(get))
	b.Send(2, []byte(get))
	b.gone("0 0")
	b.during = func() {
		(*ear)(b.Engine).Received(0, 7, b.answers(0, 1)[0]) // the second begins
		b.must(b.wires[0].WriteGoAway(1, http2.ErrCodeNo, nil))
		(*ear)(b.Engine).Received(0, 7, bytes.Clone(b.wires[0].out.Bytes()))
	}
	b.gone("1 7")
	b.expect(1, "", "before it took the request (NO_ERROR)")
	(*ear)(b.Engine).Opened(1, 8)
	b.must(b.wires[1].WriteSettings())
	(*ear)(b.Engine).Received(1, 9, bytes.Clone(b.wires[1].out.Bytes()))
	b.gone("2 9")
}

// A request whose frames were not pushed before its connection ended has not left at all.
func TestNotPushed(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.Send(0, []byte(get))
	b.gone("0 0")
	b.during = func() {
		b.Send(1, []byte(get))
		(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
	}
	b.gone()
	b.expect(1, "", "nil")
	if n, m := b.Unsent(0), b.Unsent(1); n != 0 || m != len(get) {
		t.Errorf("%d and %d bytes have not left, want 0 and %d", n, m, len(get))
	}
}
