//go:build linux && !portable

package load

import (
	"fmt"
	"net/netip"

	"prony.example/load/engine"
	"prony.example/load/engine/delayed"
	"prony.example/load/engine/epoll"
	"prony.example/load/engine/http2"
	"prony.example/load/engine/nethttp"
	"prony.example/load/engine/tlsconn"
	"prony.example/load/network"
)

// Engines are the names that Choice.Engine accepts on this system.
var Engines = []string{Auto, Epoll, NetHTTP}

// hasEpoll reports whether this system has the engine epoll.
const hasEpoll = true

// useEpoll sets the engine epoll, with layers for the protocol.
func (c Choice) useEpoll(s *Spec) error {
	s.Describe.Name, s.Describe.Pacing = Epoll, "timerfd, absolute"
	switch c.Engine {
	case "", Auto:
		s.Describe.Reason = "default on Linux"
	case Epoll:
		s.Describe.Reason = "asked for"
	default:
		return fmt.Errorf("there is no engine %q; there are %s, %s and %s", c.Engine, Auto, Epoll,
			NetHTTP)
	}
	if c.Speak != nil {
		speak(s, c.Speak)
		return nil
	}
	network := s.Network
	s.Engine = func(a netip.AddrPort, slots int) (Engine, error) {
		e, err := over(network, a, slots)
		if err != nil { // a nil Streamer would be a non-nil Engine
			return nil, err
		}
		return e, nil
	}
	return nil
}

// over makes an engine that connects to an address over a network.
func over(d network.Delay, to netip.AddrPort, connections int) (engine.Streamer, error) {
	e, err := epoll.New(to, connections)
	switch {
	case err != nil: // a nil *epoll.Engine would be a non-nil Streamer
		return nil, err
	case !d.IsZero():
		return delayed.New(e, connections, d), nil
	}
	return e, nil
}

// speak layers TLS, HTTP/2 or gRPC over epoll.
func speak(s *Spec, c *nethttp.Config) {
	timeout, network := s.Timeout, s.Network
	s.Describe.Protocol = c.Protocol
	if c.Protocol == nethttp.H1TLS {
		s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
			config, err := c.TLS("http/1.1")
			if err != nil {
				return nil, err
			}
			below, err := reach(c, network, slots)
			if err != nil {
				return nil, err
			}
			return tlsconn.New(below, config, slots), nil
		}
		return
	}
	if c.Streams > 1 {
		s.Describe.Streams = c.Streams
	}
	s.Engine = func(_ netip.AddrPort, slots int) (Engine, error) {
		secure := nethttp.Secure(c.Protocol)
		below, err := reachStreams(c, network, http2.Below(slots, c.Streams), secure)
		if err != nil {
			return nil, err
		}
		if c.Protocol == nethttp.GRPC || c.Protocol == nethttp.GRPCS {
			return http2.NewCalls(below, slots, c.Streams, secure, timeout), nil
		}
		return http2.New(below, slots, c.Streams, secure), nil
	}
}

// reachStreams makes an engine for connections of HTTP/2, with or without TLS.
func reachStreams(c *nethttp.Config, d network.Delay, connections int, secure bool) (
	engine.Streamer, error) {
	if !secure {
		return reach(c, d, connections)
	}
	config, err := c.TLS("h2")
	if err != nil {
		return nil, err
	}
	below, err := reach(c, d, connections)
	if err != nil {
		return nil, err
	}
	return tlsconn.NewStreamer(below, config, connections), nil
}

// reach makes an engine that connects to the protocol's address.
func reach(c *nethttp.Config, d network.Delay, connections int) (engine.Streamer, error) {
	addr, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return over(d, addr, connections)
}

// unwatched describes what a generator cannot measure on this system: nothing.
const unwatched = ""
