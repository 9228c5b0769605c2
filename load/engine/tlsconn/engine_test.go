package tlsconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"prony.example/load/engine"
	"prony.example/load/engine/socket"
)

// bench is an engine whose wire ends in the same test: at crypto/tls, or another peer. It is also a
// Handler that records its events.
type bench struct {
	*Engine
	t     testing.TB
	sent  [][]byte // by the engine, before encryption or not, unchanged
	shut  bool     // by the engine
	peer  *tls.Conn
	wire  *pipe // the peer's
	came  []byte
	opens int
	op    engine.Op
	err   error
	ended int

	onReceived func()
}

func newBench(t testing.TB, c *tls.Config) *bench {
	b := &bench{t: t}
	if c == nil {
		c = &tls.Config{InsecureSkipVerify: true}
	}
	b.Engine = New((*under)(b), c, 1)
	return b
}

// under is the engine below.
type under bench

func (u *under) Open(int)       { u.sent, u.shut = nil, false }
func (u *under) Close(int)      { u.shut = true }
func (u *under) Release()       {}
func (u *under) Unsent(int) int { return 0 }
func (u *under) Send(_ int, b []byte) {
	if u.shut {
		u.t.Error("sent over a connection that is closed")
	}
	u.sent = append(u.sent, b)
}
func (u *under) Wait(int64, engine.Handler) error { return nil }

// Opened, Received and Closed implement engine.Handler.
func (b *bench) Opened(int, int64) { b.opens++ }

func (b *bench) Received(_ int, _ int64, data []byte) {
	b.came = append(b.came, data...)
	if b.onReceived != nil {
		b.onReceived()
	}
}

func (b *bench) Closed(_ int, _ int64, op engine.Op, err error) {
	b.ended++
	b.op, b.err = op, err
}

// wait lets the engine report its events.
func (b *bench) wait() {
	if err := b.Wait(0, b); err != nil {
		b.t.Error(err)
	}
}

// hear delivers bytes to the engine.
func (b *bench) hear(data []byte) { (*ear)(b.Engine).Received(0, 5, bytes.Clone(data)) }

// open opens the slot and makes a handshake with a server of crypto/tls.
func (b *bench) open(server *tls.Config) {
	b.t.Helper()
	b.wait()
	b.Open(0)
	b.wire = &pipe{remaining: headSize}
	b.peer = tls.Server(b.wire, server)
	done := make(chan error)
	more := make(chan bool)
	b.wire.pause = func() bool { more <- true; return <-more }
	go func() { done <- b.peer.Handshake() }()
	(*ear)(b.Engine).Opened(0, 1)
	for {
		select {
		case err := <-done:
			b.wire.pause = nil
			b.deliver()
			if err != nil && b.err == nil {
				b.t.Fatal(err)
			}
			return
		case <-more:
			b.deliver()
			for _, s := range b.sent {
				b.wire.come = append(b.wire.come, s...)
			}
			b.sent = nil
			more <- !b.shut && len(b.wire.come) > 0
		}
	}
}

// deliver delivers what the peer has written to the engine.
func (b *bench) deliver() {
	if out := bytes.Clone(b.wire.out); len(out) > 0 {
		b.wire.out = b.wire.out[:0]
		b.hear(out)
	}
}

// heard returns what the peer reads of the engine's new bytes.
func (b *bench) heard() (string, error) {
	for _, s := range b.sent {
		b.wire.come = append(b.wire.come, s...)
	}
	b.sent = nil
	var all []byte
	for {
		data := make([]byte, 1000)
		n, err := b.peer.Read(data)
		if all = append(all, data[:n]...); err != nil {
			return string(all), err
		}
	}
}

func (b *bench) say(text string) {
	b.t.Helper()
	if _, err := b.peer.Write([]byte(text)); err != nil {
		b.t.Fatal(err)
	}
	b.deliver()
}

func serving(version uint16) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MaxVersion: version}
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

// A round trip, a close_notify that the peer receives, and the next connection, which resumes the
// session.
func TestEngine(t *testing.T) {
	for _, version := range versions {
		b, server := newBench(t, nil), serving(version)
		for turn := range 3 {
			b.open(server)
			if b.opens != turn+1 || b.resumed != int64(turn) || b.err != nil {
				t.Fatalf("%s, turn %d: opened %d times, %d resumed, %v", tls.VersionName(version),
					turn, b.opens, b.resumed, b.err)
			}
			for range 3 {
				b.Send(0, []byte("hello"))
				if got, err := b.heard(); got != "hello" || !waits(err) {
					t.Fatalf("%s: the peer heard %q, %v", tls.VersionName(version), got, err)
				}
				b.came = nil
				if b.say("you"); string(b.came) != "you" || b.err != nil {
					t.Fatalf("%s: heard %q, %v", tls.VersionName(version), b.came, b.err)
				}
			}
			b.Close(0)
			if got, err := b.heard(); got != "" || err != io.EOF || !b.shut {
				t.Errorf("%s: at the end the peer heard %q, %v", tls.VersionName(version), got, err)
			}
		}
		if n := b.Handshakes().TotalCount(); n != 3 {
			t.Errorf("%s: %d handshakes, want 3", tls.VersionName(version), n)
		}
	}
}

