package nethttp_test

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"prony.example/internal/base/selfcert"
	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// spoken starts a truth server in a protocol and returns how to reach it.
func spoken(t *testing.T, scheme string, p truth.Plan) nethttp.Config {
	t.Helper()
	network, address := "tcp", "127.0.0.1:0"
	if scheme == "http" {
		t.Chdir(t.TempDir()) // a socket's path has a hundred bytes at most
		network, address = "unix", "s"
	}
	l, err := truth.Listen(scheme, network, address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done, certificate := make(chan error), make(chan []byte, 1)
	go func() {
		done <- truth.Speak(ctx, scheme, l, p, func(b []byte) { certificate <- b })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	c := nethttp.Config{Protocol: nethttp.Schemes[scheme], Network: network,
		Address: l.Addr().String(), Host: l.Addr().String(), Path: "/p.S/M"}
	if scheme == "http" {
		c.Protocol, c.Host = nethttp.H1Unix, "localhost"
	}
	if nethttp.Secure(c.Protocol) {
		c.CA = string(<-certificate)
	}
	return c
}

// atOnce is a plan and the maximum number of its concurrent requests.
func atOnce(p truth.Plan) (plan truth.Plan, most func() int) {
	var mu sync.Mutex
	var ends []int64 // of requests under way
	all := 0
	return func(now int64, r truth.Request) truth.Reply {
			mu.Lock()
			defer mu.Unlock()
			out := p(now, r)
			ends = slices.DeleteFunc(ends, func(at int64) bool { return at <= now })
			ends = append(ends, out.At)
			all = max(all, len(ends))
			return out
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
}

// A service of 20 ms without a queue: 4 connections without pauses have 4 concurrent requests and
// get at most 4/20 ms = 200 responses per second, in every protocol, and a single request gets the
// same response after the same time.
func TestTruthInEveryProtocol(t *testing.T) {
	testsets.Whole(t, "every protocol")
	for _, scheme := range truth.Spoken {
		t.Run(scheme, func(t *testing.T) {
			const service = 20 * time.Millisecond
			plan, most := atOnce(truth.Fixed(service))
			c := spoken(t, scheme, plan)
			began := time.Now()
			r, err := http.NewRequest("POST", "http://ignored/p.S/M", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := nethttp.Transport{Config: c}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || string(body) != truth.Body || res.StatusCode != 200 {
				t.Errorf("it answers %d %q (%v), want 200 %q", res.StatusCode, body, err,
					truth.Body)
			}
			if took := time.Since(began); took < service {
				t.Errorf("it answered after %v, which is before its moment, %v", took, service)
			}
			if err := (nethttp.Transport{Config: c}).Connect(t.Context()); err != nil {
				t.Error(err)
			}
			got := offer(t, c, load.Spec{Model: record.Closed, Connections: 4,
				Scenario: load.Scenario{Requests: []load.Request{{Method: "POST", Path: "/p.S/M",
					Body: "x", Want: truth.Body, HasWant: true}}}})
			if got.Errors.Total() != 0 || got.ServiceTime.MinNs < int64(service) ||
				most() != 4 || got.ThroughputPerS > 200 {
				t.Errorf("%d at once, %.0f/s of 200/s, from %d ns, errors %+v", most(),
					got.ThroughputPerS, got.ServiceTime.MinNs, got.Errors)
			}
			c.CA = strings.Repeat("x", 9)
			if err := (nethttp.Transport{Config: c}).Connect(t.Context()); err == nil {
				t.Error("it connects trusting no certificate at all")
			}
		})
	}
}

// An encrypted key is named, because the parser only says that it cannot read it.
func TestEncryptedKey(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	err := os.WriteFile(key, []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n"+
		"-----END ENCRYPTED PRIVATE KEY-----\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	made, err := selfcert.New(time.Hour, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	cert := filepath.Join(dir, "cert.pem")
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: made.Certificate[0]}), 0o600); err != nil {
		t.Fatal(err)
	}
	config := nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp", Address: "127.0.0.1:1",
		Host: "a.b", Cert: cert, Key: key}
	err = nethttp.Transport{Config: config}.Connect(t.Context())
	const want = "; the key is encrypted, so decrypt it, for example with openssl pkey"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
