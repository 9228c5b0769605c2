package http2

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"prony.example/load/engine"
)

// Every form of a response becomes the same response in HTTP/1.1, and ends with its stream.
func TestAnswers(t *testing.T) {
	b := newBench(t, 1, 1)
	b.open()
	id := uint32(1)
	check := func(request, want string, answer func(w *wire)) {
		t.Helper()
		b.Send(0, []byte(request))
		b.heard(0, fmt.Sprint("HEADERS ", id, " end"))
		answer(&b.wires[0])
		b.hear(0)
		b.expect(0, want)
		id += 2
	}
	const ok = "HTTP/1.1 200 \r\n"
	check(get, ok+"x: y\r\ncontent-length: 5\r\n\r\nhello", func(w *wire) {
		b.answer(0, id, false, ":status", "200", "content-length", "5", "x", "y")
		b.must(w.WriteData(id, true, []byte("hello")))
	})
	check(get, ok+"content-length: 5\r\n\r\nhello", func(w *wire) {
		b.answer(0, id, false, ":status", "200", "content-length", "5")
		b.must(w.WriteDataPadded(id, false, []byte("hel"), make([]byte, 200)))
		b.must(w.WriteData(id, false, []byte("lo")))
		b.hear(0)
		if got := b.told[0].got; !strings.HasSuffix(got, "\r\n\r\nhell") {
			t.Errorf("before the end of the stream: %q", got)
		}
		b.must(w.WriteDataPadded(id, true, nil, make([]byte, 9)))
	})
	check(get, ok+"content-length: 5\r\n\r\nhello", func(w *wire) {
		b.answer(0, id, false, ":status", "103", "link", "x")
		b.answer(0, id, false, ":status", "200", "content-length", "5")
		b.must(w.WriteData(id, false, []byte("hello")))
		b.answer(0, id, true, "trailer", "1")
	})
	check(get, ok+"transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
		func(w *wire) {
			b.answer(0, id, false, ":status", "200")
			b.must(w.WriteData(id, false, []byte("hel")))
			b.must(w.WriteData(id, false, nil))
			b.must(w.WriteData(id, true, []byte("lo")))
		})
	check(get, ok+"transfer-encoding: chunked\r\n\r\n0\r\n\r\n", func(*wire) {
		b.answer(0, id, false, ":status", "200")
		b.answer(0, id, true, "trailer", "1")
	})
	check(get, "HTTP/1.1 404 \r\ncontent-length: 0\r\n\r\n", func(*wire) {
		b.answer(0, id, true, ":status", "404")
	})
	check(get, ok+"content-length: 0\r\n\r\n", func(w *wire) {
		b.answer(0, id, false, ":status", "200", "content-length", "0")
		b.hear(0)
		b.expect(0, "")
		b.must(w.WriteData(id, true, nil))
	})
	check("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n", ok+"content-length: 500\r\n\r\n", func(*wire) {
		b.answer(0, id, true, ":status", "200", "content-length", "500")
	})
	check(get, "HTTP/1.1 204 \r\n\r\n", func(w *wire) {
		b.answer(0, id, false, ":status", "204")
		b.must(w.WriteData(id, true, nil))
	})
	check(get, "HTTP/1.1 304 \r\ncontent-length: 7\r\n\r\n", func(*wire) {
		b.answer(0, id, true, ":status", "304", "content-length", "7")
	})
	if b.conns[0].active != 0 || !b.wires[0].open {
		t.Errorf("%d streams at the end", b.conns[0].active)
	}
}

