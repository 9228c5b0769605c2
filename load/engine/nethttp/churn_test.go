package nethttp_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// Without streams, a connection is renewed after a number of responses, in every protocol, and
// requests have no header fields of the libraries.
func TestChurn(t *testing.T) {
	var agents atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if name == "User-Agent" && r.UserAgent() != "own" {
				agents.Add(1)
			}
		}
		_, _ = io.WriteString(w, "ok") // a lost answer fails the test anyway
	})
	over2 := httptest.NewUnstartedServer(handler)
	over2.EnableHTTP2 = true
	over2.StartTLS()
	defer over2.Close()
	_, over3 := quicServer(t, handler)
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: over2.TLS.Certificates, NextProtos: []string{"h2"}})))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go server.Serve(calls) //nolint:errcheck // it ends when it is stopped
	t.Cleanup(server.Stop)
	get := load.Request{Method: "GET", Path: "/", WantSize: -1}
	own := get
	own.Headers = []load.Header{{Name: "User-Agent", Value: "own"}}
	call := load.Request{Method: "POST", Path: "/grpc.health.v1.Health/Check", WantSize: -1}
	for protocol, x := range map[string]struct {
		addr     net.Addr
		requests []load.Request
	}{
		nethttp.H2:    {over2.Listener.Addr(), []load.Request{get, own}},
		nethttp.H3:    {over3.LocalAddr(), []load.Request{get, own}},
		nethttp.GRPCS: {calls.Addr(), []load.Request{call}},
	} {
		c := nethttp.Config{Protocol: protocol, Network: "tcp", Address: x.addr.String(),
			Host: "example.com", Insecure: true}
		r := offer(t, c, load.Spec{Model: record.Closed, Connections: 2, Churn: 10,
			Scenario: load.Scenario{Requests: x.requests}})
		if n := r.TLSTime.Count; r.Answered != 80 || r.Errors.Total() != 0 || n < 8 || n > 10 {
			t.Errorf("%s: %d answered, %d handshakes, %+v", protocol, r.Answered, n, r.Errors)
		}
	}
	if n := agents.Load(); n > 0 {
		t.Errorf("%d requests had a User-Agent of a library", n)
	}
}
