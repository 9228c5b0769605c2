package driver

import (
	"context"
	"fmt"
	"net/netip"

	"prony/internal/load"
	"prony/internal/load/stack"
)

// Engines that can be asked for by name.
const (
	Auto  = "auto"
	Uring = "uring"
	Epoll = "epoll"
)

// Prony is the built-in generator.
type Prony struct {
	Engine string        // Auto, which is the default, or another of the names above
	Stack  *stack.Config // for protocols that the raw engines do not speak; nil: HTTP/1.1
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
	if p.Stack != nil {
		if p.Engine != "" && p.Engine != Auto {
			return fmt.Errorf("engine %s speaks only HTTP/1.1 without TLS; leave out --engine",
				p.Engine)
		}
		useStack(s, *p.Stack)
		return nil
	}
	return p.useRaw(s)
}

func useStack(s *load.Spec, c stack.Config) {
	s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) { return stack.New(c, slots) }
	s.Describe = load.EngineInfo{
		Name: "stack", Reason: c.Protocol + " needs Go's network stack and libraries" + unwatched,
		Pacing: stack.Pacing, Protocol: c.Protocol, Streams: c.Streams, Spread: true,
		Datagrams: c.Protocol == stack.H3,
	}
	if c.Streams <= 1 {
		s.Describe.Streams = 0
	}
}
