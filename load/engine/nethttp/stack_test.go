package nethttp_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/pace"
	"prony.example/record"
)

// service waits 2 ms, so any time below that is wrong, and responds to /echo with the body,
// /missing with 404, and anything else with the protocol's name.
func service(wide *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wide.Store(max(wide.Load(), int64(r.ProtoMajor)))
		time.Sleep(2 * time.Millisecond)
		switch r.URL.Path {
		case "/echo":
			body, err := io.ReadAll(r.Body)
			if err == nil {
				_, _ = w.Write(body) // a lost answer fails the test anyway
			}
		case "/missing":
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, "hello "+r.URL.RawQuery) // likewise
		}
	})
}

// offer makes 80 requests, however long they take.
func offer(t *testing.T, c nethttp.Config, s load.Spec) *load.Result {
	t.Helper()
	s.Name, s.Requests, s.Window = "test", 80, time.Minute
	s.Drain, s.Timeout = time.Minute, time.Minute
	s.Address = netip.MustParseAddrPort("127.0.0.1:1") // the engine has its own
	s.Host = c.Host
	s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) {
		return nethttp.New(c, slots)
	}
	s.Describe.Spread, s.Describe.Protocol = true, c.Protocol
	r, err := load.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func open(perS float64) load.Spec {
	return load.Spec{Model: record.Open, Connections: 8,
		Schedule: pace.Schedule{Arrivals: pace.Constant, Rate: pace.Flat(perS)}}
}

// check runs a mix with a fifth of 404 responses, and compares counts and times with the server's
// behavior.
func check(t *testing.T, c nethttp.Config, s load.Spec) *load.Result {
	t.Helper()
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 9, Requests: []load.Request{
		{Method: "GET", Path: "/?k={key}", Want: "hello k={key}", HasWant: true},
		{Method: "POST", Path: "/echo", Body: strings.Repeat("x", 100_000), WantSize: 100_000},
		{Method: "GET", Path: "/missing", Status: 404, WantSize: -1},
		{Method: "HEAD", Path: "/?h={key}", WantSize: -1},
		{Method: "OPTIONS", Path: "/?o={key}", Want: "hello o={key}", HasWant: true},
	}}
	r := offer(t, c, s)
	if r.Errors.Total() != 0 || r.Answered != r.Scheduled || r.Answered != 80 {
		t.Fatalf("%s: %d of %d answered: %+v", c.Protocol, r.Answered, r.Scheduled, r.Errors)
	}
	if r.ServiceTime.MinNs < 2e6 || r.FirstByte.MinNs < 2e6 {
		t.Errorf("%s: faster than the server: %+v", c.Protocol, r.ServiceTime)
	}
	for _, x := range r.Routes {
		if x.Answered == 0 {
			t.Errorf("%s: none of %s", c.Protocol, x.Name)
		}
	}
	if r.Generator.CPUNs == 0 {
		t.Errorf("%s: no cost", c.Protocol)
	}
	return r
}

func secure(t *testing.T, h2 bool) (addr, host string, wide *atomic.Int64) {
	t.Helper()
	wide = &atomic.Int64{}
	server := httptest.NewUnstartedServer(service(wide))
	server.EnableHTTP2 = h2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), "example.com", wide
}

func TestTLS(t *testing.T) {
	addr, host, wide := secure(t, false)
	c := nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp", Address: addr, Host: host,
		Insecure: true}
	r := check(t, c, open(200))
	if wide.Load() != 1 {
		t.Errorf("HTTP/%d was spoken", wide.Load())
	}
	if n := r.TLSTime.Count; n != 8 || r.TLSTime.MinNs < 1000 ||
		r.TLSTime.MaxNs > r.ConnectTime.MaxNs {
		t.Errorf("%d handshakes of %+v, connects %+v", n, r.TLSTime, r.ConnectTime)
	}
	// An untrusted certificate is refused unless Insecure is set.
	c.Insecure = false
	s := open(200)
	s.Window, s.Timeout, s.Name = time.Minute, time.Minute, "test"
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	s.Scenario = load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/"}}}
	s.Engine = func(_ netip.AddrPort, n int) (load.Engine, error) { return nethttp.New(c, n) }
	if _, err := load.Run(context.Background(), s); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v, want one about the certificate", err)
	}
}

