package load_test

import (
	"strings"
	"testing"
	"time"

	"prony.example/internal/dev/testsets"
	"prony.example/internal/generator/truth"
	"prony.example/load"
	"prony.example/load/engine/nethttp"
	"prony.example/load/network"
	"prony.example/record"
)

// A delay of 20 ms ± 5 ms on real sockets: no round trip is shorter than 15 ms, neither of a
// connection nor of a request, and each of 60 requests has one.
func TestNetworkOnSockets(t *testing.T) {
	testsets.Live(t)
	s := load.Spec{Model: record.Closed, Connections: 4, Requests: 60, Window: time.Minute,
		Network: network.Delay{RoundTrip: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}}
	if err := (load.Choice{Engine: load.Epoll}).Set(&s); err != nil {
		t.Skipf("skipped: %v", err)
	}
	r := offerReal(t, truth.Fixed(0), s)
	if r.Answered != 60 || r.Errors.Total() != 0 || r.Network.Added.Count != 60 {
		t.Errorf("%d answered, %+v, %d delays", r.Answered, r.Errors, r.Network.Added.Count)
	}
	const least = int64(15*time.Millisecond) - int64(15*time.Millisecond)>>10 // of a bin
	for _, d := range []record.Dist{r.ResponseTime, r.ConnectTime, r.Network.Added} {
		if d.MinNs < least {
			t.Errorf("a round trip took %v", time.Duration(d.MinNs))
		}
	}
}

// Engines that cannot delay refuse, and name the one that can.
func TestNetworkRefused(t *testing.T) {
	check := func(c load.Choice) {
		t.Helper()
		s := load.Spec{Network: network.Delay{RoundTrip: 5 * time.Millisecond}}
		if err := c.Set(&s); err == nil || !strings.Contains(err.Error(), "only the engine epoll") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	check(load.Choice{Engine: load.NetHTTP})
	check(load.Choice{Speak: &nethttp.Config{Protocol: nethttp.H3}})
	check(load.Choice{Speak: &nethttp.Config{Protocol: nethttp.WS}})
	check(load.Choice{Speak: &nethttp.Config{Protocol: nethttp.H1Unix}})
	var s load.Spec
	if err := (load.Choice{Engine: load.NetHTTP}).Set(&s); err != nil {
		t.Errorf("without a delay: %v", err)
	}
}