// An invalid response ends its stream, is reported to both sides, and ends no other.
func TestRefused(t *testing.T) {
	check := func(want string, answer func(b *bench, w *wire)) {
		t.Helper()
		b := newBench(t, 2, 2)
		b.open()
		b.Send(0, []byte(get))
		b.Send(1, []byte(get))
		b.heard(0, "HEADERS 1 end", "HEADERS 3 end")
		answer(b, &b.wires[0])
		b.hear(0)
		b.told[0].got = ""
		b.expect(0, "", want)
		b.heard(0, "RST_STREAM 1 PROTOCOL_ERROR")
		b.answer(0, 3, true, ":status", "200")
		b.hear(0)
		b.expect(1, "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n")
	}
	check("more of a body", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "200", "content-length", "4")
		b.must(w.WriteData(1, true, []byte("hello")))
	})
	check("less of a body", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "200", "content-length", "6")
		b.must(w.WriteData(1, true, []byte("hello")))
	})
	check("less of a body", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "200", "content-length", "6")
		b.must(w.WriteData(1, false, []byte("hello")))
		b.answer(0, 1, true, "trailer", "1")
	})
	check("no body, and the length", func(b *bench, _ *wire) {
		b.answer(0, 1, true, ":status", "200", "content-length", "6")
	})
	check("more of a body", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "204")
		b.must(w.WriteData(1, true, []byte("hello")))
	})
	check("before its head", func(b *bench, w *wire) {
		b.must(w.WriteData(1, true, []byte("hello")))
	})
	check("no status", func(b *bench, _ *wire) { b.answer(0, 1, true, "x", "y") })
	check("interim", func(b *bench, _ *wire) { b.answer(0, 1, true, ":status", "100") })
	check("HTTP/2 does not have", func(b *bench, _ *wire) {
		b.answer(0, 1, false, ":status", "101")
	})
	check("behind its body", func(b *bench, _ *wire) {
		b.answer(0, 1, false, ":status", "200")
		b.answer(0, 1, false, "x", "y")
	})
	check("behind its body", func(b *bench, _ *wire) {
		b.answer(0, 1, false, ":status", "200")
		b.answer(0, 1, true, ":status", "200")
	})
	check("connection", func(b *bench, _ *wire) {
		b.answer(0, 1, true, ":status", "200", "connection", "close")
	})
}

// post is a request with a body.
func post(n int) []byte {
	return fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", n,
		strings.Repeat("b", n))
}

// Bodies are sent only as far as both windows and the kernel permit.
func TestWindows(t *testing.T) {
	b := newBench(t, 2, 2)
	set := func(id http2.SettingID, v uint32) http2.Setting { return http2.Setting{ID: id, Val: v} }
	b.open(set(http2.SettingInitialWindowSize, 10))
	w := &b.wires[0]
	b.Send(0, post(70_000))
	b.heard(0, "HEADERS 1", "DATA 1 10")
	b.must(w.WriteWindowUpdate(1, 5))
	b.hear(0)
	b.heard(0, "DATA 1 5")
	b.must(w.WriteSettings(set(http2.SettingInitialWindowSize, 3))) // 7 less than zero is left
	b.must(w.WriteWindowUpdate(1, 7))
	b.hear(0)
	b.heard(0, "SETTINGS ACK")
	b.must(w.WriteWindowUpdate(1, 1))
	b.hear(0)
	b.heard(0, "DATA 1 1")
	b.must(w.WriteSettings(set(http2.SettingInitialWindowSize, 1<<20)))
	b.hear(0)
	b.heard(0, "SETTINGS ACK", "DATA 1 16384", "DATA 1 16384", "DATA 1 16384", "DATA 1 16367")
	b.Send(1, post(7)) // the connection's window is empty
	b.heard(0, "HEADERS 3")
	b.takes = 10
	b.must(w.WriteWindowUpdate(0, 30))
	b.hear(0)
	b.wait()
	if n := w.sent.Len(); n != 10 {
		t.Fatalf("%d bytes were pushed, and 10 are taken", n)
	}
	b.takes = 1 << 30
	(*ear)(b.Engine).Drained(0, 7)
	b.heard(0, "DATA 1 30")
	b.must(w.WriteWindowUpdate(0, 5000))
	b.hear(0)
	b.heard(0, "DATA 3 7 end", "DATA 1 4435 end") // each in its turn
}

