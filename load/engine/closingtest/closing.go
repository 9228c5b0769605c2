// Package closingtest runs complete loads over an engine against servers that close connections or
// permit few streams.
// These tests cannot be in package enginetest, because it does not import package load.
package closingtest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"prony.example/load"
	"prony.example/load/engine/enginetest"
	"prony.example/record"
)

// bound ends a load that would otherwise hang; it does not affect results.
const bound = 20 * time.Second

// keeps is the number of requests that the servers of these tests accept on a connection.
const keeps = 10

// HTTP1 runs HTTP/1.1 loads, over engines that make returns, against servers that close
// connections. It tests that all legal ways to close between requests cause no failure, and that
// other closes cause one. If server is not nil, the servers use TLS.
func HTTP1(t *testing.T, server *tls.Config, make enginetest.Make) {
	offer := func(t *testing.T, method string, requests int64, end func(c *asked)) *load.Result {
		addr := listenFor(t, server, func(c net.Conn, tcp *net.TCPConn) {
			a := &asked{c: c, tcp: tcp, in: bufio.NewReader(c)}
			for a.n = 1; a.next() == nil; a.n++ {
				if a.n == keeps || a.n == 1 {
					end(a)
				}
				if a.over {
					return
				}
				a.answer("")
			}
		})
		protocol := ""
		if server != nil {
			protocol = "HTTP/1.1 over TLS"
		}
		return offerTo(t, addr, protocol, 4, requests, method, "", make)
	}
	const requests = 400
	check := func(name string, again bool, end func(a *asked)) {
		t.Run(name, func(t *testing.T) {
			r := offer(t, http.MethodGet, requests, end)
			if r.Answered != requests || r.Errors.Total() != 0 || r.Reconnects < requests/keeps-8 ||
				again != (r.Retried > 0) || r.Retried > 2*requests/keeps {
				t.Errorf("%d of %d answered, %d retried over %d new connections, %+v", r.Answered,
					requests, r.Retried, r.Reconnects, r.Errors)
			}
		})
	}
	check("announced", false, polite)
	check("without a word", true, rude)
	check("reset", true, func(a *asked) { a.last(a.reset) })
	partings(t, server, offer, check)
	t.Run("must not be sent twice", func(t *testing.T) {
		r := offer(t, http.MethodPost, requests, rude)
		if r.Answered+r.Errors.Closed != requests || r.Errors.Total() != r.Errors.Closed ||
			r.Retried+r.Errors.Closed == 0 {
			t.Errorf("%d of %d answered, %d retried, %+v", r.Answered, requests, r.Retried,
				r.Errors)
		}
	})
	t.Run("amidst an answer", func(t *testing.T) {
		r := offer(t, http.MethodGet, requests, func(a *asked) {
			if a.n == keeps {
				a.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
				a.close()
			}
		})
		// Each connection has one, except the last ones of the load.
		if n := r.Errors.Read; n < requests/keeps-4 || n != r.Errors.Total() ||
			r.Answered+n != requests || r.Retried != 0 {
			t.Errorf("%d of %d answered, %d retried, %+v", r.Answered, requests, r.Retried,
				r.Errors)
		}
	})
	t.Run("early answers", func(t *testing.T) {
		early(t, server, make)
	})
	t.Run("before the first answer", func(t *testing.T) {
		r := offer(t, http.MethodGet, 20, (*asked).reset)
		if n := r.Errors.Read + r.Errors.Write; n != 20 || r.Answered != 0 || r.Retried != 0 {
			t.Errorf("%d answered, %d retried, %+v", r.Answered, r.Retried, r.Errors)
		}
	})
}

