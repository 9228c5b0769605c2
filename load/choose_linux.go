//go:build linux && !portable

package load

import (
	"fmt"
	"net/netip"
	"sync"

	"prony.example/load/engine/epoll"
	"prony.example/load/engine/uring"
)

// Engines are the names that Choice.Engine accepts on this system.
var Engines = []string{Auto, Uring, Epoll, NetHTTP}

// hasRaw reports whether this system has engines that use system calls directly.
const hasRaw = true

// probed returns why io_uring cannot be used here. It probes once, because the answer cannot
// change.
var probed = sync.OnceValue(uring.Probe)

// useRaw sets the chosen engine, or io_uring if the kernel permits it, otherwise epoll.
func (c Choice) useRaw(s *Spec) error {
	refused := probed()
	switch c.Engine {
	case "", Auto:
		if refused == nil {
			useUring(s, "this kernel permits io_uring")
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
		return fmt.Errorf("there is no engine %q; there are %s, %s, %s and %s", c.Engine, Auto,
			Uring, Epoll, NetHTTP)
	}
	if c.Speak != nil {
		speak(s, c.Speak)
	}
	return nil
}

func useUring(s *Spec, why string) {
	s.Engine = func(a netip.AddrPort, slots int) (Engine, error) {
		e, err := uring.New(a, slots)
		if err != nil { // a nil *uring.Engine would be a non-nil Engine
			return nil, err
		}
		return e, nil
	}
	s.Describe.Name, s.Describe.Reason = Uring, why
	s.Describe.Pacing = "io_uring_enter until an absolute moment"
}

func useEpoll(s *Spec, why string) {
	s.Engine = func(a netip.AddrPort, slots int) (Engine, error) {
		e, err := epoll.New(a, slots)
		if err != nil { // a nil *epoll.Engine would be a non-nil Engine
			return nil, err
		}
		return e, nil
	}
	s.Describe.Name, s.Describe.Reason = Epoll, why
	s.Describe.Pacing = "timerfd, absolute"
}

// unwatched describes what a generator cannot measure on this system: nothing.
const unwatched = ""