// The server's window is renewed in bulk, and a server that sends more gets an error.
func TestRoom(t *testing.T) {
	b := newBench(t, 1, 1)
	b.open()
	w := &b.wires[0]
	b.Send(0, []byte(get))
	b.heard(0, "HEADERS 1 end")
	b.answer(0, 1, false, ":status", "200")
	b.onReceived = func(i int) { b.told[i].got = "" }
	data := make([]byte, frameMax)
	for n := 0; n <= laneWindow/2; n += frameMax {
		b.must(w.WriteData(1, false, data))
	}
	b.hear(0)
	b.heard(0, "WINDOW_UPDATE 1")
	b.conns[0].room = connWindow/2 + 1
	b.must(w.WriteData(1, false, data))
	b.hear(0)
	b.heard(0, "WINDOW_UPDATE")
	b.lanes[0].room = 5
	b.told[0].got = ""
	b.must(w.WriteDataPadded(1, false, []byte("he"), make([]byte, 3))) // 6 bytes
	b.hear(0)
	b.expect(0, "", "window of stream 1")
	b.heard(0, "GOAWAY FLOW_CONTROL_ERROR")
}

// At most as many streams are under way as the server permits; the others wait in order.
func TestLimit(t *testing.T) {
	b := newBench(t, 4, 4)
	if b.Shortage() != 0 {
		t.Errorf("%d streams are withheld before any settings", b.Shortage())
	}
	b.open(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	if b.Shortage() != 2 {
		t.Errorf("%d of 4 streams are withheld, want 2", b.Shortage())
	}
	for i := range 4 {
		b.Send(i, []byte(get))
	}
	b.heard(0, "HEADERS 1 end", "HEADERS 3 end")
	b.Close(2) // which waits
	b.answer(0, 3, true, ":status", "200")
	b.hear(0)
	b.heard(0, "HEADERS 5 end")
	b.answer(0, 5, true, ":status", "201")
	b.hear(0)
	b.expect(3, "HTTP/1.1 201 \r\ncontent-length: 0\r\n\r\n")
	b.Open(2)
	b.wait()
	b.Send(2, []byte(get))
	b.Send(1, []byte(get))
	b.heard(0, "HEADERS 7 end")
	b.must(b.wires[0].WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 3}))
	b.hear(0)
	b.heard(0, "SETTINGS ACK", "HEADERS 9 end")
	if b.told[2].opened != 2 {
		t.Errorf("slot 2: %+v", b.told[2])
	}
}

// A server that sends GOAWAY answers accepted requests; the others are lost, or move to a new
// connection, as do later ones.
func TestGoAway(t *testing.T) {
	b := newBench(t, 5, 5)
	b.open(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 3})
	for i := range 4 {
		b.Send(i, []byte(get))
	}
	b.heard(0, "HEADERS 1 end", "HEADERS 3 end", "HEADERS 5 end")
	b.answer(0, 3, false, ":status", "200", "content-length", "2")
	b.must(b.wires[0].WriteGoAway(3, http2.ErrCodeNo, nil))
	b.onClosed = func(i int) { b.Open(i) }
	b.hear(0)
	b.expect(2, "", "before it took the request (NO_ERROR)")
	b.expect(4, "", fmt.Sprint(engine.Reading, " <nil>"))
	b.greet2(1, "HEADERS 1 end") // the fourth, which waited
	b.must(b.wires[0].WriteData(3, true, []byte("ok")))
	b.onReceived = func(i int) {
		if i == 1 && strings.HasSuffix(b.told[1].got, "ok") {
			b.Send(1, []byte(get))
		}
	}
	b.hear(0)
	b.expect(1, "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\nok")
	b.heard(1, "HEADERS 3 end")
	b.answer(0, 1, true, ":status", "200")
	b.hear(0)
	b.expect(0, "HTTP/1.1 200 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
	b.heard(0, "GOAWAY NO_ERROR")
	if b.wires[0].open || b.told[2].opened != 2 || b.told[4].opened != 2 ||
		b.told[2].again != 1 || b.told[4].again != 0 {
		t.Errorf("open %v, %+v", b.wires[0].open, b.told)
	}
	b.Close(0)
	b.Open(0)
	b.wait()
	if b.told[0].opened != 2 || b.conns[1].members != 5 {
		t.Errorf("%+v, %d on the new connection", b.told[0], b.conns[1].members)
	}
	// Also from that one: the first is free again.
	b.must(b.wires[1].WriteGoAway(3, http2.ErrCodeNo, nil))
	b.hear(1)
	if !b.wires[0].open {
		t.Error("no connection takes the place of the second")
	}
}

