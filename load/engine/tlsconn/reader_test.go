package tlsconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// secrets is a key log: the traffic secrets of a connection, by name.
type secrets map[string][]byte

func (s secrets) Write(b []byte) (int, error) {
	f := strings.Fields(string(b))
	s[f[0]] = []byte(f[2])
	return len(b), nil
}

// wire is a connection that becomes a buffer when it is cut: available bytes can be read, and no
// more come.
type wire struct {
	net.Conn
	cut  bool
	come []byte
	end  error
}

func (w *wire) Read(b []byte) (int, error) {
	if !w.cut {
		return w.Conn.Read(b)
	}
	if len(w.come) == 0 {
		return 0, w.end
	}
	n := copy(b, w.come)
	w.come = w.come[n:]
	return n, nil
}

func (w *wire) Write(b []byte) (int, error) {
	if !w.cut {
		return w.Conn.Write(b)
	}
	return len(b), nil
}

// certificate returns a server's certificate, signed by no trusted authority.
var certificate = func() tls.Certificate {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	return s.TLS.Certificates[0]
}()

// oracle is crypto/tls's client after a handshake over a wire that has been cut, and the half with
// which a server would encrypt.
func oracle(t testing.TB) (conn *tls.Conn, w *wire, id uint16, secret []byte) {
	t.Helper()
	here, there := net.Pipe()
	log := secrets{}
	w = &wire{Conn: here, end: os.ErrDeadlineExceeded}
	conn = tls.Client(w, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: log,
		MinVersion: tls.VersionTLS13})
	server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{certificate},
		SessionTicketsDisabled: true})
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	if err := errors.Join(conn.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	w.cut = true
	return conn, w, conn.ConnectionState().CipherSuite,
		unhex(t, string(log["SERVER_TRAFFIC_SECRET_0"]))
}

// server encrypts messages of a script one after the other.
type server struct {
	half
	said []byte
}

func (s *server) say(kind byte, b []byte) { s.said = s.record(s.said, kind, b) }

// padded returns a record with zeros after its type.
func (s *server) padded(kind byte, b []byte, zeros int) {
	if len(b)+zeros > sealedMax { // no head can announce more, and no peer accepts it
		zeros = sealedMax - len(b)
	}
	plain := append(append([]byte(nil), b...), kind)
	plain = append(plain, make([]byte, zeros)...)
	n := len(plain) + tagSize
	head := []byte{typeData, 3, 3, byte(n >> 8), byte(n)}
	s.said = append(append(s.said, head...), s.aead.Seal(nil, s.number(), plain, head)...)
}

// ticket returns a message with a NewSessionTicket of a size (RFC 8446, section 4.6.1).
func ticket(size int) []byte {
	b := []byte{0, 0, 0, 60, 1, 2, 3, 4, 1, 9, byte(size >> 8), byte(size)}
	b = append(append(b, make([]byte, size)...), 0, 0)
	return append([]byte{messageTicket, 0, byte(len(b) >> 8), byte(len(b))}, b...)
}

// heard is what was read of a server's bytes, and how it ended.
type heard struct {
	data []byte
	end  string
}

// ask lets crypto/tls read.
func ask(conn *tls.Conn) (h heard) {
	b := make([]byte, 1000)
	for {
		n, err := conn.Read(b)
		h.data = append(h.data, b[:n]...)
		if err != nil {
			h.end = ending(err)
			return h
		}
	}
}

// ending returns an error in terms that both sides share: only crypto/tls names unsupported
// messages.
func ending(err error) string {
	switch {
	case err == nil || errors.Is(err, os.ErrDeadlineExceeded):
		return "open"
	case strings.Contains(err.Error(), "unexpected handshake message of type"),
		strings.Contains(err.Error(), "buffer not empty before setting read"):
		return wrong(alertUnexpectedMessage).Error()
	case strings.Contains(err.Error(), "handshake message of length"):
		return wrong(alertInternalError).Error()
	}
	return err.Error()
}

// listen lets the reader read, in pieces whose sizes repeat in turn.
func listen(in *reader, said []byte, pieces []int) (h heard) {
	for k := 0; len(said) > 0; k++ {
		n := min(max(pieces[k%len(pieces)], 1), len(said))
		b := bytes.Clone(said[:n])
		for said = said[n:]; ; {
			data, rest, err := in.next(b)
			h.data = append(h.data, data...)
			if err != nil {
				h.end = ending(err)
				return h
			}
			if data == nil {
				break
			}
			b = rest
		}
	}
	h.end = "open"
	return h
}

