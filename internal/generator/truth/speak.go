package truth

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"prony.example/internal/base/clock"
	"prony.example/internal/base/selfcert"
)

// Spoken lists the protocols of Speak, with their names in suites.
var Spoken = []string{"http", "https", "h2", "h2c", "h3", "grpc", "grpcs", "ws", "wss"}

// Listen returns a listener for Speak. HTTP/3 uses a UDP port, whatever the network.
func Listen(protocol, network, address string) (net.Listener, error) {
	if protocol != "h3" {
		return net.Listen(network, address)
	}
	l, err := net.ListenPacket("udp", address)
	return datagrams{l}, err
}

// datagrams is a listener for HTTP/3.
type datagrams struct{ net.PacketConn }

// Cramp limits an HTTP/3 listener's receive buffer to a number of bytes, and hides the socket from
// the library, which would enlarge the buffer.
func Cramp(l net.Listener, bytes int) (net.Listener, error) {
	conn, ok := l.(datagrams).PacketConn.(*net.UDPConn)
	if !ok {
		return nil, errors.New("limit the receive buffer: it is already limited")
	}
	return datagrams{cramped{conn}}, conn.SetReadBuffer(bytes)
}

// cramped is a socket with a fixed buffer.
type cramped struct{ net.PacketConn }

func (cramped) SetReadBuffer(int) error  { return nil }
func (cramped) SetWriteBuffer(int) error { return nil }

func (d datagrams) Addr() net.Addr { return d.LocalAddr() }

func (datagrams) Accept() (net.Conn, error) {
	return nil, errors.New("a datagram socket cannot accept connections")
}

// Speak runs a Plan in a protocol on a listener of Listen until ctx ends; it closes the listener.
// Responses have the Plan's bodies; it ignores Plan's ends of connections and steps. Go's servers
// are in between, so responses leave about 100 µs after their due time, compared with a few µs in
// Serve. For TLS it creates a certificate for 127.0.0.1, localhost and example.com, and passes it
// in PEM to onBody unless that is nil.
func Speak(
	ctx context.Context,
	protocol string,
	l net.Listener,
	p Plan,
	onBody func([]byte),
) error {
	s := &speaker{plan: p}
	secure := protocol == "https" || protocol == "h2" || protocol == "grpcs" || protocol == "wss" ||
		protocol == "h3"
	var conf *tls.Config
	if secure {
		c, err := selfcert.New(24*time.Hour, "localhost", "example.com", "127.0.0.1")
		if err != nil {
			return fmt.Errorf("serve truth: make a certificate: %w", err)
		}
		conf = &tls.Config{Certificates: []tls.Certificate{c}}
		if onBody != nil {
			onBody(selfcert.PEM(c))
		}
	}
	var serve func() error
	var stop func()
	switch protocol {
	case "grpc", "grpcs":
		serve, stop = s.calls(l, conf)
	case "http", "https", "h2", "h2c", "h3", "ws", "wss":
		serve, stop = s.web(protocol, l, conf)
	default:
		return fmt.Errorf("serve truth: protocol %q does not exist", protocol)
	}
	defer context.AfterFunc(ctx, stop)()
	if err := serve(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve truth: %w", err)
	}
	return nil
}

// h3Streams is the number of concurrent requests on a connection: the largest number in suites.
const h3Streams = 1000

// speaker keeps a Plan's requests in order.
type speaker struct {
	mu   sync.Mutex
	n    int64
	plan Plan
}

// answer calls the Plan and waits until its response is due. A response that is never due ends with
// ctx.
func (s *speaker) answer(ctx context.Context, method, path string, body []byte) (int, []byte) {
	now := clock.Mono()
	s.mu.Lock()
	s.n++
	r := s.plan(now, Request{N: s.n, Method: []byte(method), Path: []byte(path), Body: body})
	s.mu.Unlock()
	if r.At == Never {
		<-ctx.Done()
		return 0, nil
	}
	if wait := r.At - clock.Mono(); wait > 0 {
		// The kernel's timer is used, because Go's may be a millisecond late on an idle machine.
		pause := unix.NsecToTimespec(wait)
		for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, &pause) == unix.EINTR {
		}
	}
	head, content, _ := bytes.Cut(r.Text, emptyLine)
	status := http.StatusOK
	_, _ = fmt.Sscanf(string(head), "HTTP/1.1 %d", &status) // 200 if it is malformed
	return status, content
}

func (s *speaker) web(protocol string, l net.Listener, conf *tls.Config) (func() error, func()) {
	handle := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<bodyBits))
		if err != nil {
			return
		}
		status, content := s.answer(r.Context(), r.Method, r.URL.Path, body)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(status)
		_, _ = w.Write(content) // the client may have left
	}
	if protocol == "ws" || protocol == "wss" {
		handle = s.messages
	}
	if d, ok := l.(datagrams); ok {
		server := &http3.Server{Handler: http.HandlerFunc(handle), TLSConfig: conf,
			QUICConfig: &quic.Config{MaxIncomingStreams: h3Streams}}
		return func() error { return server.Serve(d.PacketConn) }, func() {
			server.Close()
			d.Close()
		}
	}
	server := &http.Server{Handler: http.HandlerFunc(handle), TLSConfig: conf,
		ReadHeaderTimeout: time.Minute, Protocols: &http.Protocols{}}
	server.Protocols.SetHTTP1(protocol != "h2" && protocol != "h2c")
	server.Protocols.SetHTTP2(protocol == "h2")
	server.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
	serve := func() error { return server.Serve(l) }
	if conf != nil {
		serve = func() error { return server.ServeTLS(l, "", "") }
	}
	return serve, func() { server.Close() }
}

// messages responds to the messages of a WebSocket in sequence.
func (s *speaker) messages(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // the client left first
	for {
		kind, b, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		_, content := s.answer(r.Context(), "POST", r.URL.Path, b)
		if conn.Write(r.Context(), kind, content) != nil {
			return
		}
	}
}

// calls responds to every unary gRPC call, whatever its method: the body is the message; a status
// other than 200 becomes an internal error (13).
func (s *speaker) calls(l net.Listener, conf *tls.Config) (func() error, func()) {
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(Bare{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			var in []byte
			if err := stream.RecvMsg(&in); err != nil {
				return err
			}
			path, _ := grpc.MethodFromServerStream(stream)
			code, content := s.answer(stream.Context(), "POST", path, in)
			if code != http.StatusOK {
				return status.Error(codes.Internal, string(content))
			}
			return stream.SendMsg(&content)
		})}
	if conf != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(conf)))
	}
	server := grpc.NewServer(options...)
	return func() error { return server.Serve(l) }, server.Stop
}

// Bare is a codec that passes messages through as bytes.
type Bare struct{}

// Name implements encoding.CodecV2.
func (Bare) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (Bare) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, errors.New("a message is bytes")
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (Bare) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = Bare{}