// A server that responds twice, the second time in a separate record or piece: the second is the
// response to no request.
func TestUnasked(t *testing.T) {
	check := func(name string, l net.Listener, c nethttp.Config) {
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go twice(c)
			}
		}()
		s := open(200)
		s.Scenario = load.Scenario{Requests: []load.Request{{Method: "GET", Path: "/",
			WantSize: -1}}}
		r := offer(t, c, s)
		// On a busy machine both come at once, and are detected together, or so far apart that the
		// second seems to belong to the next request.
		if r.Errors.Total() == 0 || r.Answered >= r.Scheduled ||
			!strings.Contains(r.Errors.Example, "unsolicited") &&
				!strings.Contains(r.Errors.Example, "more follows than") {
			t.Errorf("%s: %d of %d answered, %+v", name, r.Answered, r.Scheduled, r.Errors)
		}
	}
	server := httptest.NewUnstartedServer(nil) // for its certificate
	server.StartTLS()
	defer server.Close()
	for _, most := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MaxVersion: most,
			Certificates: server.TLS.Certificates})
		if err != nil {
			t.Fatal(err)
		}
		check(tls.VersionName(most), l, nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp",
			Address: l.Addr().String(), Host: "example.com", Insecure: true})
	}
	t.Chdir(t.TempDir()) // a socket's path has a hundred bytes at most
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	check("Unix", l, nethttp.Config{Protocol: nethttp.H1Unix, Network: "unix",
		Address: l.Addr().String(), Host: "x"})
}

func twice(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		for range 2 {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
			if err != nil {
				return
			}
			time.Sleep(time.Millisecond) // far less than between two requests
		}
	}
}

func TestHTTP2(t *testing.T) {
	addr, host, wide := secure(t, true)
	c := nethttp.Config{
		Protocol: nethttp.H2,
		Network:  "tcp",
		Address:  addr,
		Host:     host,
		Insecure: true,
		Streams:  4,
	}
	r := check(t, c, open(200))
	if wide.Load() != 2 || r.TLSTime.Count != 2 { // eight slots on two connections
		t.Errorf("HTTP/%d over %d connections", wide.Load(), r.TLSTime.Count)
	}
	plain := &atomic.Int64{}
	server := httptest.NewUnstartedServer(service(plain))
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	check(t, nethttp.Config{Protocol: nethttp.H2C, Network: "tcp",
		Address: server.Listener.Addr().String(), Host: "a.b"}, load.Spec{Model: record.Closed,
		Connections: 8})
	if plain.Load() != 2 {
		t.Errorf("HTTP/%d was spoken in the clear", plain.Load())
	}
}

func TestUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	const path = "s"
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: service(&atomic.Int64{})}
	go server.Serve(l) //nolint:errcheck // it ends when it is closed
	t.Cleanup(func() { server.Close() })
	check(t, nethttp.Config{Protocol: nethttp.H1Unix, Network: "unix", Address: path, Host: "a.b"},
		open(200))
}

// Unary calls of the health service, which every gRPC server has: SERVING, and a different status
// for an unknown service.
func TestGRPC(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	for _, protocol := range []string{nethttp.GRPC, nethttp.GRPCS} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var options []grpc.ServerOption
		if protocol == nethttp.GRPCS {
			options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{
				Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2"}})))
		}
		server := grpc.NewServer(options...)
		healthpb.RegisterHealthServer(server, health.NewServer())
		reflection.Register(server)
		go server.Serve(l) //nolint:errcheck // it ends when it is stopped
		t.Cleanup(server.Stop)
		c := nethttp.Config{Protocol: protocol, Network: "tcp", Address: l.Addr().String(),
			Host: "example.com", Insecure: true, Streams: 8}
		s := open(200)
		s.Scenario = load.Scenario{Requests: []load.Request{
			// HealthCheckResponse{status: SERVING}
			{Method: "POST", Path: "/grpc.health.v1.Health/Check", Want: "\x08\x01", HasWant: true},
			// HealthCheckRequest{service: "x"}: NOT_FOUND is 5
			{Method: "POST", Path: "/grpc.health.v1.Health/Check", Body: "\x0a\x01x",
				Status: load.CallStatus + 5, WantSize: -1},
		}}
		r := offer(t, c, s)
		if r.Errors.Total() != 0 || r.Answered != 80 {
			t.Errorf("%s: %d of 80 answered: %+v", protocol, r.Answered, r.Errors)
		}
		messages(t, c)
		s.Scenario.Requests[1].Status = 200
		if r = offer(t, c, s); r.Errors.Status == 0 ||
			!strings.Contains(r.Errors.Example, "gRPC status 5") {
			t.Errorf("%s: %+v, want failures of status 5", protocol, r.Errors)
		}
	}
}