// A request that the server refuses before its response may be repeated on the same connection.
// After the head of a response, or with another code, it fails, as does a request that a server
// leaves with an error and without having accepted any.
func TestUntakenStreams(t *testing.T) {
	check := func(again int, want string, act func(b *bench, w *wire)) {
		t.Helper()
		b := newBench(t, 1, 1)
		b.open()
		b.Send(0, []byte(get))
		b.heard(0, "HEADERS 1 end")
		act(b, &b.wires[0])
		b.hear(0)
		b.told[0].got = ""
		b.expect(0, "", want)
		if b.told[0].again != again {
			t.Errorf("%s: told %d times that the request was not taken", want, b.told[0].again)
		}
	}
	check(1, "(REFUSED_STREAM)", func(b *bench, w *wire) {
		b.must(w.WriteRSTStream(1, http2.ErrCodeRefusedStream))
	})
	check(0, "(INTERNAL_ERROR)", func(b *bench, w *wire) {
		b.must(w.WriteRSTStream(1, http2.ErrCodeInternal))
	})
	check(0, "(REFUSED_STREAM)", func(b *bench, w *wire) {
		b.answer(0, 1, false, ":status", "200", "content-length", "4")
		b.must(w.WriteRSTStream(1, http2.ErrCodeRefusedStream))
	})
	check(0, "(ENHANCE_YOUR_CALM)", func(b *bench, w *wire) {
		b.must(w.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil))
	})
}

