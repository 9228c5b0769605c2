package service

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const spoken = `name: go-x
language: Go
framework: x
version: "1"
about: x
contracts: [hello]
protocols: [https, h2c]
build: {steps: [], artifact: .}
builds:
  - {name: more, steps: [], artifact: ., protocols: [grpc], command: [more]}
run: {command: [x], health: /health, ready: /ready}
targets:
  - {name: virtual, runtime: native, mode: virtual}
`

// catalogOf returns a catalog with a single service from a manifest.
func catalogOf(t *testing.T, manifest string) ([]*Service, error) {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "services", "go-x")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(dir, "service.yaml"), []byte(manifest), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return Catalog(root)
}

// A build only for protocols is no service of the catalog: its targets are the usual build's.
func TestBuildForProtocolsAlone(t *testing.T) {
	all, err := catalogOf(t, spoken)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d services, %v, want one", len(all), err)
	}
	s := all[0]
	if got := s.Spoken(); !slices.Equal(got, []string{"https", "h2c", "grpc"}) {
		t.Errorf("it speaks %v", got)
	}
	for protocol, command := range map[string]string{"": "x", "h2c": "x", "grpc": "more"} {
		by := s.Speaking(protocol)
		if by == nil || by.Run.Command[0] != command || len(by.Targets) != 1 ||
			by.Full(by.Targets[0]) != "go-x" || by.Alone() != (command == "more") {
			t.Errorf("%q is spoken by %+v, want %s", protocol, by, command)
		}
	}
	if s.Speaking("h3") != nil {
		t.Error("somebody speaks h3")
	}
	if s.ReadyIn("grpc") != ReadyCall || s.ReadyIn("h2") != "/ready" {
		t.Errorf("ready by %s and %s", s.ReadyIn("grpc"), s.ReadyIn("h2"))
	}
}

// One of two targets remains, also in the build for protocols, with an unchanged name.
func TestNarrow(t *testing.T) {
	all, err := catalogOf(t, spoken+"  - {name: second, runtime: native, mode: platform}\n")
	if err != nil || len(all) != 1 {
		t.Fatalf("%d services, %v, want one", len(all), err)
	}
	s := all[0]
	for _, of := range s.Targets {
		got := s.Narrow(of)
		for _, n := range append(got.ProtocolBuilds(), got) {
			if len(n.Targets) != 1 || n.Full(n.Targets[0]) != s.Full(of) {
				t.Errorf("%s of %s: %+v", s.Full(of), n.Label(), n.Targets)
			}
		}
		builds := got.ProtocolBuilds()
		if len(s.Targets) != 2 || len(builds) != 1 || len(s.ProtocolBuilds()[0].Targets) != 2 {
			t.Errorf("the service has %d targets, %d builds", len(s.Targets), len(builds))
		}
	}
}

func TestWrongProtocols(t *testing.T) {
	for _, row := range []struct{ from, to, want string }{
		{"[https, h2c]", "[https, h4]", `service.yaml:7: unknown protocol "h4"`},
		{"[https, h2c]", "[https, grpc]", `service.yaml:10: protocol "grpc" is listed twice`},
		{"runtime: native", "runtime: native, build: more",
			`build "more" has both targets of its own and prot`},
		{"run: {command: [x]", "run: {command: [x], env: {TLS_KEY: x}",
			"Prony itself sets the variable TLS_K"},
		{"run: {command: [x]", "run: {processes: [{name: a, command: [x], ready: /ready}]",
			"a system of several processes supports only HTTP/1.1"},
	} {
		if _, err := catalogOf(t, strings.Replace(spoken, row.from, row.to, 1)); err == nil ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.to, err, row.want)
		}
	}
}

// Clients with its PEM text trust a certificate; only its user may read the key, and Remove removes
// both.
func TestCertificate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	c, err := NewCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := c.Env("h2")
	pair, err := tls.LoadX509KeyPair(env["TLS_CERT"], env["TLS_KEY"])
	if err != nil || env["PROTOCOL"] != "h2" {
		t.Fatalf("%v, told %v", err, env)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(c.PEM))
	for name, fine := range map[string]bool{"127.0.0.1": true, "localhost": true,
		"10.0.0.1": false} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name})
		if (err == nil) != fine {
			t.Errorf("for %s: %v", name, err)
		}
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, env["TLS_KEY"]: 0o600} {
		if at, err := os.Stat(path); err != nil || at.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %v", path, at.Mode(), err, mode)
		}
	}
	if _, err := NewCertificate(dir); err == nil {
		t.Error("a folder that is there already may be somebody's")
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("its files are still there")
	}
	if env := (Certificate{}).Env(""); env != nil {
		t.Errorf("HTTP/1.1 in the clear is told %v", env)
	}
}

// calls answers like a gRPC service through package stack, except for one error.
type calls struct{ wrong string }

func (c calls) RoundTrip(r *http.Request) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	key, status, body := "1", http.StatusOK, ""
	if len(sent) > 2 {
		key = string(sent[2 : 2+sent[1]])
	}
	text := "Hello from REST value-" + key
	body = "\n" + string(rune(len(text))) + text
	switch {
	case strings.HasPrefix(r.URL.Path, "/grpc.health"):
		body = "\x08\x01"
	case key == "50001" || key == "abc":
		status, body = 605, ""
	}
	switch c.wrong {
	case "status":
		status = 600
	case "key":
		body = strings.Replace(body, "31415", "31416", 1)
	case "drawn":
		if !strings.Contains("1 7 31415 50000", key) {
			body += "x"
		}
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Length": {"1"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

// Answers of calls are compared with the contract's answers in gRPC. A contract without gRPC
// answers is not checked.
func TestConformInCalls(t *testing.T) {
	for wrong, want := range map[string]string{"": "", "status": "status 600, want 200",
		"key": "POST /prony.Hello/Say: the body differs", "drawn": "drawn with seed 7"} {
		c := Checker{Base: "h:1", Mode: "virtual", Ask: calls{wrong}, Calls: true, Seed: 7}
		r, err := Conform(t.Context(), c, "hello")
		if err != nil || len(r.Cases) < 9 {
			t.Fatalf("%d cases, %v", len(r.Cases), err)
		}
		got := strings.Join(r.Failures(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %q", wrong, got, want)
		}
		if r, err = Conform(t.Context(), c, "compute"); err != nil || len(r.Cases) > 0 {
			t.Errorf("compute: %d cases, %v", len(r.Cases), err)
		}
	}
}
