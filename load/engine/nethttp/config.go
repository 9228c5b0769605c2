package nethttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"prony.example/internal/base/clock"
	"prony.example/load/engine/socket"
)

// Protocols by their names in records.
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

// Schemes maps the schemes of URLs and suites to protocols. Cleartext HTTP/1.1 is missing, because
// the engine epoll serves it if the system has it.
var Schemes = map[string]string{
	"https": H1TLS, "h2": H2, "h2c": H2C, "h3": H3, "grpc": GRPC, "grpcs": GRPCS, "ws": WS,
	"wss": WSS,
}

// Config configures protocol and target of the engine.
type Config struct {
	Protocol string
	Network  string        // "tcp" or "unix"; HTTP/3 uses UDP in any case
	Address  string        // host:port, or the socket's path
	Host     string        // host of URLs; without port, the name that certificates must have
	Path     string        // WebSocket: path of the opening request
	Header   http.Header   // WebSocket: further fields of the opening request
	Streams  int           // HTTP/2, HTTP/3, gRPC: slots on one connection; 0: one
	Insecure bool          // accept any certificate
	CA       string        // PEM certificates to trust instead of the system's; empty: the system's
	Cert     string        // PEM file with the client's certificate; empty: none
	Key      string        // PEM file with its key; empty: Cert has it, too
	Timeout  time.Duration // gRPC: the deadline to send to the server; 0: none
	// Dial connects; nil: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`

	pair []tls.Certificate // the content of Cert and Key, read once
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
	if c.Cert == "" || c.pair != nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, cmp.Or(c.Key, c.Cert))
	if err != nil {
		hint := ""
		key, _ := os.ReadFile(cmp.Or(c.Key, c.Cert)) // without it, the error has the reason
		if bytes.Contains(key, []byte("ENCRYPTED")) {
			hint = "; the key is encrypted, so decrypt it, for example with openssl pkey"
		}
		return fmt.Errorf("read the client certificate (--cert): %w%s", err, hint)
	}
	c.pair = []tls.Certificate{pair}
	return nil
}

// Secure reports whether a protocol uses TLS.
func Secure(protocol string) bool { return (&Config{Protocol: protocol}).secure() }

// shares reports whether several requests can be under way on a connection.
func (c *Config) shares() bool {
	return slices.Contains([]string{H2, H2C, H3, GRPC, GRPCS}, c.Protocol)
}

func (c *Config) secure() bool {
	return slices.Contains([]string{H1TLS, H2, H3, GRPCS, WSS}, c.Protocol)
}

// clients initializes the engine's configuration and shared connections.
func (c *Config) clients(e *Engine, slots int) {
	e.config = *c
	if c.Streams <= 1 {
		return
	}
	e.shared = make([]shared, (slots+c.Streams-1)/c.Streams)
	for i := range e.shared {
		e.shared[i].e = e
	}
}

func (e *Engine) newClient(i int) client {
	switch e.config.Protocol {
	case WS, WSS:
		return &webSocket{e: e}
	case H2, H2C, H3:
		return &part{e: e, sharedConn: e.connOf(i)}
	case GRPC, GRPCS:
		return &call{e: e, sharedConn: e.connOf(i)}
	}
	return &stream{e: e}
}

// connOf returns the connection of a slot that opens.
func (e *Engine) connOf(i int) *shared {
	if e.config.Streams <= 1 {
		return &shared{e: e, alone: true}
	}
	return &e.shared[i/e.config.Streams]
}

// dial connects and, if the protocol uses TLS, makes the handshake.
func (e *Engine) dial(ctx context.Context, protos ...string) (net.Conn, error) {
	conn, err := e.reach(ctx, e.config.Network)
	if err != nil {
		return nil, err
	}
	if !e.config.shares() {
		watched, err := newIdle(conn)
		if err != nil {
			return nil, err
		}
		conn = watched
	}
	if !e.config.secure() {
		return conn, nil
	}
	began := clock.Mono()
	config := e.config.tls(protos...)
	if e.config.Protocol == H1TLS { // as epoll does
		config.ClientSessionCache = e.sessions
	}
	unanswered := socket.Certify(config)
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", socket.Handshake(err, unanswered.Load()))
	}
	e.shook(clock.Mono()-began, c.ConnectionState())
	return c, nil
}

// reach opens a connection to the target.
func (e *Engine) reach(ctx context.Context, network string) (net.Conn, error) {
	dial := e.config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, network, e.config.Address)
	if err != nil {
		return nil, socket.Explain(err, false)
	}
	return conn, nil
}

// TLS returns the TLS configuration, for engines that make handshakes themselves. It fails if the
// Config is invalid.
func (c *Config) TLS(protos ...string) (*tls.Config, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.tls(protos...), nil
}

// tls returns the TLS configuration of a valid Config.
func (c *Config) tls(protos ...string) *tls.Config {
	out := &tls.Config{
		ServerName: name(c.Host), NextProtos: protos, Certificates: c.pair,
		InsecureSkipVerify: c.Insecure, //nolint:gosec // asked for by the user
	}
	if c.CA != "" {
		out.RootCAs = x509.NewCertPool()
		out.RootCAs.AppendCertsFromPEM([]byte(c.CA)) // check has verified it
	}
	return out
}

// name returns a host without its port.
func name(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// ending returns nil for an orderly close by the peer, which ends a response without a length.
func ending(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Headless implements engine.Headless. A WebSocket message has only a payload.
func (e *Engine) Headless() bool { return e.config.Protocol == WS || e.config.Protocol == WSS }