// compare compares the reader with crypto/tls: the same bytes, in the same pieces or others, must
// give the same data and the same end.
func compare(t *testing.T, speak func(s *server), pieces ...int) heard {
	t.Helper()
	conn, w, id, secret := oracle(t)
	s := &server{half: *keyed(t, id, secret)}
	speak(s)
	w.come = bytes.Clone(s.said)
	want := ask(conn)
	for _, p := range [][]int{pieces, {1 << 20}, {1}, {4, 2}} {
		in := &reader{half: *keyed(t, id, secret), room: &rooms{}}
		got := listen(in, s.said, p)
		if !bytes.Equal(got.data, want.data) || got.end != want.end {
			t.Fatalf("in pieces of %v: %d bytes, %q; crypto/tls has %d bytes, %q", p,
				len(got.data), got.end, len(want.data), want.end)
		}
	}
	return want
}

// saying is what a server sends, and what is read of it.
type saying struct {
	name, data, end string
	speak           func(s *server)
}

var sayings = []saying{
	{"data", "hello", "open", func(s *server) {
		s.say(typeData, []byte("hel"))
		s.say(typeData, []byte("lo"))
	}},
	{"padding", "hello", "open", func(s *server) { s.padded(typeData, []byte("hello"), 300) }},
	{"nothing but padding", "", "local error: tls: unexpected message", func(s *server) {
		s.padded(0, nil, 9)
	}},
	{"tickets and updates", "hello", "EOF", func(s *server) {
		s.say(typeHandshake, append(ticket(200), ticket(30)...))
		long := ticket(20000)
		s.say(typeHandshake, long[:3])
		s.say(typeHandshake, long[3:9000])
		s.say(typeHandshake, long[9000:])
		update(s, 1)
		s.say(typeData, []byte("hel"))
		update(s, 0)
		update(s, 1)
		s.say(typeData, []byte("lo"))
		s.say(typeAlert, []byte{1, alertCloseNotify})
	}},
	{"an update that goes on", "", "local error: tls: unexpected message", func(s *server) {
		s.say(typeHandshake, []byte{messageKeyUpdate, 0, 0, 1, 0, messageTicket})
	}},
	{"an alert", "x", "remote error: tls: internal error", func(s *server) {
		s.say(typeData, []byte("x"))
		s.say(typeAlert, []byte{2, alertInternalError})
	}},
	{"a change of ciphers", "x", "open", func(s *server) {
		s.said = append(s.said, typeCipherSpec, 3, 3, 0, 1, 1)
		s.say(typeData, []byte("x"))
	}},
	{"some records of nothing", "xyz", "open", func(s *server) {
		for _, text := range []string{"x", "y", "z"} { // data resets the count
			s.say(typeData, []byte(text))
			for range uselessMax {
				s.say(typeData, nil)
			}
		}
	}},
	{"some updates", "xy", "open", func(s *server) {
		for _, text := range []string{"x", "y"} {
			for range uselessMax {
				update(s, 1)
			}
			s.say(typeData, []byte(text))
		}
	}},
	{"data amidst a message", "", "local error: tls: unexpected message", func(s *server) {
		s.say(typeHandshake, ticket(40)[:10])
		s.say(typeData, []byte("x"))
	}},
}

// endless are the ways of malicious servers, or of servers without TLS.
var endless = []saying{
	{"no end of nothing", "x", "tls: too many ignored records", func(s *server) {
		s.say(typeData, []byte("x"))
		for range uselessMax + 1 {
			s.say(typeData, nil)
		}
	}},
	{"no end of updates", "", "tls: too many non-advancing records", func(s *server) {
		for range uselessMax + 1 {
			update(s, 1)
		}
	}},
	{"a message without end", "", wrong(alertInternalError).Error(), func(s *server) {
		s.say(typeHandshake, []byte{messageTicket, 1, 0, 1})
	}},
	{"a wrong byte", "x", "local error: tls: bad record MAC", func(s *server) {
		s.say(typeData, []byte("x"))
		s.say(typeData, []byte("y"))
		s.said[len(s.said)-1]++
	}},
	{"in the clear", "", "local error: tls: bad record MAC", func(s *server) {
		s.said = append(s.said, typeAlert, 3, 3, 0, 2, 2, 40)
	}},
	{"too large", "", "tls: oversized record received with length 16641", func(s *server) {
		s.said = append(s.said, typeData, 3, 3, 65, 1)
	}},
	{"as large as may be", strings.Repeat("x", plainMax), "open", func(s *server) {
		s.say(typeData, bytes.Repeat([]byte("x"), plainMax))
	}},
	{"too much data", "", "local error: tls: record overflow", func(s *server) {
		s.padded(typeData, make([]byte, plainMax+1), 0)
	}},
	{"too much padding", "x", "local error: tls: record overflow", func(s *server) {
		s.padded(typeData, []byte("x"), plainMax-1)
		s.padded(typeData, []byte("y"), plainMax)
	}},
	{"an older version", "", "tls: received record with version 301 when expecting version 303",
		func(s *server) { s.said = append(s.said, typeData, 3, 1, 0, 1) }},
	{"another protocol", "", "tls: received record with version 5454 when expecting version 303",
		func(s *server) { s.said = append(s.said, "HTTP/1.1 400"...) }},
}

