package nethttp_test

import (
	"context"
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"prony.example/internal/base/clock"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/engine/socket"
	"prony.example/record"
)

// quicServer serves HTTP/3 on its own port.
func quicServer(t *testing.T, handler http.Handler, client ...tls.ClientAuthType) (*http3.Server,
	*net.UDPConn) {
	t.Helper()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	certificate.Close()
	l, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: certificate.TLS.Certificates}
	for _, auth := range client {
		config.ClientAuth = auth
	}
	server := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(config)}
	go server.Serve(l) //nolint:errcheck // it ends when it is closed
	t.Cleanup(func() {
		server.Close()
		l.Close()
	})
	return server, l
}

// The eight slots share two connections, each from its own port.
func TestHTTP3(t *testing.T) {
	wide, plain := &atomic.Int64{}, service(&atomic.Int64{})
	var from sync.Map
	server, l := quicServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from.Store(r.RemoteAddr, true)
		if r.TLS.HandshakeComplete && !r.TLS.DidResume {
			wide.Store(int64(r.ProtoMajor))
		}
		plain.ServeHTTP(w, r)
	}))
	c := nethttp.Config{Protocol: nethttp.H3, Network: "tcp", Address: l.LocalAddr().String(),
		Host: "example.com", Insecure: true, Streams: 4}
	r := check(t, c, open(200))
	ports := 0
	from.Range(func(_, _ any) bool { ports++; return true })
	if n := r.TLSTime.Count; wide.Load() != 3 || n != 2 || ports != 2 ||
		r.TLSTime.MinNs < 1000 || r.TLSTime.MaxNs > r.ConnectTime.MaxNs {
		t.Errorf("HTTP/%d over %d ports, %d handshakes of %+v, connects %+v", wide.Load(), ports, n,
			r.TLSTime, r.ConnectTime)
	}
	c.Streams = 0
	if r = check(t, c, load.Spec{Model: record.Closed, Connections: 8}); r.TLSTime.Count != 8 {
		t.Errorf("%d handshakes of eight connections", r.TLSTime.Count)
	}
	// An untrusted server and a missing server are reported at once.
	ask := func(c nethttp.Config, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := (nethttp.Transport{Config: c}).Connect(ctx); err == nil || ctx.Err() != nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	ask(nethttp.Config{Protocol: nethttp.H3, Address: c.Address, Host: c.Host}, "--ca FILE")
	server.Close()
	l.Close()
	ask(c, "connection refused")
}

// A server checks the client's certificate after the handshake. The error names the flag for one.
func TestHTTP3NeedsCertificate(t *testing.T) {
	_, l := quicServer(t, service(&atomic.Int64{}), tls.RequireAnyClientCert)
	c := nethttp.Config{Protocol: nethttp.H3, Network: "tcp", Address: l.LocalAddr().String(),
		Host: "example.com", Insecure: true}
	get := load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/", WantSize: -1}}}
	r := offer(t, c, load.Spec{Model: record.Closed, Connections: 1, Scenario: get})
	if e := r.Errors; r.Answered != 0 || !strings.Contains(e.Example, socket.NoCertificate[:40]) ||
		e.Party != string(socket.Options) {
		t.Errorf("%d answered, %+v", r.Answered, e)
	}
}

// told keeps the events of slots.
type told struct {
	opened map[int]bool
	answer map[int]string
	failed error
}

func (x *told) Opened(i int, _ int64)             { x.opened[i] = true }
func (x *told) Received(i int, _ int64, b []byte) { x.answer[i] += string(b) }

func (x *told) Closed(_ int, _ int64, _ load.Op, err error) { x.failed = err }

// until waits for events of the engine.
func (x *told) until(t *testing.T, e *nethttp.Engine, what func() bool) {
	t.Helper()
	for end := clock.Mono() + 60e9; !what(); {
		if err := e.Wait(clock.Mono()+1e6, x); err != nil || clock.Mono() > end {
			t.Fatalf("%+v: %v", x, err)
		}
	}
}

