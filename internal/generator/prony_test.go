package generator

import (
	"net/netip"
	"strings"
	"testing"

	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/network"
)

// TestEngines checks the choice of an engine, its name and reason, and the error for an unavailable
// engine.
func TestEngines(t *testing.T) {
	check := func(p Prony, name, reason string) {
		t.Helper()
		var s load.Spec
		if err := p.choice().Set(&s); err != nil {
			t.Fatal(err)
		}
		info, err := p.Describe(network.Delay{})
		if err != nil || info != s.Describe {
			t.Errorf("described as %+v (%v), is %+v", info, err, s.Describe)
		}
		if info.Name != name || !strings.Contains(info.Reason, reason) || info.Pacing == "" {
			t.Errorf("engine %+v, want %s because %q", info, name, reason)
		}
		e, err := s.Engine(netip.MustParseAddrPort("127.0.0.1:1"), 2)
		if err != nil {
			t.Fatal(err)
		}
		e.Release()
	}
	bad := func(p Prony, want string) {
		t.Helper()
		_, err := p.Describe(network.Delay{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", p, err, want)
		}
	}
	check(Prony{Engine: load.Epoll}, load.Epoll, "asked for")
	tls := &nethttp.Config{Protocol: nethttp.H2, Network: "tcp", Address: "127.0.0.1:1", Streams: 2}
	h3 := &nethttp.Config{Protocol: nethttp.H3, Network: "udp", Address: "127.0.0.1:1", Streams: 2}
	check(Prony{Stack: h3}, "nethttp", "HTTP/3")
	bad(Prony{Engine: "poll"}, `no engine "poll"; there are auto, epoll and nethttp`)
	bad(Prony{Engine: "uring"}, `no engine "uring"; there are auto, epoll and nethttp`)
	bad(Prony{Engine: load.Epoll, Stack: h3}, "leave out --engine")
	clear := &nethttp.Config{Protocol: nethttp.H2C, Network: "tcp", Address: "127.0.0.1:1"}
	for _, speech := range []*nethttp.Config{tls, clear} {
		check(Prony{Stack: speech, Engine: load.Epoll}, load.Epoll, "asked for")
		check(Prony{Stack: speech, Engine: load.NetHTTP}, load.NetHTTP, "asked for")
	}
	secure := &nethttp.Config{Protocol: nethttp.H1TLS, Network: "tcp", Address: "127.0.0.1:1"}
	check(Prony{Stack: secure, Engine: load.Epoll}, load.Epoll, "asked for")
	check(Prony{Stack: secure, Engine: load.NetHTTP}, load.NetHTTP, "asked for")
	check(Prony{Stack: tls, Engine: load.NetHTTP}, load.NetHTTP, "asked for")
	check(Prony{Engine: load.NetHTTP}, load.NetHTTP, "asked for")
	check(Prony{}, load.Epoll, "default on Linux")
	check(Prony{Stack: secure}, load.Epoll, "default on Linux")
	check(Prony{Stack: tls}, load.Epoll, "default on Linux")
	check(Prony{Stack: clear}, load.Epoll, "default on Linux")
	check(Prony{Engine: load.Auto}, load.Epoll, "default on Linux")
}