// The peer's close_notify ends the connection without an error, its alert with an error; an end
// within a record is neither.
func TestEnds(t *testing.T) {
	for _, version := range versions {
		check := func(name string, op engine.Op, want string, do func(b *bench)) {
			t.Helper()
			b := newBench(t, nil)
			b.open(serving(version))
			b.Send(0, []byte("hello"))
			if do(b); b.ended != 1 || b.op != op || !(want == "" && b.err == nil ||
				b.err != nil && strings.Contains(b.err.Error(), want)) {
				t.Errorf("%s, %s: told %d times of %v, %v; want %q", tls.VersionName(version),
					name, b.ended, b.op, b.err, want)
			}
			b.hear([]byte("late")) // dropped
			b.wait()
			if b.ended != 1 {
				t.Errorf("%s, %s: told again: %v", tls.VersionName(version), name, b.err)
			}
		}
		check("farewell", engine.Reading, "", func(b *bench) {
			if err := b.peer.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			b.deliver()
		})
		check("end", engine.Reading, "", func(b *bench) {
			(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
		})
		check("end amidst a record", engine.Reading, "unexpected EOF", func(b *bench) {
			if _, err := b.peer.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			b.hear(b.wire.out[:len(b.wire.out)-1])
			(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
		})
		check("wrong byte", engine.Reading, "local error: tls: bad record MAC", func(b *bench) {
			if _, err := b.peer.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			b.wire.out[9] ^= 1
			b.deliver()
			if _, err := b.heard(); err == nil || err.Error() != said(alertBadRecordMAC).Error() {
				t.Errorf("%s: the peer is told %v", tls.VersionName(version), err)
			}
		})
		check("unasked", engine.Writing, "unsolicited", func(b *bench) {
			b.onReceived = func() { b.Send(0, []byte("next")) }
			for range 2 {
				if _, err := b.peer.Write([]byte("answer")); err != nil {
					t.Fatal(err)
				}
			}
			b.deliver()
		})
	}
}

// A response whose record began before the request left is not a response to it.
func TestStale(t *testing.T) {
	b := newBench(t, nil)
	b.open(serving(tls.VersionTLS13))
	if _, err := b.peer.Write([]byte("too early")); err != nil {
		t.Fatal(err)
	}
	record := bytes.Clone(b.wire.out)
	b.hear(record[:7])
	b.Send(0, []byte("hello"))
	if b.hear(record[7:]); b.ended != 1 || b.op != engine.Writing || !errors.Is(b.err, errUnasked) {
		t.Errorf("told %d times of %v, %v", b.ended, b.op, b.err)
	}
}

// Key updates of the peer are followed, and answered before the next request.
func TestKeyUpdate(t *testing.T) {
	b := newBench(t, nil)
	log := secrets{}
	c := serving(tls.VersionTLS13)
	c.KeyLogWriter, c.SessionTicketsDisabled = log, true
	b.open(c)
	id := b.peer.ConnectionState().CipherSuite
	out := &mouth{server{half: *keyed(t, id, unhex(t, string(log["SERVER_TRAFFIC_SECRET_0"])))}}
	in := keyed(t, id, unhex(t, string(log["CLIENT_TRAFFIC_SECRET_0"])))
	for range 3 {
		update(&out.server, 1)
		update(&out.server, 1)
		b.hear(out.flush())
		b.Send(0, []byte("hello"))
		said := slices.Concat(b.sent...)
		b.sent = nil
		n, _ := size(said)
		m, kind, err := in.open(said[:n])
		if kind != typeHandshake || !bytes.Equal(m, updated) || err != nil {
			t.Fatalf("the first record is %x of type %d, %v", m, kind, err)
		}
		if err := in.update(); err != nil {
			t.Fatal(err)
		}
		m, kind, err = in.open(said[n:])
		if kind != typeData || string(m) != "hello" || err != nil {
			t.Fatalf("the second record is %q of type %d, %v", m, kind, err)
		}
		b.came = nil
		out.say(typeData, []byte("you"))
		if b.hear(out.flush()); string(b.came) != "you" || b.err != nil {
			t.Fatalf("heard %q, %v", b.came, b.err)
		}
	}
}

// mouth is a server whose bytes are sent.
type mouth struct{ server }

func (s *mouth) flush() []byte {
	b := s.said
	s.said = nil
	return b
}

// A handshake fails as in crypto/tls, and is reported as a failed connect.
func TestFailedHandshakes(t *testing.T) {
	check := func(name, want string, c *tls.Config, do func(b *bench)) {
		t.Helper()
		b := newBench(t, c)
		b.wait()
		b.Open(0)
		(*ear)(b.Engine).Opened(0, 1)
		do(b)
		if b.ended != 1 || b.op != engine.Connecting || b.opens != 0 || !b.shut ||
			!strings.Contains(b.err.Error(), want) {
			t.Errorf("%s: told %d times of %v, %v; want %q", name, b.ended, b.op, b.err, want)
		}
	}
	check("HTTP", "plain HTTP", nil, func(b *bench) { b.hear([]byte("HTTP/1.1 400 Bad\r\n")) })
	check("SSH", "does not speak TLS", nil, func(b *bench) { b.hear([]byte("SSH-2.0-Open\r\n")) })
	check("alert", "remote error: tls: handshake failure", nil, func(b *bench) {
		b.hear([]byte{typeAlert, 3, 3, 0, 2, 2, 40})
	})
	check("endless record", "does not speak TLS", nil, func(b *bench) {
		b.hear([]byte{typeHandshake, 3, 3, 255, 255})
	})
	check("end", "EOF", nil, func(b *bench) {
		(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
	})
	check("reset", "reset", nil, func(b *bench) {
		(*ear)(b.Engine).Closed(0, 9, engine.Reading, errors.New("reset"))
	})
	b := newBench(t, &tls.Config{ServerName: "example.com"})
	if b.open(serving(tls.VersionTLS13)); b.ended != 1 || b.op != engine.Connecting ||
		!strings.Contains(b.err.Error(), "no trusted authority") {
		t.Errorf("a stranger's certificate: %v, %v", b.op, b.err)
	}
}

// Between a request and its response nothing is allocated, for any size and pieces of the response.
func TestNoAllocations(t *testing.T) {
	b := newBench(t, nil)
	log := secrets{}
	server := serving(tls.VersionTLS13)
	server.KeyLogWriter = log
	b.open(server)
	b.came = make([]byte, 0, 100<<20)
	out := keyed(t, b.peer.ConnectionState().CipherSuite,
		unhex(t, string(log["SERVER_TRAFFIC_SECRET_0"])))
	out.seq = 1 // after the ticket
	request, answer := make([]byte, 100), make([]byte, 40000)
	sealed := make([]byte, 0, room(len(answer)))
	round := func() {
		b.Send(0, request)
		b.sent = b.sent[:0]
		sealed = out.seal(sealed[:0], answer)
		for k := 0; k < len(sealed); k += 15000 {
			(*ear)(b.Engine).Received(0, 5, sealed[k:min(k+15000, len(sealed))])
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n != 0 || len(b.came) != 1002*len(answer) {
		t.Errorf("%v allocations a round trip, %d bytes, %v", n, len(b.came), b.err)
	}
}

// Any input in place of a handshake, in any pieces, fails as in crypto/tls, which reads it at once,
// and leaves nothing behind.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), uint8(3))
	f.Add([]byte{typeAlert, 3, 3, 0, 2, 2, 40}, uint8(1))
	f.Add([]byte{typeHandshake, 3, 3, 0, 4, 2, 0, 0, 0, typeData, 3, 3, 0, 1, 0}, uint8(2))
	f.Add([]byte{typeHandshake, 3, 3, 0, 8, 2, 1, 0, 0, 3, 3, 1, 2}, uint8(9))
	f.Add([]byte{typeCipherSpec, 3, 3, 0, 1, 1, typeHandshake, 3, 3, 0, 0}, uint8(4))
	f.Fuzz(func(t *testing.T, said []byte, piece uint8) {
		w := &wire{cut: true, come: bytes.Clone(said), end: io.EOF}
		want := tls.Client(w, &tls.Config{InsecureSkipVerify: true}).Handshake()
		b := newBench(t, nil)
		b.wait()
		b.Open(0)
		(*ear)(b.Engine).Opened(0, 1)
		for len(said) > 0 && b.ended == 0 {
			n := min(int(piece)+1, len(said))
			b.hear(said[:n])
			said = said[n:]
		}
		if b.ended == 0 {
			(*ear)(b.Engine).Closed(0, 9, engine.Reading, nil)
		}
		if want == nil || b.ended != 1 || b.op != engine.Connecting || b.slots[0].shake != nil ||
			errors.Unwrap(b.err).Error() != socket.Handshake(want, false).Error() {
			t.Errorf("told %d times of %v, %v; crypto/tls has %v", b.ended, b.op, b.err, want)
		}
	})
}
