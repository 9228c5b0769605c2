package generator

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"prony.example/load"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/nethttp"
	"prony.example/load/engine/tlsconn"
)

// Engines that can be asked for by name.
const (
	Auto  = "auto"
	Uring = "uring"
	Epoll = "epoll"
	Stack = "stack"
)

// Prony is the built-in generator.
type Prony struct {
	Engine string          // Auto, which is the default, or another of the names above
	Stack  *nethttp.Config // of any protocol but HTTP/1.1 in the clear; nil: that
}

// Offer runs the load. It fails when the engine asked for cannot be had here.
func (p Prony) Offer(ctx context.Context, s load.Spec) (*load.Result, error) {
	if err := p.choose(&s); err != nil {
		return nil, err
	}
	return load.Run(ctx, s)
}

// Describe says which engine a load would have, and why.
func (p Prony) Describe() (load.EngineInfo, error) {
	var s load.Spec
	err := p.choose(&s)
	return s.Describe, err
}

// choose sets the engine: the fastest that the kernel permits, unless one was asked for.
func (p Prony) choose(s *load.Spec) error {
	switch {
	case p.Stack == nil && p.Engine != Stack, p.overRaw():
		return p.useRaw(s)
	case p.Engine != "" && p.Engine != Auto && p.Engine != Stack:
		return fmt.Errorf("engine %s speaks only HTTP/1.1, HTTP/2 and gRPC, without or over TLS; "+
			"leave out --engine", p.Engine)
	case p.Stack == nil:
		useStack(
			s,
			nethttp.Config{Protocol: nethttp.H1, Network: "tcp", Address: s.Address.String()},
		)
		s.Describe.Protocol = "" // as of every engine that speaks it
	default:
		c := *p.Stack
		c.Timeout = s.Timeout
		useStack(s, c)
	}
	if p.Engine == Stack {
		s.Describe.Reason = "asked for" + unwatched
	}
	return nil
}

// overRaw reports whether what is spoken goes over a raw engine.
func (p Prony) overRaw() bool {
	return raw && p.Stack != nil && p.Stack.Dial == nil && p.Engine != Stack && slices.Contains(
		[]string{
			nethttp.H1TLS,
			nethttp.H2,
			nethttp.H2C,
			nethttp.GRPC,
			nethttp.GRPCS,
		},
		p.Stack.Protocol,
	)
}

// speak has the raw engine that was chosen speak TLS, HTTP/2, or both, or gRPC.
func speak(s *load.Spec, c *nethttp.Config) {
	below, timeout := s.Engine, s.Timeout
	s.Describe.Protocol = c.Protocol
	if c.Protocol == nethttp.H1TLS {
		s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) {
			return secure(below, c, slots, "http/1.1")
		}
		return
	}
	if c.Streams > 1 {
		s.Describe.Streams = c.Streams
	}
	s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) {
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
			return http2.NewCalls(e.(load.Streamer), slots, c.Streams, over, timeout), nil
		}
		return http2.New(e.(load.Streamer), slots, c.Streams, over), nil
	}
}

// maker makes a raw engine.
type maker = func(netip.AddrPort, int) (load.Engine, error)

// reach makes a raw engine to where the protocol is spoken.
func reach(below maker, c *nethttp.Config, slots int, _ string) (load.Engine, error) {
	at, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return below(at, slots)
}

// secure puts TLS over a raw engine.
func secure(below maker, c *nethttp.Config, slots int, spoken string) (load.Engine, error) {
	config, err := c.TLS(spoken)
	if err != nil {
		return nil, err
	}
	e, err := reach(below, c, slots, spoken)
	if err != nil {
		return nil, err
	}
	if spoken == "h2" {
		return tlsconn.NewStreamer(e.(load.Streamer), config, slots), nil
	}
	return tlsconn.New(e, config, slots), nil
}

func useStack(s *load.Spec, c nethttp.Config) {
	s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) {
		return nethttp.New(c, slots)
	}
	s.Describe = load.EngineInfo{
		Name: Stack, Reason: c.Protocol + " needs Go's network stack and libraries" + unwatched,
		Pacing: nethttp.Pacing, Protocol: c.Protocol, Streams: c.Streams, Spread: true,
		Datagrams: c.Protocol == nethttp.H3,
	}
	if c.Streams <= 1 {
		s.Describe.Streams = 0
	}
}
