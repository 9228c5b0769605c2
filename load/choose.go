package load

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"prony.example/load/engine"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/nethttp"
	"prony.example/load/engine/tlsconn"
	"prony.example/load/template"
)

// Names of engines for Choice.Engine.
const (
	Auto    = "auto"    // Linux: io_uring if the kernel permits it, else epoll
	Uring   = "uring"   // Linux: io_uring
	Epoll   = "epoll"   // Linux: epoll
	NetHTTP = "nethttp" // Go's network stack, everywhere
)

// Choice chooses the engine of a load. The zero value selects Auto for cleartext HTTP/1.1.
type Choice struct {
	Engine string          // Auto, which is the default, or another of the names above
	Speak  *nethttp.Config // any protocol but cleartext HTTP/1.1; nil: cleartext HTTP/1.1
}

// Set sets the engine of a load. It fails if the chosen engine is not available on this machine or
// does not support the protocol.
func (c Choice) Set(s *Spec) error {
	switch {
	case c.Speak == nil && c.Engine != NetHTTP, c.overRaw():
		return c.useRaw(s)
	case c.Engine != "" && c.Engine != Auto && c.Engine != NetHTTP:
		return fmt.Errorf("engine %s speaks only HTTP/1.1, HTTP/2 and gRPC, without or over TLS; "+
			"leave out --engine", c.Engine)
	case c.Speak == nil:
		usePlainStack(s)
	default:
		speak := *c.Speak
		speak.Timeout = s.Timeout
		useStack(s, speak)
	}
	if c.Engine == NetHTTP {
		s.Describe.Reason = "asked for" + unwatched
	}
	return nil
}

// overRaw reports whether a raw engine can carry the protocol.
func (c Choice) overRaw() bool {
	return hasRaw && c.Speak != nil && c.Speak.Dial == nil && c.Engine != NetHTTP &&
		slices.Contains(
			[]string{nethttp.H1TLS, nethttp.H2, nethttp.H2C, nethttp.GRPC, nethttp.GRPCS},
			c.Speak.Protocol)
}

// speak layers TLS, HTTP/2 or gRPC over the raw engine that was chosen.
func speak(s *Spec, c *nethttp.Config) {
	below, timeout := s.Engine, s.Timeout
	s.Describe.Protocol = c.Protocol
	if c.Protocol == nethttp.H1TLS {
		s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
			return secure(below, c, slots, "http/1.1")
		}
		return
	}
	if c.Streams > 1 {
		s.Describe.Streams = c.Streams
	}
	s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
		n, over := http2.Below(slots, c.Streams), nethttp.Secure(c.Protocol)
		make := reach
		if over {
			make = secure
		}
		e, err := make(below, c, n, "h2")
		if err != nil {
			return nil, err
		}
		if c.Protocol == nethttp.GRPC || c.Protocol == nethttp.GRPCS {
			return http2.NewCalls(e.(engine.Streamer), slots, c.Streams, over, timeout), nil
		}
		return http2.New(e.(engine.Streamer), slots, c.Streams, over), nil
	}
}

// maker makes a raw engine.
type maker = func(netip.AddrPort, int) (Engine, error)

// reach makes a raw engine that connects to the protocol's address.
func reach(below maker, c *nethttp.Config, slots int, _ string) (Engine, error) {
	addr, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return below(addr, slots)
}

// secure layers TLS over a raw engine.
func secure(below maker, c *nethttp.Config, slots int, spoken string) (Engine, error) {
	config, err := c.TLS(spoken)
	if err != nil {
		return nil, err
	}
	e, err := reach(below, c, slots, spoken)
	if err != nil {
		return nil, err
	}
	if spoken == "h2" {
		return tlsconn.NewStreamer(e.(engine.Streamer), config, slots), nil
	}
	return tlsconn.New(e, config, slots), nil
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
