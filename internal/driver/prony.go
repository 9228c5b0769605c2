package driver

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"prony/internal/load"
	"prony/internal/load/epoll"
	"prony/internal/load/stack"
	"prony/internal/load/uring"
)

// Engines that can be asked for by name.
const (
	Auto  = "auto"
	Uring = "uring"
	Epoll = "epoll"
)

// Engines are their names.
var Engines = []string{Auto, Uring, Epoll}

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

// probed is why io_uring cannot be used here, asked once: no kernel changes its mind.
var probed = sync.OnceValue(uring.Probe)

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
	refused := probed()
	switch p.Engine {
	case "", Auto:
		if refused == nil {
			useUring(s, "the fastest that this kernel permits")
		} else {
			useEpoll(s, "io_uring cannot be used: "+refused.Error())
		}
	case Uring:
		if refused != nil {
			return fmt.Errorf("use engine %s: %w; leave out --engine to have one that works",
				Uring, refused)
		}
		useUring(s, "asked for")
	case Epoll:
		useEpoll(s, "asked for")
	default:
		return fmt.Errorf("there is no engine %q; there are %s, %s and %s", p.Engine, Auto, Uring,
			Epoll)
	}
	return nil
}

func useUring(s *load.Spec, why string) {
	s.Engine = func(a netip.AddrPort, slots int) (load.Engine, error) { return uring.New(a, slots) }
	s.Describe.Name, s.Describe.Reason = Uring, why
	s.Describe.Pacing = "io_uring_enter until an absolute moment"
}

func useEpoll(s *load.Spec, why string) {
	s.Engine = func(a netip.AddrPort, slots int) (load.Engine, error) { return epoll.New(a, slots) }
	s.Describe.Name, s.Describe.Reason = Epoll, why
	s.Describe.Pacing = "timerfd, absolute"
}

func useStack(s *load.Spec, c stack.Config) {
	s.Engine = func(_ netip.AddrPort, slots int) (load.Engine, error) { return stack.New(c, slots) }
	s.Describe = load.EngineInfo{
		Name: "stack", Reason: c.Protocol + " needs Go's network stack and libraries",
		Pacing: "timerfd, absolute", Protocol: c.Protocol, Streams: c.Streams, Spread: true,
	}
	if c.Streams <= 1 {
		s.Describe.Streams = 0
	}
}
