package enginetest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"net/netip"
	"testing"

	"prony.example/load/engine"
)

// MakeSecure returns a TLS engine for a number of slots, all for one address.
type MakeSecure func(netip.AddrPort, int, *tls.Config) (engine.Engine, error)

// RunSecure runs the suite over TLS up to a version, against engines that make returns.
func RunSecure(t *testing.T, version uint16, make MakeSecure) {
	runSecure(t, version, make, nil)
}

// RunSecureDelayed is RunSecure for engines that hold bytes and events for a time.
func RunSecureDelayed(t *testing.T, version uint16, make MakeSecure) {
	// The server waits for the end of the handshake, which is held outside of Wait.
	runSecure(t, version, make, append(delayedWithout, "events of a reused slot"))
}

func runSecure(t *testing.T, version uint16, make MakeSecure, without []string) {
	server, client, done := trusting(version)
	defer done()
	s := &suite{
		make: func(a netip.AddrPort, n int) (engine.Engine, error) {
			return make(a, n, client)
		},
		server:    server,
		allocates: 1,
	}
	if version < tls.VersionTLS13 {
		s.allocates = 3
	}
	s.run(t, append([]string{
		"out of descriptors",         // the server accepts no connection, so there is no handshake
		"failed connects",            // there is no server for a handshake
		"never early", "no deadline", // the engine below waits,
		"no wake-up is missed", // and has its own tests
	}, without...))
}

// trusting returns TLS configurations for a server and a client that trusts it, up to a version.
func trusting(version uint16) (server, client *tls.Config, done func()) {
	signed := httptest.NewUnstartedServer(nil)
	signed.StartTLS()
	client = &tls.Config{ServerName: "example.com", RootCAs: x509.NewCertPool()}
	client.RootCAs.AddCert(signed.Certificate())
	server = &tls.Config{Certificates: signed.TLS.Certificates, MaxVersion: version}
	return server, client, signed.Close
}

// peer is the server side of a connection or stream.
type peer struct {
	net.Conn
	tcp *net.TCPConn
}

// CloseWrite ends the server's direction.
func (p *peer) CloseWrite() error {
	if c, ok := p.Conn.(*tls.Conn); ok {
		return c.CloseWrite()
	}
	return p.tcp.CloseWrite()
}

// reset ends the connection as the crash of a server does.
func (p *peer) reset() {
	_ = p.tcp.SetLinger(0) // cannot fail on an open socket
	p.tcp.Close()
}

// Serve serves each connection of a listener with f on its own goroutine and then closes the
// connection. It returns when the listener is closed.
func Serve(l net.Listener, f func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			f(c)
		}()
	}
}

// listen serves each connection with f on its own goroutine and returns the address.
func (s *suite) listen(t *testing.T, addr string, f func(c *peer)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { l.Close() })
	go Serve(l, func(c net.Conn) { s.serve(c.(*net.TCPConn), f) })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func (s *suite) serve(c *net.TCPConn, f func(c *peer)) {
	p := &peer{Conn: c, tcp: c}
	if s.server != nil {
		over := tls.Server(c, s.server)
		p.Conn = over
		if over.Handshake() != nil {
			return // the client has closed, or reports the failure
		}
	}
	if s.stream != nil {
		s.serveStreams(p, f)
		return
	}
	defer p.Close()
	f(p)
}
