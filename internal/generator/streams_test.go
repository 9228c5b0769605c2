//go:build linux && !portable

package generator

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/internal/trial/processes"
	"prony.example/load"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// streamed is a mix for HTTP/2: bodies beyond its initial windows in both directions, with and
// without a length.
var streamed = []load.Request{
	{Method: "GET", Path: "/?k={key}", Want: "k={key}", HasWant: true},
	{Method: "POST", Path: "/echo", Body: strings.Repeat("x", 100_000), WantSize: 100_000},
	{Method: "GET", Path: "/missing", Status: 404, WantSize: -1},
	{Method: "HEAD", Path: "/?h={key}", WantSize: -1},
	{Method: "GET", Path: "/chunks", WantSize: 1 << 20},
	{Method: "GET", Path: "/nothing", Status: 204, WantSize: 0},
	{Method: "POST", Path: "/refused", Body: strings.Repeat("x", 3<<20), Status: 413, WantSize: -1},
}

func streaming(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/nothing":
		w.WriteHeader(http.StatusNoContent)
	case "/refused":
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	default:
		if r.ProtoMajor != 2 {
			http.Error(w, "not HTTP/2", http.StatusHTTPVersionNotSupported)
			return
		}
		mixed(w, r)
	}
}

// offerStreams sends a number of requests over two connections.
func offerStreams(t *testing.T, engine string, c nethttp.Config, s load.Spec,
	of ...load.Request) *load.Result {
	t.Helper()
	at, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	c.Network = "tcp"
	s.Name, s.Model, s.Address, s.Host, s.Seed = "test", record.Closed, at, c.Host, 1
	s.Connections = 2 * c.Streams
	s.Window, s.Timeout, s.Drain = 10*time.Second, 10*time.Second, 10*time.Second
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 9, Requests: of}
	r, err := Prony{Engine: engine, Stack: &c}.Offer(t.Context(), s)
	if err != nil {
		t.Fatalf("%s, %s: %v", engine, c.Protocol, err)
	}
	return r
}

// TestStreams checks that every engine gets the same responses over HTTP/2, in the clear and over
// TLS, with one and with several streams at a time, on kept and on renewed connections.
func TestStreams(t *testing.T) {
	testsets.Measured(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(streaming))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	clear := httptest.NewUnstartedServer(http.HandlerFunc(streaming))
	clear.Config.Protocols = new(http.Protocols)
	clear.Config.Protocols.SetUnencryptedHTTP2(true)
	clear.Start()
	defer clear.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}))
	for _, engine := range secureEngines {
		for _, c := range []nethttp.Config{
			{Protocol: nethttp.H2C, Address: clear.Listener.Addr().String(), Host: "h", Streams: 1},
			{Protocol: nethttp.H2C, Address: clear.Listener.Addr().String(), Host: "h", Streams: 7},
			{Protocol: nethttp.H2, Address: server.Listener.Addr().String(), Host: "example.com",
				CA: ca, Streams: 4},
		} {
			for _, churn := range []int{0, 3} {
				if churn > 0 && c.Streams > 1 {
					continue // only a connection with one request at a time is renewed
				}
				name := fmt.Sprintf("%s, %s, %d streams, churn %d", engine, c.Protocol, c.Streams,
					churn)
				r := offerStreams(t, engine, c, load.Spec{Requests: 70, Churn: churn}, streamed...)
				wholly(t, name, engine, c, 70, r)
				for _, x := range r.Routes {
					if x.Answered == 0 {
						t.Errorf("%s: none of %s", name, x.Name)
					}
				}
			}
		}
	}
}

// wholly checks that all n requests of a load were answered, by the requested engine and protocol.
func wholly(t *testing.T, name, engine string, c nethttp.Config, n int64, r *load.Result) {
	t.Helper()
	if r.Errors.Total() != 0 || r.Answered != n || r.Protocol != c.Protocol ||
		r.Generator.Engine != engine || r.Connections != 2 {
		t.Errorf("%s: %d of %d answered by %s over %d of %s, %+v", name, r.Answered, n,
			r.Generator.Engine, r.Connections, r.Protocol, r.Errors)
	}
	if strings.HasPrefix(r.TLS, "TLS 1.3") != nethttp.Secure(c.Protocol) {
		t.Errorf("%s: TLS is %q", name, r.TLS)
	}
}

