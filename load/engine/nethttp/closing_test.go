package nethttp_test

import (
	"crypto/tls"
	"net/http/httptest"
	"net/netip"
	"testing"

	"prony.example/load"
	"prony.example/load/engine/enginetest"
	"prony.example/load/engine/nethttp"
)

// What other engines must do of connections that servers close.
func TestClosing(t *testing.T) {
	signed := httptest.NewUnstartedServer(nil) // for its certificate
	signed.StartTLS()
	defer signed.Close()
	for _, row := range []struct {
		protocol string
		run      func(*testing.T, *tls.Config, enginetest.Make)
	}{
		{nethttp.H1, enginetest.RunClosing}, {nethttp.H1TLS, enginetest.RunClosing},
		{nethttp.H2C, enginetest.RunLeaving}, {nethttp.H2, enginetest.RunLeaving},
	} {
		t.Run(row.protocol, func(t *testing.T) {
			var server *tls.Config
			streams := 0
			if row.protocol == nethttp.H2 || row.protocol == nethttp.H2C {
				streams = 5
			}
			if nethttp.Secure(row.protocol) {
				server = &tls.Config{Certificates: signed.TLS.Certificates,
					NextProtos: []string{"h2", "http/1.1"}}
			}
			row.run(t, server, func(a netip.AddrPort, n int) (load.Engine, error) {
				return nethttp.New(nethttp.Config{Protocol: row.protocol, Network: "tcp",
					Address: a.String(), Host: "example.com", Streams: streams, Insecure: true}, n)
			})
		})
	}
}
