//go:build linux && !portable

package generator

import (
	"bufio"
	"cmp"
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
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// secureEngines are the engines for HTTP/1.1 over TLS, first the one that others are compared with.
var secureEngines = []string{load.NetHTTP, load.Epoll}

// offerSecure sends a number of requests over two connections, or over as many as the spec has.
func offerSecure(t *testing.T, engine string, c nethttp.Config, s load.Spec,
	of ...load.Request) (*load.Result, error) {
	t.Helper()
	at, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		t.Fatal(err)
	}
	c.Protocol, c.Network = nethttp.H1TLS, "tcp"
	s.Name, s.Model, s.Address, s.Host, s.Seed = "test", record.Closed, at, c.Host, 1
	s.Connections = cmp.Or(s.Connections, 2)
	s.Window, s.Timeout = 10*time.Second, cmp.Or(s.Timeout, 10*time.Second)
	s.Drain = s.Timeout
	s.Scenario = load.Scenario{KeyLo: 1, KeyHi: 9, Requests: of}
	return Prony{Engine: engine, Stack: &c}.Offer(t.Context(), s)
}

// get is a request without a check.
var get = load.Request{Method: "GET", Path: "/", WantSize: -1}

var mix = []load.Request{
	{Method: "GET", Path: "/?k={key}", Want: "k={key}", HasWant: true},
	{Method: "POST", Path: "/echo", Body: strings.Repeat("x", 100_000), WantSize: 100_000},
	{Method: "GET", Path: "/missing", Status: 404, WantSize: -1},
	{Method: "HEAD", Path: "/?h={key}", WantSize: -1},
	{Method: "GET", Path: "/chunks", WantSize: 1 << 20},
	{Method: "GET", Path: "/end", WantSize: 70_000},
}

// mixed responds to the mix.
func mixed(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/echo":
		if b, err := io.ReadAll(r.Body); err == nil {
			_, _ = w.Write(b) // a lost response fails the test anyway
		}
	case "/missing":
		http.NotFound(w, r)
	case "/chunks":
		for range 16 {
			_, _ = w.Write(make([]byte, 1<<16)) // a lost response fails the test anyway
			_ = http.NewResponseController(w).Flush()
		}
	case "/end": // the body ends with the connection
		c, b, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = b.WriteString("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("y", 70_000))
			_ = b.Flush()
			c.Close()
		}
	default:
		_, _ = io.WriteString(w, r.URL.RawQuery)
	}
}

// TestSecure checks that every engine gets the same responses over TLS 1.3 and 1.2, on kept
// connections and on renewed ones, which resume their session.
func TestSecure(t *testing.T) {
	testsets.Measured(t)
	for _, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(mixed))
		server.TLS = &tls.Config{MaxVersion: version}
		server.StartTLS()
		defer server.Close()
		c := nethttp.Config{Address: server.Listener.Addr().String(), Host: "example.com",
			CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
				Bytes: server.Certificate().Raw}))}
		for _, engine := range secureEngines {
			for _, churn := range []int{0, 3} {
				name := fmt.Sprintf("%s, %s, churn %d", engine, tls.VersionName(version), churn)
				r, err := offerSecure(t, engine, c, load.Spec{Requests: 60, Churn: churn}, mix...)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if r.Errors.Total() != 0 || r.Answered != 60 || r.Protocol != nethttp.H1TLS ||
					r.Generator.Engine != engine {
					t.Errorf("%s: %d of 60 answered by %s, %+v", name, r.Answered,
						r.Generator.Engine, r.Errors)
				}
				for _, x := range r.Routes {
					if x.Answered == 0 {
						t.Errorf("%s: none of %s", name, x.Name)
					}
				}
				if !strings.HasPrefix(r.TLS, tls.VersionName(version)) || r.TLSTime.Count < 3 ||
					r.TLSResumed < r.TLSTime.Count-3 || r.TLSResumed >= r.TLSTime.Count {
					t.Errorf("%s: %q, %d of %d handshakes resumed", name, r.TLS, r.TLSResumed,
						r.TLSTime.Count)
				}
			}
		}
	}
}

// alike checks that every engine reports a faulty server in the same way.
func alike(t *testing.T, served *tls.Config, name, want string, s load.Spec, insecure bool,
	serve func(c *tls.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go enginetest.Serve(l, func(c net.Conn) { serve(tls.Server(c, served)) })
	reference := ""
	for _, engine := range secureEngines {
		r, err := offerSecure(t, engine, nethttp.Config{Address: l.Addr().String(),
			Host: "example.com", Insecure: insecure}, s, get)
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), l.Addr().String(), "it")
		} else {
			e := r.Errors
			got = fmt.Sprintf("%d read errors, write %v, others %v, first: %s", e.Read,
				e.Write > 0, e.Total() > e.Read+e.Write, e.Example)
		}
		if reference == "" {
			reference = got
		}
		if !strings.Contains(got, want) || got != reference {
			t.Errorf("%s, %s: %s; want %q, and %s has %s", name, engine, got, want, load.NetHTTP,
				reference)
		}
	}
}