// partings tests a server that says it waits for no further request, and responses whose end is
// that of the connection.
func partings(t *testing.T, server *tls.Config,
	offer func(t *testing.T, method string, requests int64, end func(c *asked)) *load.Result,
	check func(name string, again bool, end func(a *asked))) {
	check("gives up waiting", true, func(a *asked) {
		a.last(func() {
			time.Sleep(2 * time.Millisecond) // the next request has left, as a rule
			a.say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n" +
				"Content-Length: 0\r\n\r\n")
			a.close()
		})
	})
	if server != nil {
		t.Run("without close_notify", func(t *testing.T) {
			const n = 20
			r := offer(t, http.MethodGet, n, func(a *asked) {
				a.say("HTTP/1.1 200 OK\r\n\r\nok")
				a.over = true
				a.tcp.Close()
			})
			if r.Errors.Read != n || r.Errors.Total() != n || r.Answered != 0 {
				t.Errorf("%d answered, %+v", r.Answered, r.Errors)
			}
		})
	}
	t.Run("an answer without a length", func(t *testing.T) {
		const n = 20
		r := offer(t, http.MethodGet, n, func(a *asked) {
			a.say("HTTP/1.1 200 OK\r\n\r\nok")
			a.close()
		})
		if r.Answered != n || r.Errors.Total() != 0 || r.Retried != 0 {
			t.Errorf("%d of %d answered, %+v", r.Answered, n, r.Errors)
		}
	})
}

// early tests a server that responds to large requests without reading their bodies. No response is
// lost, no connection is used twice, and only sent bytes are counted.
func early(t *testing.T, server *tls.Config, make enginetest.Make) {
	const requests, size = 20, 16 << 20
	addr := listenFor(t, server, func(c net.Conn, _ *net.TCPConn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			a := &asked{c: c}
			a.answer("")
		}
		<-t.Context().Done()
	})
	r := offerTo(t, addr, "HTTP/1.1 over TLS", 2, requests, http.MethodPost,
		strings.Repeat("x", size), make)
	if r.Answered != requests || r.Early != requests || r.Errors.Total() != 0 {
		t.Errorf("%d of %d answered, %d early, %+v", r.Answered, requests, r.Early, r.Errors)
	}
	if r.BytesOut < requests || r.BytesOut > requests*size*3/4 {
		t.Errorf("%d of %d bytes went out", r.BytesOut, requests*size)
	}
}

// Certificate returns TLS configurations for a server and a client that trusts it, with HTTP/1.1 or
// HTTP/2.
func Certificate(t *testing.T, protocol string) (server, client *tls.Config) {
	signed := httptest.NewUnstartedServer(nil)
	signed.StartTLS()
	t.Cleanup(signed.Close)
	server = &tls.Config{Certificates: signed.TLS.Certificates, NextProtos: []string{protocol}}
	client = &tls.Config{ServerName: "example.com", RootCAs: x509.NewCertPool(),
		NextProtos: []string{protocol}}
	client.RootCAs.AddCert(signed.Certificate())
	return server, client
}

// asked is the server side of an HTTP/1.1 connection, with the number of the current request.
type asked struct {
	c    net.Conn
	tcp  *net.TCPConn
	in   *bufio.Reader
	n    int
	over bool
}

func (a *asked) next() error {
	r, err := http.ReadRequest(a.in)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	return err
}

func (a *asked) answer(fields string) {
	a.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + fields + "\r\nok")
}

// say writes. It ignores errors, because a lost response fails the test anyway.
func (a *asked) say(text string) { _, _ = io.WriteString(a.c, text) }

func (a *asked) close() {
	a.over = true
	a.c.Close()
}

func (a *asked) reset() {
	a.over = true
	_ = a.tcp.SetLinger(0) // cannot fail on an open socket
	a.tcp.Close()
}

// last responds to the last request of the connection, and ends the connection.
func (a *asked) last(end func()) {
	if a.n == keeps {
		a.answer("")
		end()
	}
}

func rude(a *asked) { a.last(a.close) }

func polite(a *asked) {
	if a.n == keeps {
		a.answer("Connection: close\r\n")
		a.close()
	}
}