func update(s *server, asked byte) {
	s.say(typeHandshake, []byte{messageKeyUpdate, 0, 0, 1, asked})
	if err := s.update(); err != nil {
		panic(err)
	}
}

func TestReader(t *testing.T) {
	for _, row := range append(sayings, endless...) {
		t.Run(row.name, func(t *testing.T) {
			got := compare(t, row.speak, 7, 1000)
			if string(got.data) != row.data || got.end != row.end {
				t.Errorf("heard %d bytes, %q; want %d, %q", len(got.data), got.end, len(row.data),
					row.end)
			}
		})
	}
}

// script lets a server send what the bytes encode, each of them a step.
func script(s *server, steps []byte) {
	for k, step := range steps {
		n := k * 131 % 700
		switch step % 16 {
		case 0, 1, 2:
			s.say(typeData, bytes.Repeat([]byte{step}, n))
		case 3:
			s.padded(typeData, bytes.Repeat([]byte{step}, n), int(step)*70)
		case 4:
			s.say(typeHandshake, ticket(n+1))
		case 5:
			long := ticket(n + 40)
			s.say(typeHandshake, long[:30])
			s.say(typeHandshake, long[30:])
		case 6, 7:
			s.say(typeHandshake, []byte{messageKeyUpdate, 0, 0, 1, step & 1})
			_ = s.update() // a key that cannot be derived makes both sides fail
		case 8:
			s.said = append(s.said, typeCipherSpec, 3, 3, 0, 1, 1)
		case 9:
			s.say(typeAlert, []byte{1, alertUserCanceled})
		case 10:
			s.say(typeData, bytes.Repeat([]byte{step}, plainMax-int(step)/16))
		case 11:
			s.said[k*7919%len(s.said)] ^= step // a wrong byte, anywhere
		case 12:
			s.say(step, []byte{1, step})
		case 13:
			s.say(typeAlert, []byte{step, step / 16})
		case 14:
			b := []byte{step, 0, 0, step / 64, 0, 0, 0}
			s.padded(typeHandshake, b[:4+step/64], 3)
		case 15:
			s.said = s.said[:len(s.said)-len(s.said)%(int(step)+1)] // lost bytes
		}
		if len(s.said) == 0 {
			s.say(typeData, []byte("first"))
		}
	}
}

// For any bytes of a server, the reader and crypto/tls agree.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, uint16(5))
	f.Add([]byte{4, 0, 0x63, 0, 11}, uint16(1))
	f.Add([]byte{0, 15, 0}, uint16(900))
	f.Add([]byte{0, 0x1c, 0x2c}, uint16(30))
	f.Add([]byte{0, 0x0d}, uint16(3000))
	f.Add([]byte{4, 0xee, 0x5e}, uint16(3))
	f.Fuzz(func(t *testing.T, steps []byte, piece uint16) {
		if len(steps) > 60 {
			steps = steps[:60]
		}
		compare(t, func(s *server) {
			s.say(typeData, []byte("first"))
			script(s, steps)
		}, int(piece), 3)
	})
}

// The end of the connection within a record is not an orderly end.
func TestPartial(t *testing.T) {
	secret := make([]byte, 32)
	s := &server{half: *keyed(t, tls.TLS_AES_128_GCM_SHA256, secret)}
	s.say(typeData, []byte("hello"))
	in := &reader{half: *keyed(t, tls.TLS_AES_128_GCM_SHA256, secret), room: &rooms{}}
	for n := range s.said {
		if data, _, err := in.next(s.said[n : n+1 : n+1]); (n == len(s.said)-1) != (data != nil) ||
			err != nil || in.partial() != (data == nil) {
			t.Fatalf("byte %d: %q, %v, partial %v", n, data, err, in.partial())
		}
	}
	s.say(typeAlert, []byte{1, alertCloseNotify})
	if _, _, err := in.next(s.said[len(s.said)-2-addedSize:]); err != io.EOF {
		t.Errorf("the end is %v", err)
	}
	in.drop()
	if len(in.room.free) != 1 || in.partial() {
		t.Errorf("%d rooms are free, want the one that there is", len(in.room.free))
	}
}