// truthful runs a load, with every engine, on a server that follows a plan.
func truthful(t *testing.T, protocol string, plan truth.Plan, ask load.Request,
	judge func(engine string, r *load.Result)) {
	t.Helper()
	l, err := truth.Listen(protocol, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- truth.Speak(ctx, protocol, l, plan, nil) }()
	for _, engine := range secureEngines {
		judge(engine, offerStreams(t, engine, nethttp.Config{Protocol: nethttp.Schemes[protocol],
			Address: l.Addr().String(), Host: "localhost", Insecure: true, Streams: 1},
			load.Spec{Requests: 60}, ask))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestStreamsTruth checks that every engine measures a server that takes 2 ms per request.
func TestStreamsTruth(t *testing.T) {
	testsets.Measured(t)
	for _, protocol := range []string{"h2c", "h2"} {
		plan := truth.Fixed(2 * time.Millisecond)
		truthful(t, protocol, plan, get, func(engine string, r *load.Result) {
			if n := r.ServiceTime.MinNs; r.Answered != 60 || n < 2e6 || n > 3e6 ||
				r.FirstByte.MinNs < 2e6 {
				t.Errorf("%s, %s: %d of 60 answered, %+v in %d ns at best", engine, protocol,
					r.Answered, r.Errors, n)
			}
		})
	}
}

// TestNoStreams checks that no engine connects to a server without HTTP/2.
func TestNoStreams(t *testing.T) {
	testsets.Measured(t)
	signed := httptest.NewUnstartedServer(nil)
	signed.StartTLS()
	defer signed.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: signed.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go enginetest.Serve(l, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // it selects no protocol, and waits
	})
	at := netip.MustParseAddrPort(l.Addr().String())
	for _, engine := range secureEngines {
		s := load.Spec{Name: "test", Model: record.Closed, Address: at, Host: "h", Connections: 2,
			Window: time.Second, Timeout: time.Second,
			Scenario: load.Scenario{KeyLo: 1, KeyHi: 9, Requests: []load.Request{get}}}
		_, err := Prony{Engine: engine, Stack: &nethttp.Config{Protocol: nethttp.H2, Network: "tcp",
			Address: at.String(), Host: "h", Insecure: true, Streams: 1}}.Offer(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(),
			"the server does not speak HTTP/2 (ALPN)") {
			t.Errorf("%s: %v", engine, err)
		}
	}
}

// TestStreamsNghttpd uses nghttpd as an independent server, which has no table and permits few
// streams.
func TestStreamsNghttpd(t *testing.T) {
	testsets.Whole(t, "servers of nghttp2")
	nghttpd, err := exec.LookPath("nghttpd")
	if err != nil {
		t.Skip("skipped: nghttpd is not installed")
	}
	folder := t.TempDir()
	body := strings.Repeat("0123456789", 100_000)
	if err := os.WriteFile(filepath.Join(folder, "big"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := processes.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nghttpd, "--no-tls", "-d", folder, "--header-table-size=0",
		"--max-concurrent-streams=5", strconv.Itoa(port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
	at := fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		c, err := net.Dial("tcp", at)
		if err == nil {
			c.Close()
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, engine := range secureEngines[1:] { // the first fails if it has to wait
		r := offerStreams(t, engine, nethttp.Config{Protocol: nethttp.H2C, Address: at, Host: "h",
			Streams: 12}, load.Spec{Requests: 200},
			load.Request{Method: "GET", Path: "/big", Want: body, HasWant: true},
			load.Request{Method: "HEAD", Path: "/big", WantSize: -1},
			load.Request{Method: "GET", Path: "/none", Status: 404, WantSize: -1})
		if r.Errors.Total() != 0 || r.Answered != 200 {
			t.Errorf("%s: %d of 200 answered, %+v", engine, r.Answered, r.Errors)
		}
	}
}