// HTTP2 is HTTP1 for HTTP/2. Its servers send GOAWAY, also with an error code, and refuse streams.
func HTTP2(t *testing.T, server *tls.Config, make enginetest.Make) {
	const requests = 500
	offer := func(t *testing.T, serve func(w *leaver, id uint32) error) *load.Result {
		addr := listenFor(t, server, func(c net.Conn, _ *net.TCPConn) { leave(c, false, serve) })
		return offerTo(t, addr, "HTTP/2", 10, requests, http.MethodPost, "", make)
	}
	check := func(name string, serve func(w *leaver, id uint32) error) {
		t.Run(name, func(t *testing.T) {
			r := offer(t, serve)
			if r.Answered != requests || r.Errors.Total() != 0 || r.Retried == 0 {
				t.Errorf("%d of %d answered, %d retried, %+v", r.Answered, requests, r.Retried,
					r.Errors)
			}
		})
	}
	for _, code := range []http2.ErrCode{http2.ErrCodeNo, http2.ErrCodeInternal} {
		check("goes away with "+code.String(), func(w *leaver, id uint32) error {
			if w.n > keeps {
				return nil // not processed
			}
			err := w.answer(id)
			if w.n == keeps {
				err = errors.Join(err, w.WriteGoAway(id, code, nil))
			}
			return err
		})
	}
	check("refuses streams", func(w *leaver, id uint32) error {
		if w.n%7 == 0 {
			return w.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}
		return w.answer(id)
	})
	t.Run("early answers", func(t *testing.T) {
		const size = 1 << 20
		addr := listenFor(t, server, func(c net.Conn, _ *net.TCPConn) {
			leave(c, true, (*leaver).answer)
		})
		r := offerTo(t, addr, "HTTP/2", 1, 20, http.MethodPost, strings.Repeat("x", size), make)
		if r.Answered != 20 || r.Early != 20 || r.Errors.Total() != 0 || r.Reconnects != 0 {
			t.Errorf("%d of 20 answered, %d early over %d new connections, %+v", r.Answered,
				r.Early, r.Reconnects, r.Errors)
		}
		// No window allows more than 64 KiB of a body.
		if r.BytesOut < 20 || r.BytesOut > 20*128<<10 {
			t.Errorf("%d bytes went out", r.BytesOut)
		}
	})
	t.Run("breaks streams", func(t *testing.T) {
		r := offer(t, func(w *leaver, id uint32) error {
			if w.n%7 == 0 {
				return w.WriteRSTStream(id, http2.ErrCodeInternal)
			}
			return w.answer(id)
		})
		if n := r.Errors.Read; n < requests/8 || r.Answered+n != requests || r.Retried != 0 {
			t.Errorf("%d of %d answered, %d retried, %+v", r.Answered, requests, r.Retried,
				r.Errors)
		}
	})
}

// leaver is the server side of an HTTP/2 connection, with the number of the current request.
type leaver struct {
	*http2.Framer
	n int
}

// leave serves each request of a connection: at its head, or at its end. It permits no more of the
// bodies than the initial window of the connection.
func leave(c io.ReadWriter, atHead bool, serve func(w *leaver, id uint32) error) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	w := &leaver{Framer: http2.NewFramer(c, c)}
	err := w.WriteSettings()
	for err == nil {
		var f http2.Frame
		if f, err = w.ReadFrame(); err != nil {
			return
		}
		ended := false
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = w.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				err = w.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			ended = atHead || f.StreamEnded()
		case *http2.DataFrame:
			ended = !atHead && f.StreamEnded()
		}
		if ended {
			w.n++
			err = errors.Join(err, serve(w, f.Header().StreamID))
		}
	}
}

// answer responds to a stream.
func (w *leaver) answer(id uint32) error {
	var block bytes.Buffer
	// Writing to memory does not fail.
	_ = hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	return errors.Join(w.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true,
		BlockFragment: block.Bytes()}), w.WriteData(id, true, []byte("ok")))
}

// listenFor serves each connection with f, over TLS if server is not nil.
func listenFor(t *testing.T, server *tls.Config,
	f func(c net.Conn, tcp *net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go enginetest.Serve(l, func(c net.Conn) {
		tcp := c.(*net.TCPConn)
		if server == nil {
			f(c, tcp)
			return
		}
		over := tls.Server(c, server)
		if over.Handshake() == nil {
			f(over, tcp)
		}
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// offerTo sends a number of requests over engines that make returns.
func offerTo(t *testing.T, addr netip.AddrPort, protocol string, connections int, requests int64,
	method, body string, make enginetest.Make) *load.Result {
	t.Helper()
	r, err := load.Run(context.Background(), load.Spec{
		Name: "test", Address: addr, Host: "example.com", Model: record.Closed,
		Connections: connections, Requests: requests, Window: bound,
		Drain: bound, Timeout: bound, Engine: make,
		Describe: load.EngineInfo{Protocol: protocol},
		Scenario: load.Scenario{Requests: []load.Request{
			{Method: method, Path: "/", Body: body, Want: "ok", HasWant: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
