package nethttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine/tlsconn"
)

// Protocols, as records name them.
const (
	H1     = "HTTP/1.1"
	H1TLS  = "HTTP/1.1 over TLS"
	H1Unix = "HTTP/1.1 over a Unix socket"
	H2     = "HTTP/2 over TLS"
	H2C    = "HTTP/2 without TLS"
	H3     = "HTTP/3"
	GRPC   = "gRPC without TLS"
	GRPCS  = "gRPC over TLS"
	WS     = "WebSocket"
	WSS    = "WebSocket over TLS"
)

// Schemes are the protocols by the names that URLs and suites have for them. HTTP/1.1 in the clear
// is not among them: where there are raw engines, they speak it.
var Schemes = map[string]string{
	"https": H1TLS, "h2": H2, "h2c": H2C, "h3": H3, "grpc": GRPC, "grpcs": GRPCS, "ws": WS,
	"wss": WSS,
}

// Config says what the engine speaks, and with whom.
type Config struct {
	Protocol string
	Network  string        // "tcp" or "unix"; HTTP/3 goes over UDP all the same
	Address  string        // host:port, or the socket's path
	Host     string        // of URLs; without its port, the name that the certificate must bear
	Path     string        // WebSocket: where the connection is opened
	Streams  int           // HTTP/2, HTTP/3, gRPC: slots on one connection; 0: one
	Insecure bool          // any certificate will do
	CA       string        // certificates in PEM, trusted instead of the system's; empty: those
	Timeout  time.Duration // gRPC: by when the server is told to answer; 0: nothing is told
	// Dial connects; nil: as the network says.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c *Config) check() error {
	switch c.Protocol {
	case H1, H1TLS, H1Unix, H2, H2C, H3, GRPC, GRPCS, WS, WSS:
	default:
		return fmt.Errorf("start the engine: %q is not a protocol of it", c.Protocol)
	}
	if c.Streams > 1 && !c.shares() {
		return fmt.Errorf("start the engine: %s has one request at a time on a connection; leave "+
			"out the streams", c.Protocol)
	}
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		return errors.New("start the engine: the file of trusted certificates holds none in PEM")
	}
	return nil
}

// Secure reports whether a protocol goes over TLS.
func Secure(protocol string) bool { return (&Config{Protocol: protocol}).secure() }

// shares reports whether several requests can be under way on a connection.
func (c *Config) shares() bool {
	return slices.Contains([]string{H2, H2C, H3, GRPC, GRPCS}, c.Protocol)
}

func (c *Config) secure() bool {
	return slices.Contains([]string{H1TLS, H2, H3, GRPCS, WSS}, c.Protocol)
}

// clients makes the engine's maker of clients and what they share.
func (c *Config) clients(e *Engine, slots int) {
	e.config = *c
	if !c.shares() {
		return
	}
	per := max(c.Streams, 1)
	e.shared = make([]shared, (slots+per-1)/per)
	for i := range e.shared {
		e.shared[i].e = e
	}
}

func (e *Engine) newClient(i int) client {
	switch e.config.Protocol {
	case WS, WSS:
		return &socket{e: e}
	case H2, H2C, H3:
		return &part{e: e, sharedConn: &e.shared[i/max(e.config.Streams, 1)]}
	case GRPC, GRPCS:
		return &call{e: e, sharedConn: &e.shared[i/max(e.config.Streams, 1)]}
	}
	return &stream{e: e}
}

// dial connects and, where the protocol has it, shakes hands.
func (e *Engine) dial(ctx context.Context, protos ...string) (net.Conn, error) {
	conn, err := e.reach(ctx, e.config.Network)
	if err != nil {
		return nil, err
	}
	if !e.config.shares() {
		if conn, err = newIdle(conn); err != nil {
			return nil, err
		}
	}
	if !e.config.secure() {
		return conn, nil
	}
	began := clock.Mono()
	config := e.config.tls(protos...)
	if e.config.Protocol == H1TLS { // as the raw engines do
		config.ClientSessionCache = e.sessions
	}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", tlsconn.Explain(err))
	}
	e.shook(clock.Mono()-began, c.ConnectionState())
	return c, nil
}

// reach opens a socket to the peer.
func (e *Engine) reach(ctx context.Context, network string) (net.Conn, error) {
	dial := e.config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, network, e.config.Address)
	if err != nil {
		return nil, tlsconn.Explain(err)
	}
	return conn, nil
}

// TLS is how handshakes are made, for an engine that makes them itself.
func (c *Config) TLS(protos ...string) (*tls.Config, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.tls(protos...), nil
}

// tls is how a handshake is made.
func (c *Config) tls(protos ...string) *tls.Config {
	out := &tls.Config{
		ServerName: name(c.Host), NextProtos: protos,
		InsecureSkipVerify: c.Insecure, //nolint:gosec // asked for by the user
	}
	if c.CA != "" {
		out.RootCAs = x509.NewCertPool()
		out.RootCAs.AppendCertsFromPEM([]byte(c.CA)) // which check has seen to hold some
	}
	return out
}

// name is a host without its port.
func name(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// ending is nil for an orderly close by the peer, which ends an answer that has no length.
func ending(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Headless implements engine.Headless: a message of WebSocket is its payload alone.
func (e *Engine) Headless() bool { return e.config.Protocol == WS || e.config.Protocol == WSS }