// messages makes requests from JSON, by the server's description.
func messages(t *testing.T, c nethttp.Config) {
	t.Helper()
	make := func(path, json, want, wrong string) {
		t.Helper()
		b, err := nethttp.Message(t.Context(), c, path, json)
		if wrong != "" {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s of %s: %v, want %q", path, json, err, wrong)
			}
		} else if err != nil || string(b) != want {
			t.Errorf("%s of %s: %q, %v, want %q", path, json, b, err, want)
		}
	}
	const check = "/grpc.health.v1.Health/Check"
	make(check, `{"service": "x"}`, "\x0a\x01x", "")
	make(check, `{}`, "", "")
	make(check, `{"servize": "x"}`, "", "HealthCheckRequest")
	make("/grpc.health.v1.Health/Watch", `{}`, "", "it streams")
	make("/grpc.health.v1.Health/Gone", `{}`, "", "no method Gone")
	make("/gone.Service/Check", `{}`, "", "gone.Service")
	make("check", `{}`, "", "want /package.Service/Method")
}

func TestWebSocket(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow() //nolint:errcheck // the peer is gone
		for {
			kind, b, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if string(b) == "bye" {
				return
			}
			if c.Write(r.Context(), kind, b) != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	c := nethttp.Config{Protocol: nethttp.WS, Network: "tcp",
		Address: server.Listener.Addr().String(), Host: "a.b", Path: "/socket"}
	s := open(200)
	s.Scenario = load.Scenario{Requests: []load.Request{
		{Method: "POST", Path: "/", Body: "message {seq}", Want: "message {seq}", HasWant: true}}}
	if r := offer(t, c, s); r.Errors.Total() != 0 || r.Answered != 80 {
		t.Errorf("%d of 80 echoed: %+v", r.Answered, r.Errors)
	}
	// A server that closes fails the request, and the connection is renewed.
	s.Scenario.Requests = append(s.Scenario.Requests, load.Request{Method: "POST", Path: "/",
		Body: "bye", WantSize: -1})
	r := offer(t, c, s)
	if e := r.Errors; e.Read == 0 || e.Total() != e.Read || r.Answered+e.Read != 80 {
		t.Errorf("%d answered, %+v", r.Answered, e)
	}
}

// A server that never responds: requests end at their timeout, and nothing is left running.
func TestTimeouts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := nethttp.Config{Protocol: nethttp.WS, Network: "tcp", Address: l.Addr().String(), Host: "a"}
	e, err := nethttp.New(c, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		e.Open(i)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	before, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	e.Release() // while all of them wait for the server
	after, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	if len(after) >= len(before) {
		t.Errorf("%d descriptors, before the release %d", len(after), len(before))
	}
}

func TestBadConfigs(t *testing.T) {
	bad := func(c nethttp.Config, want string) {
		t.Helper()
		if _, err := nethttp.New(c, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	bad(nethttp.Config{Protocol: "gopher"}, "not a protocol")
	bad(nethttp.Config{Protocol: nethttp.H1TLS, Streams: 4}, "one request at a time")
}

// parents are the trace ids that a server received, and the number of requests without one.
type parents struct {
	mu   sync.Mutex
	ids  []string
	bare int
}

var parentRe = regexp.MustCompile("^00-([0-9a-f]{32})-([0-9a-f]{16})-01$")

func (p *parents) take(t *testing.T, parent, state []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(parent)+len(state) == 0 {
		p.bare++
		return
	}
	if len(parent) != 1 || !slices.Equal(state, []string{"prony=1"}) ||
		!parentRe.MatchString(parent[0]) {
		t.Errorf("fields are %q and %q", parent, state)
		return
	}
	p.ids = append(p.ids, parentRe.FindStringSubmatch(parent[0])[1])
}

// check compares what the server received with the load's record of half of its requests: 80, so
// that 40 are traced, within five standard deviations of √(80/4).
func (p *parents) check(t *testing.T, c nethttp.Config, requests ...load.Request) {
	t.Helper()
	s := open(200)
	s.Trace = load.Trace{Share: 0.5, Keep: 80}
	s.Scenario = load.Scenario{Requests: requests}
	r := offer(t, c, s)
	slices.Sort(p.ids)
	n := len(p.ids)
	if r.Errors.Total() != 0 || n+p.bare != 80 || n < 40-23 || n > 40+23 ||
		len(slices.Compact(slices.Clone(p.ids))) != n {
		t.Errorf("%s: %d with ids, %d without: %+v", c.Protocol, n, p.bare, r.Errors)
	}
	kept := 0
	for _, x := range r.Traced {
		if x.Class != "uniform" {
			continue
		}
		if kept++; !slices.Contains(p.ids, x.TraceID) || x.FirstByteNs <= 0 {
			t.Errorf("%s: %+v was not sent", c.Protocol, x)
		}
	}
	if kept != n {
		t.Errorf("%s: %d of %d kept", c.Protocol, kept, n)
	}
}

// Every protocol with header fields carries trace ids in them.
func TestTrace(t *testing.T) {
	hear := func(p *parents, start func(*httptest.Server)) string {
		server := httptest.NewUnstartedServer(http.HandlerFunc(
			func(_ http.ResponseWriter, r *http.Request) {
				p.take(t, r.Header.Values("Traceparent"), r.Header.Values("Tracestate"))
			}))
		start(server)
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	both := []load.Request{{Method: "GET", Path: "/{seq}", WantSize: -1},
		{Method: "POST", Path: "/", Body: "x", WantSize: -1}}
	var tls, h2, h2c parents
	tls.check(
		t,
		nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp", Host: "a.b", Insecure: true,
			Address: hear(&tls, (*httptest.Server).StartTLS)},
		both...)
	h2.check(t, nethttp.Config{Protocol: nethttp.H2, Network: "tcp", Host: "a.b", Insecure: true,
		Streams: 4, Address: hear(&h2, func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		})}, both...)
	h2c.check(t, nethttp.Config{Protocol: nethttp.H2C, Network: "tcp", Host: "a.b",
		Address: hear(&h2c, func(s *httptest.Server) {
			s.Config.Protocols = &http.Protocols{}
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
		})}, both...)

	var calls parents
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, req any,
		_ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		calls.take(t, metadata.ValueFromIncomingContext(ctx, "traceparent"),
			metadata.ValueFromIncomingContext(ctx, "tracestate"))
		return next(ctx, req)
	}))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(l) //nolint:errcheck // it ends when it is stopped
	t.Cleanup(server.Stop)
	calls.check(t, nethttp.Config{Protocol: nethttp.GRPC, Network: "tcp", Host: "a.b",
		Address: l.Addr().String()}, load.Request{Method: "POST",
		Path: "/grpc.health.v1.Health/Check", Want: "\x08\x01", HasWant: true})
}

// A WebSocket message has only a payload: a traced share is rejected, before anything is connected.
func TestTraceNeedsHeaders(t *testing.T) {
	for _, protocol := range []string{nethttp.WS, nethttp.WSS} {
		s := open(200)
		s.Name, s.Window, s.Timeout = "test", time.Second, time.Second
		s.Address = netip.MustParseAddrPort("127.0.0.1:1")
		s.Scenario = load.Scenario{Requests: []load.Request{{Method: "POST", Path: "/"}}}
		s.Engine = func(_ netip.AddrPort, n int) (load.Engine, error) {
			return nethttp.New(nethttp.Config{Protocol: protocol, Network: "tcp",
				Address: "127.0.0.1:1"}, n)
		}
		s.Trace.Share = 0.01
		if _, err := load.Run(t.Context(), s); err == nil ||
			!strings.Contains(err.Error(), "no header fields to carry a trace id") {
			t.Errorf("%s: error %v, want one about header fields", protocol, err)
		}
		s.Trace.Share = 0
		if _, err := load.Run(t.Context(), s); err == nil ||
			!strings.Contains(err.Error(), "could be opened") {
			t.Errorf("%s: error %v, want that of connecting", protocol, err)
		}
	}
}
