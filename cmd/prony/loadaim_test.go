package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/dev/testsets"
)

// heard is a server that records the last request.
type heard struct {
	*httptest.Server
	mu   sync.Mutex
	last string
}

func newHeard(t *testing.T) *heard {
	t.Helper()
	h := &heard{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(
		func(_ http.ResponseWriter, r *http.Request) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.last = r.Method + " " + r.RequestURI + " of " + r.Host + " by " +
				r.Header.Get("Authorization")
			if r.TLS != nil {
				h.last += " over " + r.TLS.ServerName
				for _, c := range r.TLS.PeerCertificates {
					h.last += " with a certificate of " + c.Issuer.Organization[0]
				}
			}
		}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(h.Close)
	return h
}

func (h *heard) check(t *testing.T, verb, want string, args ...string) {
	t.Helper()
	h.mu.Lock()
	h.last = ""
	h.mu.Unlock()
	dir := t.TempDir()
	words := slices.Concat([]string{verb, "-n", "1", "-c", "1", "--lead-in", "0s"}, args)
	if verb == "load" {
		words = append(words, "--view", "none", "--output", "json", "--save="+dir)
	} else {
		words = append(words, "--into", dir)
	}
	stdout, stderr, exit := really(words...)
	if h.last != want || unspoilt(exit) != cli.Fine {
		t.Errorf("%q: exit %d, heard %q\nwant %q\n%s%s", words, exit, h.last, want, stdout, stderr)
	}
	stored := ""
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error {
		b, _ := os.ReadFile(path) // folders have no content
		stored += string(b)
		return nil
	})
	if err != nil || strings.Contains(stored+stdout+stderr, "sesame") ||
		strings.Contains(stored+stdout+stderr, "YW5uOnNlc2FtZQ") {
		t.Errorf("%q: the password is printed or stored; error %v", words, err)
	}
}

// The request is that of the URL, of which nothing is dropped.
func TestURLAsRequested(t *testing.T) {
	testsets.Whole(t, "whole loads")
	h := newHeard(t)
	h.Start()
	host := h.Listener.Addr().String()
	for _, verb := range []string{"load", "rain"} {
		h.check(t, verb, "GET /?next=/home of "+host+" by ", h.URL+"?next=/home")
		h.check(t, verb, "GET /gr%C3%BC%C3%9Fe?r=%C3%BC of "+host+" by ", h.URL+"/grüße?r=ü")
		h.check(t, verb, "GET /a%20b%2Fc//../d of "+host+" by ", h.URL+"/a%20b%2Fc//../d")
		// printf 'ann:sesame' | base64
		h.check(t, verb, "GET /me of "+host+" by Basic YW5uOnNlc2FtZQ==",
			strings.Replace(h.URL, "//", "//ann:sesame@", 1)+"/me")
		h.check(t, verb, "GET /x of shop.test by ", "http://shop.test:1/x", "--connect-to", host,
			"-H", "Host: shop.test")
		h.check(t, verb, "GET / of xn--bcher-kva.test:80 by ", h.URL, "-H", "Host: bücher.test:80")
	}
	h.check(t, "load", "GET / of shop.test:1 by ", "http://shop.test:1/", "--connect-to", host)
}

// A server name of one's own is that of the handshake, whether the certificate is checked or not.
func TestServerName(t *testing.T) {
	testsets.Whole(t, "whole loads")
	h := newHeard(t)
	h.StartTLS()
	host := h.Listener.Addr().String()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := &pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}
	if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	own := []string{h.URL, "-H", "host: example.com"} // the test certificate's name
	for _, engine := range []string{"auto", "nethttp"} {
		h.check(t, "load", "GET / of example.com by  over example.com",
			append(own, "--ca", ca, "--engine", engine)...)
		h.check(t, "load", "GET / of example.com by  over example.com",
			append(own, "-k", "--engine", engine)...)
	}
	h.check(t, "load", "GET / of example.com:1 by  over example.com", "https://example.com:1/",
		"--connect-to", host, "--ca", ca)
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	err := os.WriteFile(scenario, []byte("name: s\nrequests:\n  - request: GET /ü\n"+
		"    headers: {Host: example.com}\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	h.check(t, "load", "GET /%C3%BC of example.com by Basic YW5uOnNlc2FtZQ== over example.com",
		strings.Replace(h.URL, "//", "//ann:sesame@", 1), "--scenario", scenario, "--ca", ca)
	_, stderr, exit := really("load", strings.Replace(h.URL, "127.0.0.1", "127.0.0.2", 1),
		"--connect-to", host, "--ca", ca, "-n", "1")
	if exit != cli.Failed || !strings.Contains(stderr, "not for 127.0.0.2; set the server name") ||
		strings.Contains(stderr, "is the service running") {
		t.Errorf("exit %d: %s", exit, stderr)
	}
}