// TestSecureFaults checks that every engine reports a server's faults as the same errors, in the
// same words.
func TestSecureFaults(t *testing.T) {
	testsets.Measured(t)
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	served := &tls.Config{Certificates: certificate.TLS.Certificates}
	check := func(name, want string, insecure bool, serve func(c *tls.Conn)) {
		t.Helper()
		alike(t, served, name, want, load.Spec{Requests: 4}, insecure, serve)
	}
	answering := func(then func(c *tls.Conn)) func(c *tls.Conn) {
		return func(c *tls.Conn) {
			if _, err := c.Read(make([]byte, 1000)); err == nil {
				then(c)
			}
		}
	}
	check("a stranger", "no trusted authority", false, func(c *tls.Conn) { _ = c.Handshake() })
	check("plain HTTP", "plain HTTP", true, func(c *tls.Conn) {
		_, _ = io.WriteString(c.NetConn(), "HTTP/1.1 400 Bad Request\r\n\r\n") // read or not
	})
	alike(t, served, "a handshake without end", "none was within 300ms", load.Spec{
		Timeout: 300 * time.Millisecond}, true, func(c *tls.Conn) {
		_, _ = io.Copy(io.Discard, c.NetConn())
	})
	check("records of nobody's", "4 read errors, write false, others false, first: GET / "+
		"HTTP/1.1: local error: tls: bad record MAC", true, answering(func(c *tls.Conn) {
		_, _ = c.NetConn().Write(append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...))
		_, _ = io.Copy(io.Discard, c.NetConn())
	}))
	check("an end amidst a record", "HTTP/1.1: unexpected EOF", true, answering(func(c *tls.Conn) {
		_, _ = c.NetConn().Write([]byte{23, 3, 3, 0, 32, 1, 2, 3})
	}))
	check("too large a record", "tls: oversized record received with length 65535", true,
		answering(func(c *tls.Conn) {
			_, _ = c.NetConn().Write([]byte{23, 3, 3, 255, 255})
			_, _ = io.Copy(io.Discard, c.NetConn())
		}))
	check("an end before the answer", "closed the connection without", true,
		answering(func(c *tls.Conn) { c.Close() }))
}

// TestSecureTruth checks that every engine measures a server that takes 2 ms per request, over TLS
// as in the clear: never less, and at best not much more.
func TestSecureTruth(t *testing.T) {
	testsets.Measured(t)
	l, err := truth.Listen("https", "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- truth.Speak(ctx, "https", l, truth.Fixed(2*time.Millisecond), nil) }()
	for _, engine := range secureEngines {
		r, err := offerSecure(
			t,
			engine,
			nethttp.Config{Address: l.Addr().String(), Host: "localhost",
				Insecure: true},
			load.Spec{Requests: 60},
			get,
		)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.ServiceTime.MinNs; r.Answered != 60 || n < 2e6 || n > 3e6 ||
			r.FirstByte.MinNs < 2e6 {
			t.Errorf("%s: %d of 60 answered, %+v in %d ns at best", engine, r.Answered, r.Errors, n)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSecureOpenSSL uses OpenSSL as an independent server, with each cipher of TLS 1.3. It accepts
// one connection at a time.
func TestSecureOpenSSL(t *testing.T) {
	testsets.Whole(t, "servers of OpenSSL")
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("skipped: openssl is not installed")
	}
	t.Chdir(t.TempDir())
	made := exec.Command(openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt",
		"ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-subj",
		"/CN=example.com", "-addext", "subjectAltName=DNS:example.com")
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ca, err := os.ReadFile("cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	for _, suite := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
		"TLS_CHACHA20_POLY1305_SHA256"} {
		cmd := exec.Command(openssl, "s_server", "-accept", "127.0.0.1:0", "-www", "-key",
			"key.pem", "-cert", "cert.pem", "-ciphersuites", suite)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := ""
		for lines := bufio.NewScanner(out); at == "" && lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "ACCEPT "); ok {
				at = rest
			}
		}
		for _, engine := range secureEngines {
			r, err := offerSecure(t, engine, nethttp.Config{Address: at, Host: "example.com",
				CA: string(ca)}, load.Spec{Requests: 20, Connections: 1}, get)
			if err != nil {
				t.Errorf("%s, %s: %v", engine, suite, err)
			} else if r.Answered != 20 || !strings.HasSuffix(r.TLS, suite) || r.TLSResumed < 15 {
				t.Errorf("%s, %s: %d of 20 answered, %q, %d resumed, %+v", engine, suite,
					r.Answered, r.TLS, r.TLSResumed, r.Errors)
			}
		}
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
}