// A server that goes away because of an error has accepted the streams up to the last one: the
// others may be sent again (RFC 9113, section 8.7).
func TestGoAwayWithError(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.Send(0, []byte(get))
	b.Send(1, []byte(get))
	b.heard(0, "HEADERS 1 end", "HEADERS 3 end")
	b.must(b.wires[0].WriteGoAway(1, http2.ErrCodeInternal, nil))
	b.hear(0)
	b.expect(1, "", "before it took the request (INTERNAL_ERROR)")
	b.answer(0, 1, true, ":status", "200")
	b.hear(0)
	b.expect(0, "HTTP/1.1 200 \r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
	if b.told[0].again != 0 || b.told[1].again != 1 {
		t.Errorf("%+v", b.told)
	}
}

// greet2 greets on a connection with waiting requests.
func (b *bench) greet2(k int, want ...string) {
	b.t.Helper()
	(*ear)(b.Engine).Opened(k, 1)
	w := &b.wires[k]
	w.sent.Next(len(preface))
	b.must(w.WriteSettings())
	b.hear(k)
	b.heard(k, append([]string{"SETTINGS", "WINDOW_UPDATE", "SETTINGS ACK"}, want...)...)
}

// If the server has sent GOAWAY on both connections, new requests wait for one of them to end.
func TestGoAwayTwice(t *testing.T) {
	b := newBench(t, 3, 3)
	b.open()
	b.Send(0, []byte(get))
	b.must(b.wires[0].WriteGoAway(1, http2.ErrCodeNo, nil))
	b.hear(0)
	b.expect(1, "", "nil")
	b.Open(1)
	b.greet2(1)
	b.Send(1, []byte(get))
	b.must(b.wires[1].WriteGoAway(1, http2.ErrCodeNo, nil))
	b.hear(1)
	b.Open(2)
	b.wait()
	b.wires[0].sent.Reset()
	b.answer(0, 1, true, ":status", "200")
	b.hear(0)
	if !b.wires[0].open {
		t.Fatal("the connection is not opened anew")
	}
	b.wires[0].sent.Reset()
	b.greet2(0)
	if b.told[2].opened != 2 {
		t.Errorf("slot 2: %+v", b.told[2])
	}
}

// A closed slot ends its stream; later events of the stream are dropped, and the connection ends
// with its last slot.
func TestClose(t *testing.T) {
	b := newBench(t, 2, 2)
	b.open()
	b.Send(0, post(3))
	b.Send(1, []byte(get))
	b.heard(0, "HEADERS 1", "HEADERS 3 end", "DATA 1 3 end")
	b.Close(0)
	b.Close(0)
	b.answer(0, 1, false, ":status", "200", "content-length", "2", "x", "table")
	b.must(b.wires[0].WriteData(1, true, []byte("ok")))
	b.must(b.wires[0].WriteRSTStream(1, http2.ErrCodeCancel))
	b.answer(0, 3, true, ":status", "200", "x", "table")
	b.hear(0)
	b.heard(0, "RST_STREAM 1 CANCEL")
	b.expect(0, "")
	b.expect(1, "HTTP/1.1 200 \r\nx: table\r\ncontent-length: 0\r\n\r\n")
	b.Close(1)
	b.heard(0, "GOAWAY NO_ERROR")
	if b.wires[0].open {
		t.Error("the connection is open")
	}
	b.Open(0)
	b.greet(0)
	if b.told[0].opened != 2 {
		t.Errorf("slot 0: %+v", b.told[0])
	}
}

// A response that comes before all of the request was sent ends both, and the slot takes the next.
func TestEarly(t *testing.T) {
	b := newBench(t, 1, 1)
	b.open()
	b.Send(0, post(100_000))
	b.heard(0, "HEADERS 1", "DATA 1 16384", "DATA 1 16384", "DATA 1 16384", "DATA 1 16383")
	b.answer(0, 1, true, ":status", "413")
	b.must(b.wires[0].WriteRSTStream(1, http2.ErrCodeNo))
	b.must(b.wires[0].WriteWindowUpdate(0, 100_000))
	b.hear(0)
	b.heard(0, "RST_STREAM 1 CANCEL")
	b.expect(0, "HTTP/1.1 413 \r\ncontent-length: 0\r\n\r\n")
	b.Send(0, []byte(get))
	b.heard(0, "HEADERS 3 end")
}

// The end of a connection is reported to all its slots, with their operation; the message for a
// connection that never used HTTP/2 says so.
func TestEnds(t *testing.T) {
	b := newBench(t, 3, 3)
	b.open()
	b.Send(0, post(100_000))
	b.Send(1, []byte(get))
	b.wait()
	(*ear)(b.Engine).Closed(0, 9, engine.Reading, fmt.Errorf("reset"))
	b.expect(0, "", fmt.Sprint(engine.Writing, " reset"))
	b.expect(1, "", fmt.Sprint(engine.Reading, " reset"))
	b.expect(2, "", fmt.Sprint(engine.Reading, " reset"))
	check := func(want, said string) {
		t.Helper()
		b := newBench(t, 1, 1)
		b.Open(0)
		b.wait()
		(*ear)(b.Engine).Opened(0, 1)
		if said == "" {
			(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
		} else {
			(*ear)(b.Engine).Received(0, 5, []byte(said))
		}
		if b.told[0].opened != 0 {
			t.Errorf("%q opened it", said)
		}
		b.expect(0, "", fmt.Sprint(engine.Connecting, " ", want))
	}
	check("the port speaks HTTP/1.1; use http://", "HTTP/1.1 400 Bad Request\r\n\r\n")
	check("the server closed the connection before it said its settings", "")
	check("HTTP/2: the server does not begin with its settings (PROTOCOL_ERROR)",
		"\x00\x00\x00\x04\x01\x00\x00\x00\x00")
	check(`the port does not speak HTTP/2: it begins with "SSH-2.0-OpenSSH\r\n"`,
		"SSH-2.0-OpenSSH\r\n")
	check("the port speaks TLS; use h2://", "\x15\x03\x01\x00\x02\x02\x16")
}
