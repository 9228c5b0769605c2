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

// Engines that can be asked for by name.
const (
	Auto    = "auto"    // the cheapest one that this machine permits
	Uring   = "uring"   // Linux: io_uring
	Epoll   = "epoll"   // Linux: epoll
	NetHTTP = "nethttp" // Go's network stack, everywhere
)

// Choice chooses the engine of a load. The zero value is what a load has without a choice: HTTP/1.1
// in the clear by the cheapest engine.
type Choice struct {
	Engine string          // Auto, which is the default, or another of the names above
	Speak  *nethttp.Config // any protocol but HTTP/1.1 in the clear; nil: that
}

// Set sets the engine of a load. It fails when the engine that is asked for cannot be had here, or
// does not speak the protocol.
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

// overRaw reports whether what is spoken goes over a raw engine.
func (c Choice) overRaw() bool {
	return hasRaw && c.Speak != nil && c.Speak.Dial == nil && c.Engine != NetHTTP &&
		slices.Contains(
			[]string{nethttp.H1TLS, nethttp.H2, nethttp.H2C, nethttp.GRPC, nethttp.GRPCS},
			c.Speak.Protocol)
}

// speak has the raw engine that was chosen speak TLS, HTTP/2, or both, or gRPC.
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

// reach makes a raw engine to where the protocol is spoken.
func reach(below maker, c *nethttp.Config, slots int, _ string) (Engine, error) {
	addr, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return below(addr, slots)
}

// secure puts TLS over a raw engine.
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

// usePlainStack has HTTP/1.1 in the clear spoken by Go's network stack.
func usePlainStack(s *Spec) {
	useStack(s, nethttp.Config{Protocol: nethttp.H1, Network: "tcp", Address: s.Address.String()})
	s.Describe.Protocol = "" // as of every engine that speaks it
}

func useStack(s *Spec, c nethttp.Config) {
	s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
		e, err := nethttp.New(c, slots)
		if err != nil { // a nil one would be an Engine
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

// Messages turns gRPC bodies in JSON into what goes over the wire, by what the server's reflection
// says of the methods. Requests of other protocols stay as they are.
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
