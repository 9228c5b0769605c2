package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"prony.example/load/engine/http2"
	"prony.example/load/engine/nethttp"
	"prony.example/load/template"
)

// Names of engines for Choice.Engine.
const (
	Auto    = "auto"    // Epoll if the system and the protocol permit it, otherwise NetHTTP
	Epoll   = "epoll"   // Linux: system calls without a library
	NetHTTP = "nethttp" // Go's network stack, everywhere
)

// Choice chooses the engine of a load. The zero value selects Auto for cleartext HTTP/1.1.
type Choice struct {
	Engine string          // Auto, which is the default, or another of the names above
	Speak  *nethttp.Config // any protocol but cleartext HTTP/1.1; nil: cleartext HTTP/1.1
}

// Set sets the engine of a load. It fails if the chosen engine is not available on this machine or
// does not support the protocol or the network of the load.
func (c Choice) Set(s *Spec) error {
	if c.Speak != nil {
		if err := carries(c.Speak.Protocol, s.Scenario.Requests); err != nil {
			return err
		}
	}
	switch {
	case !s.Network.IsZero() && !c.delays():
		return errNoDelay
	case c.Speak == nil && c.Engine != NetHTTP, c.overEpoll():
		return c.useEpoll(s)
	case c.Engine != "" && c.Engine != Auto && c.Engine != NetHTTP:
		return fmt.Errorf("engine %s speaks only HTTP/1.1, HTTP/2 and gRPC, without or over TLS; "+
			"leave out --engine", c.Engine)
	case c.Speak == nil:
		usePlainStack(s)
	default:
		speak := *c.Speak
		speak.Timeout = s.Timeout
		if err := handshake(&speak, s.Scenario.Requests); err != nil {
			return err
		}
		useStack(s, speak)
	}
	if c.Engine == NetHTTP {
		s.Describe.Reason = "asked for" + unwatched
	}
	return nil
}

// delays reports whether the chosen engine can add a network's delay.
func (c Choice) delays() bool {
	return hasEpoll && c.Engine != NetHTTP && (c.Speak == nil || c.overEpoll())
}

// errNoDelay is the error of an engine that cannot add a network's delay.
var errNoDelay = fmt.Errorf("only the engine %s can delay the network: on Linux, for HTTP/1.1, "+
	"HTTP/2 and gRPC over TCP, without or over TLS; remove the delay, or change engine or protocol",
	Epoll)

// handshake sets path and header fields of a WebSocket's opening request, which are those of all
// requests of the load. It does nothing for other protocols.
func handshake(c *nethttp.Config, requests []Request) error {
	if !isSocket(c.Protocol) || len(requests) == 0 {
		return nil
	}
	first := requests[0]
	for _, r := range requests {
		if r.Path != first.Path || !slices.Equal(r.Headers, first.Headers) {
			return errors.New("a WebSocket opens at one path with the same header fields for all " +
				"messages; put the differences into the bodies")
		}
	}
	constant := func(subject, text string) (string, error) {
		t, err := sent(text, nil, true)
		if err != nil {
			return "", fmt.Errorf("%s of the WebSocket: %w", subject, err)
		}
		value, fixed := t.Fixed()
		if !fixed {
			return "", fmt.Errorf("%s has a placeholder, but a WebSocket sends it only once, when "+
				"it opens; write a constant", subject)
		}
		return string(value), nil
	}
	path, err := constant("the path "+first.Path, first.Path)
	if err != nil {
		return err
	}
	c.Path, c.Header = path, http.Header{}
	for _, h := range first.Headers {
		value, err := constant("header field "+h.Name, h.Value)
		if err != nil {
			return err
		}
		c.Header.Add(h.Name, value)
	}
	return nil
}

func isSocket(protocol string) bool { return protocol == nethttp.WS || protocol == nethttp.WSS }

// upgrading are the header fields that WebSockets set themselves (RFC 6455, section 4.1).
var upgrading = []string{"connection", "upgrade", "sec-websocket-key", "sec-websocket-version"}

// carries returns an error if requests have header fields that a protocol would not send.
func carries(protocol string, requests []Request) error {
	call := protocol == nethttp.GRPC || protocol == nethttp.GRPCS
	for _, r := range requests {
		for _, h := range r.Headers {
			good := serial(protocol) || http2.Carries(h.Name, h.Value, call)
			if isSocket(protocol) {
				good = !slices.Contains(upgrading, strings.ToLower(h.Name))
			}
			if !good {
				return fmt.Errorf("%s %s: %s does not have the header field %s, or sets it "+
					"itself; leave it out", r.Method, r.Path, protocol, h.Name)
			}
		}
	}
	return nil
}

// overEpoll reports whether the engine epoll can carry the protocol.
func (c Choice) overEpoll() bool {
	return hasEpoll && c.Speak != nil && c.Speak.Dial == nil && c.Engine != NetHTTP &&
		slices.Contains(
			[]string{nethttp.H1TLS, nethttp.H2, nethttp.H2C, nethttp.GRPC, nethttp.GRPCS},
			c.Speak.Protocol)
}

// usePlainStack selects Go's network stack for cleartext HTTP/1.1.
func usePlainStack(s *Spec) {
	useStack(s, nethttp.Config{Protocol: nethttp.H1, Network: "tcp", Address: s.Address.String()})
	s.Describe.Protocol = "" // as for every engine that sends HTTP/1.1
}

func useStack(s *Spec, c nethttp.Config) {
	s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
		e, err := nethttp.New(c, slots)
		if err != nil { // a nil *nethttp.Engine would be a non-nil Engine
			return nil, err
		}
		return e, nil
	}
	s.Describe = EngineInfo{
		Name: NetHTTP, Reason: c.Protocol + " needs Go's network stack and libraries" + unwatched,
		Pacing: nethttp.Pacing, Protocol: c.Protocol, Streams: c.Streams, Spread: true,
		Datagrams: c.Protocol == nethttp.H3,
	}
	if c.Streams <= 1 {
		s.Describe.Streams = 0
	}
}

// Messages converts gRPC bodies from JSON to the wire format, with the method descriptors that the
// server's reflection reports. Requests of other protocols stay unchanged.
func Messages(ctx context.Context, c nethttp.Config, requests []Request) error {
	for i := range requests {
		r := &requests[i]
		if !nethttp.IsJSON(&c, r.Body) {
			continue
		}
		b, err := nethttp.Message(ctx, c, r.Path, r.Body)
		if err != nil {
			return err
		}
		r.Body = template.Escape(string(b))
	}
	return nil
}