// A server that requires a certificate of the client gets one, or the error says what is missing.
func TestClientCertificate(t *testing.T) {
	testsets.Whole(t, "whole loads")
	h := newHeard(t)
	h.StartTLS()
	pool := x509.NewCertPool()
	pool.AddCert(h.Certificate())
	pair := h.TLS.Certificates[0]
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, blocks ...*pem.Block) string {
		t.Helper()
		var out []byte
		for _, b := range blocks {
			out = append(out, pem.EncodeToMemory(b)...)
		}
		if err := os.WriteFile(filepath.Join(dir, name), out, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	certBlock := &pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}
	keyBlock := &pem.Block{Type: "PRIVATE KEY", Bytes: key}
	cert, keyFile := write("c.pem", certBlock), write("k.pem", keyBlock)
	both := write("both.pem", certBlock, keyBlock)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		strict := newHeard(t)
		strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: version}
		strict.StartTLS()
		want := "GET / of " + strict.Listener.Addr().String() + " by  over  with a certificate " +
			"of Acme Co"
		for _, args := range [][]string{{"--cert", both}, {"--cert", cert, "--cert-key", keyFile},
			{"--cert", both, "--engine", "nethttp"}} {
			strict.check(t, "load", want, append(args, strict.URL, "-k")...)
		}
		for _, engine := range []string{"auto", "nethttp"} {
			stdout, stderr, exit := really("load", strict.URL, "-k", "-n", "2", "-c", "1",
				"--engine", engine)
			if exit == cli.Fine || !strings.Contains(stdout+stderr, "the server asks for a client "+
				"certificate and there is none to give") ||
				strings.Contains(stdout+stderr, "is the service running") ||
				strings.Contains(stdout+stderr, "service's log") {
				t.Errorf("TLS %x, %s: exit %d: %s%s", version, engine, exit, stdout, stderr)
			}
		}
	}
	check := func(want string, args ...string) {
		t.Helper()
		_, stderr, exit := really(append([]string{"load", "-n", "1"}, args...)...)
		if exit == cli.Fine || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d: %s; want %s", args, exit, stderr, want)
		}
	}
	check("read the client certificate (--cert): ", h.URL, "-k", "--cert", cert)
	check("k.pem", h.URL, "-k", "--cert", cert, "--cert-key", filepath.Join(dir, "x", "k.pem"))
	check("--cert-key is the key of --cert", h.URL, "-k", "--cert-key", keyFile)
	check("--cert is not possible", "http://127.0.0.1:1/", "--cert", cert)
}

// A URL that cannot be used as it is written is refused with what to write, and without a password.
func TestURLRefused(t *testing.T) {
	dir := ownFolder(t)
	check := func(want string, args ...string) {
		t.Helper()
		stdout, stderr, exit := really(args...)
		if exit != cli.Misused || !strings.Contains(stderr, want) ||
			strings.Contains(stdout+stderr, "sesame") {
			t.Errorf("%q: exit %d: %s%s; want %s", args, exit, stdout, stderr, want)
		}
	}
	const at = "http://127.0.0.1:1"
	user := []string{"-H", "authorization: x", "http://ann:sesame@127.0.0.1:1/"}
	for _, verb := range []string{"load", "rain", "capacity"} {
		with := []string{verb}
		if verb == "capacity" {
			with = append(with, "--slo", "p99<1s")
		}
		if verb == "rain" {
			with = append(with, "--into", dir)
		}
		check("write %20", append(with, at+"/a b")...)
		check("write %25", append(with, at+"/100%")...)
		check("as %2F, %3F and %23", append(with, "http://ann:sesame/@127.0.0.1:1/")...)
		check("one Host field", append(with, at, "-H", "Host: a", "-H", "host: b")...)
		check("one Content-Type field", append(with, at, "-H", "content-type: a", "--type", "b",
			"--body", "x")...)
		check("or 600 plus a gRPC code", append(with, at, "--status", "617")...)
		check("127.0.0.1:8443", append(with, at, "--connect-to", "127.0.0.1")...)
		if verb != "rain" {
			check("GET / has Authorization; keep one of them", append(with, user...)...)
		}
	}
	for _, verb := range [][]string{{"versus", "--get", "/", "--url"}, {"init", "--url"}} {
		check(map[string]string{"versus": "the URL has a user", "init": "without a user"}[verb[0]],
			append(verb, "http://ann:sesame@127.0.0.1:1")...)
		check("…@127.0.0.1:1", append(verb, "http://ann:sesame/@127.0.0.1:1")...)
		check("cannot be read", append(verb, "http://ann:sesame/@127.0.0.1:1")...)
		check("is not an interface", append(verb, "http://[fe80::1%25none9]:1")...)
		check("link-local", append(verb, "http://[fe80::1]:1")...)
	}
	for _, request := range [][]string{{"--get", "/a b"}, {"--request", "GET /a b"}} {
		check("a path cannot contain ' '; write %20", append([]string{"versus", "--url", at},
			request...)...)
	}
	check("write %25", "versus", "--url", at, "--get", "/100%")
	check("write %25", "init", "--url", at+"/100%")
}
