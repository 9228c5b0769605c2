package nethttp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// Transport sends single requests in a protocol of the engine, each over its own connection, by the
// same code as a load, so a target that responds to it is ready for the load. It is an
// http.RoundTripper that uses only path and query of a request's URL.
type Transport struct{ Config Config }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
	}
	path := r.URL.RequestURI()
	if IsJSON(&t.Config, string(body)) {
		message, err := Message(r.Context(), t.Config, path, string(body))
		if err != nil {
			return nil, err
		}
		body = message
	}
	host := cmp.Or(r.Host, r.URL.Host)
	if host == t.Config.Address {
		host = t.Config.Host // as in a load
	}
	b := written(r, path, host, body)
	answer, err := t.Config.once(r.Context(), b)
	if err != nil {
		return nil, err
	}
	return ReadResponse(bufio.NewReader(bytes.NewReader(answer)), r)
}

// ReadResponse is http.ReadResponse without interim responses (RFC 9110, section 15.2).
func ReadResponse(in *bufio.Reader, r *http.Request) (*http.Response, error) {
	for {
		res, err := http.ReadResponse(in, r)
		if err != nil || res.StatusCode >= http.StatusOK ||
			res.StatusCode == http.StatusSwitchingProtocols {
			return res, err
		}
	}
}

// written formats a request as a load does, because a service can quote the fields in their order.
func written(r *http.Request, path, host string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, path, host)
	kind := r.Header.Get("Content-Type")
	if kind != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", kind)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if strings.EqualFold(name, "Host") || strings.EqualFold(name, "Content-Type") {
			continue
		}
		for _, value := range r.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	if len(body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// Connect opens a connection, including the protocol's handshakes, and closes it.
func (t Transport) Connect(ctx context.Context) error {
	_, err := t.Config.once(ctx, nil)
	return err
}

// once connects, sends the request unless it is nil, and returns the response as HTTP/1.1 text.
func (c Config) once(ctx context.Context, request []byte) (answer []byte, err error) {
	c.Streams = 0
	if err := c.check(); err != nil {
		return nil, err
	}
	e := &Engine{slots: make([]slot, 1), handshakes: newHandshakes()}
	c.clients(e, 1)
	client := e.newClient(0)
	defer func() {
		client.close()
		for i := range e.shared {
			e.shared[i].close()
		}
	}()
	if err := client.open(ctx); err != nil || request == nil {
		return nil, err
	}
	if _, err := client.exchange(ctx, request, &sink{e: e, unsent: new(atomic.Int64)}); err != nil {
		return nil, err
	}
	for _, v := range e.queue {
		answer = append(answer, v.b...)
	}
	return answer, nil
}

// Dialer returns a function that connects as the protocol does, with TLS or to a Unix socket, for
// clients that use HTTP/1.1 over the connection. The function ignores its address.
func (c Config) Dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	e := &Engine{config: c, handshakes: newHandshakes()}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return e.dial(ctx, "http/1.1")
	}
}

// IsJSON reports whether a body must be converted to a gRPC message. Encoded messages do not begin
// with a brace by chance: it would be a group with field number 15, and groups are obsolete.
func IsJSON(c *Config, body string) bool {
	return (c.Protocol == GRPC || c.Protocol == GRPCS) && strings.HasPrefix(body, "{")
}