// The engine's release closes its sockets, with or without requests on them.
func TestHTTP3Releases(t *testing.T) {
	_, l := quicServer(t, service(&atomic.Int64{}))
	files := func() map[string]bool { // by what they are: "socket:[4711]"
		all, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		are := map[string]bool{}
		for _, file := range all {
			if what, err := os.Readlink(file); err == nil { // it may be closed
				are[what] = true
			}
		}
		return are
	}
	since := func(before map[string]bool) map[string]bool {
		now := files()
		maps.DeleteFunc(now, func(what string, _ bool) bool { return before[what] })
		return now
	}
	before := files()
	e, err := nethttp.New(nethttp.Config{Protocol: nethttp.H3, Address: l.LocalAddr().String(),
		Host: "example.com", Insecure: true}, 3)
	if err != nil {
		t.Fatal(err)
	}
	x := &told{opened: map[int]bool{}, answer: map[int]string{}}
	for i := range 3 {
		e.Open(i)
	}
	x.until(t, e, func() bool { return len(x.opened) == 3 })
	open := since(before)
	e.Close(1)
	e.Release()
	if left := since(before); len(open) < 3 || len(left) > 0 {
		t.Errorf("three connections have the files %v, of which %v are left", open, left)
	}
}

// A server that sends GOAWAY gets no new requests, and answers earlier ones.
func TestGoesAway(t *testing.T) {
	for protocol, serve := range map[string]func(*testing.T, http.Handler) (farewell, net.Addr){
		nethttp.H2C: clearServer,
		nethttp.H3: func(t *testing.T, handler http.Handler) (farewell, net.Addr) {
			server, l := quicServer(t, handler)
			return server, l.LocalAddr()
		},
	} {
		t.Run(protocol, func(t *testing.T) { goesAway(t, protocol, serve) })
	}
}

// farewell is a server that can send GOAWAY.
type farewell interface{ Shutdown(context.Context) error }

// clearServer serves HTTP/2 without TLS.
func clearServer(t *testing.T, handler http.Handler) (farewell, net.Addr) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Config, server.Listener.Addr()
}

func goesAway(t *testing.T, protocol string,
	serve func(*testing.T, http.Handler) (farewell, net.Addr)) {
	hold, held := make(chan struct{}), make(chan struct{})
	let := sync.OnceFunc(func() { close(hold) })
	old, first := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(held)
		<-hold
		_, _ = io.WriteString(w, "old") // a lost answer fails the test anyway
	}))
	_, second := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "new") // likewise
	}))
	at := []string{first.String(), second.String()}
	e, err := nethttp.New(nethttp.Config{Protocol: protocol, Network: "tcp", Host: "example.com",
		Insecure: true, Streams: 2,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			to := at[0]
			at = at[1:]
			return (&net.Dialer{}).DialContext(ctx, network, to)
		}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Release()
	defer let() // otherwise the server would end
	x := &told{opened: map[int]bool{}, answer: map[int]string{}}
	until := func(what func() bool) {
		t.Helper()
		x.until(t, e, what)
	}
	request := []byte("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
	e.Open(0)
	until(func() bool { return x.opened[0] })
	e.Send(0, request)
	<-held
	gone := make(chan error)
	go func() { gone <- old.Shutdown(context.Background()) }()
	until(func() bool { // slot 1 shares the connection until the GOAWAY has come
		x.opened[1] = false
		e.Open(1)
		until(func() bool { return x.opened[1] })
		if len(at) > 0 {
			e.Close(1)
		}
		return len(at) == 0
	})
	e.Send(1, request)
	until(func() bool { return strings.HasSuffix(x.answer[1], "new") })
	let()
	until(func() bool { return strings.HasSuffix(x.answer[0], "old") })
	if err := <-gone; err != nil || x.failed != nil {
		t.Errorf("%v, %v", err, x.failed)
	}
}
