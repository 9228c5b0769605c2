package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"prony.example/internal/dev/testsets"
)

// Frames of HTTP/3 (RFC 9114, section 7.2).
const (
	frameData     = 0
	frameHeaders  = 1
	frameSettings = 4
	frameGoAway   = 7
)

// Header blocks in QPACK that use only its static table (RFC 9204, appendix A).
var (
	head200 = []byte{0, 0, 0xc0 | 25}
	head103 = []byte{0, 0, 0xc0 | 24}
	headTen = append(bytes.Clone(head200), 0x54, 2, '1', '0') // content-length: 10
)

// frame returns a frame whose payload claims to have a length.
func frame(kind uint64, length int, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(length)), payload...)
}

func entire(kind uint64, payload []byte) []byte { return frame(kind, len(payload), payload) }

// quicAnswer is a peer that reads each request and responds.
func quicAnswer(answer func(*quic.Conn, *quic.Stream)) func(*quic.Conn) {
	return func(c *quic.Conn) {
		steer(c, entire(frameSettings, nil))
		for {
			s, err := c.AcceptStream(context.Background())
			if err != nil {
				return
			}
			go func() {
				io.Copy(io.Discard, s)
				answer(c, s)
			}()
		}
	}
}

// quicFlood responds with a beginning, and then more endlessly.
func quicFlood(begin, more []byte) func(*quic.Conn) {
	return quicAnswer(func(_ *quic.Conn, s *quic.Stream) {
		_, err := s.Write(begin)
		for err == nil {
			_, err = s.Write(more)
		}
	})
}

// steer opens a control stream and writes frames to it.
func steer(c *quic.Conn, frames []byte) (s *quic.SendStream, err error) {
	s, err = c.OpenUniStreamSync(c.Context())
	if err == nil {
		_, err = s.Write(append([]byte{0}, frames...))
	}
	if err != nil {
		c.CloseWithError(0, "")
	}
	return s, err
}

// peers3 are hostile peers of HTTP/3, like peers.
var peers3 = []struct {
	name, scheme, words string
	do                  func(*quic.Conn)
}{
	{"nobody's certificate", "h3 trusting", "--ca FILE", func(*quic.Conn) {}},
	{"says nothing", "h3", "timeout", func(*quic.Conn) {}},
	{"closes at once", "h3", "", func(c *quic.Conn) { c.CloseWithError(0, "bye") }},
	{"goes away at once", "h3", "", func(c *quic.Conn) {
		steer(c, append(entire(frameSettings, nil), entire(frameGoAway, []byte{0})...))
	}},
	{"settings without end", "h3", "", func(c *quic.Conn) {
		s, err := steer(c, nil)
		for err == nil {
			_, err = s.Write(entire(frameSettings, nil))
		}
	}},
	{"frames of nobody", "h3", "timeout", func(c *quic.Conn) {
		s, err := steer(c, entire(frameSettings, nil))
		for err == nil {
			_, err = s.Write(entire(0x21, make([]byte, 1000)))
		}
	}},
	{"streams of its own", "h3", "timeout", func(c *quic.Conn) {
		for {
			s, err := c.OpenUniStreamSync(context.Background())
			if err != nil {
				return
			}
			s.Write([]byte{0x21, 1, 2, 3})
			s.Close()
		}
	}},
	{"an answer without end", "h3 many", "within 64 MiB", quicFlood(entire(frameHeaders, head200),
		entire(frameData, make([]byte, 64<<10)))},
	{"a frame without end", "h3 many", "within 64 MiB", quicFlood(append(entire(frameHeaders,
		head200), frame(frameData, 1<<61, nil)...), make([]byte, 64<<10))},
	{"frames of nothing", "h3", "timeout", quicFlood(entire(frameHeaders, head200),
		bytes.Repeat(entire(frameData, nil), 1000))},
	{"a head without end", "h3", "", quicFlood(frame(frameHeaders, 1<<60, nil),
		make([]byte, 64<<10))},
	{"a head that is told 60,000 times", "h3", "", quicFlood(entire(frameHeaders,
		append(bytes.Clone(head200), bytes.Repeat([]byte{0xc0 | 42}, 60_000)...)), nil)},
	{"early hints without end", "h3", "", quicFlood(nil, entire(frameHeaders, head103))},
	{"a body before its head", "h3", "", quicFlood(entire(frameData, []byte("x")), nil)},
	{"every stream is reset", "h3", "", quicAnswer(func(_ *quic.Conn, s *quic.Stream) {
		s.CancelWrite(quic.StreamErrorCode(http3.ErrCodeInternalError))
	})},
	{"less than it promised", "h3", "read the body", quicAnswer(func(_ *quic.Conn,
		s *quic.Stream) {
		s.Write(append(entire(frameHeaders, headTen), entire(frameData, []byte("abc"))...))
		s.Close()
	})},
	{"closes amid an answer", "h3", "", quicAnswer(func(c *quic.Conn, s *quic.Stream) {
		s.Write(append(entire(frameHeaders, head200), frame(frameData, 1000, []byte("abc"))...))
		time.Sleep(20 * time.Millisecond) // so that part of it is read
		c.CloseWithError(0, "bye")
	})},
	{"ends amid a frame", "h3", "read the body", quicAnswer(func(_ *quic.Conn, s *quic.Stream) {
		s.Write(append(entire(frameHeaders, headTen), frame(frameData, 1000, []byte("abc"))...))
		s.Close()
	})},
}

// As TestHostilePeers, for HTTP/3.
func TestHostilePeersOfHTTP3(t *testing.T) {
	testsets.Once(t, "every hostile peer of HTTP/3", testsets.Needs{})
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	certificate.Close()
	speaking := func(t *testing.T, protocol string, do func(*quic.Conn)) string {
		l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{NextProtos: []string{protocol},
			Certificates: certificate.TLS.Certificates}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept(context.Background())
				if err != nil {
					return
				}
				go do(c)
			}
		}()
		return l.Addr().String()
	}
	for _, row := range peers3 {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			meetHostileAt(t, row.scheme, speaking(t, http3.NextProtoH3, row.do), row.words)
		})
	}
	t.Run("another protocol", func(t *testing.T) {
		t.Parallel()
		meetHostileAt(t, "h3", speaking(t, "h2", func(*quic.Conn) {}), "application protocol")
	})
	for _, says := range []string{"", "no QUIC at all"} {
		t.Run("no QUIC, but "+strconv.Quote(says), func(t *testing.T) {
			t.Parallel()
			l, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
			go func() {
				for b := make([]byte, 2000); ; {
					_, from, err := l.ReadFrom(b)
					if err != nil {
						return
					}
					for range 100 * len(says) {
						l.WriteTo([]byte(says), from)
					}
				}
			}()
			meetHostileAt(t, "h3", l.LocalAddr().String(), "none was within 500ms")
		})
	}
}
