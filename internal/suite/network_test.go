package suite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"prony.example/internal/suite"
	"prony.example/load/network"
)

// loadsOf returns names, networks and shares of a suite's loads.
func loadsOf(s *suite.Suite) string {
	var out []string
	for _, l := range s.Loads {
		out = append(out, fmt.Sprintf("%s (%v) of %q", l.Name, l.Network, l.Rate.Of))
	}
	return strings.Join(out, ", ")
}

// TestNetworks checks that every load runs over each network, that rates are shares of a load over
// the same network, that a flag replaces the networks, and that delayed loads are not sliced.
func TestNetworks(t *testing.T) {
	check := func(subject string, s *suite.Suite, want string) {
		t.Helper()
		if got := loadsOf(s); got != want {
			t.Errorf("%s: %s\nwant %s", subject, got, want)
		}
	}
	s := read(t, strings.Replace(whole, "loads:", "network: [none, delay 5ms ± 1ms]\nloads:", 1))
	check("a suite", s, `peak (none) of "", half (none) of "peak", fixed (none) of "", `+
		`peak delay 5ms jitter 1ms (delay 5ms ± 1ms) of "", `+
		`half delay 5ms jitter 1ms (delay 5ms ± 1ms) of "peak delay 5ms jitter 1ms", `+
		`fixed delay 5ms jitter 1ms (delay 5ms ± 1ms) of ""`)
	if s.Loads[3].Sliceable() || !s.Loads[0].Sliceable() {
		t.Error("only loads without a delay can be offered in slices")
	}
	ten := suite.Network{Delay: network.Delay{RoundTrip: 10 * time.Millisecond}}
	o := suite.Override{Networks: []suite.Network{ten}, Loads: []string{"half"}}
	if err := s.Override(o); err != nil {
		t.Fatal(err)
	}
	check("a flag", s, `peak delay 10ms (delay 10ms) of "", `+
		`half delay 10ms (delay 10ms) of "peak delay 10ms"`)
	if err := s.Override(suite.Override{Networks: []suite.Network{{}}}); err != nil {
		t.Fatal(err)
	}
	check("none by a flag", s, `peak (none) of "", half (none) of "peak"`)
}

// TestManyNetworks checks that loads and names of the file have the limits, not those that the
// networks make of them.
func TestManyNetworks(t *testing.T) {
	text := strings.Replace(whole, "name: fixed", "name: twenty-two characters", 1)
	s := read(t, strings.Replace(text, "loads:", "network: [none, delay 1ms, delay 2ms, "+
		"delay 3ms, delay 12.125ms ± 1.125ms]\nloads:\n  - {name: a, model: closed}\n"+
		"  - {name: b, model: closed}", 1))
	if err := s.Override(suite.Override{}); err != nil || len(s.Loads) != 25 {
		t.Errorf("%d loads, error %v", len(s.Loads), err)
	}
	err := s.Override(suite.Override{Measure: 1})
	if err == nil || !strings.Contains(err.Error(), "measure 1ns is outside of the range") {
		t.Errorf("a wrong flag: error %v", err)
	}
}

// TestNetworksRefused checks suites whose loads cannot be delayed.
func TestNetworksRefused(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		_, err := suite.Read("s.yaml", []byte(strings.Replace(whole, "loads:", text+"\nloads:", 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	check("network: [5ms]", `it does not begin with "delay"`)
	check("network: [delay 5ms, delay 5ms]", "twice")
	check("network: [delay 1us]", "is not from 100µs to 10s")
	check("network: [delay 5ms ± 6ms]", "a jitter of 6ms is not from 0 to the delay of 5ms")
	check("network: [delay 5ms]\ndrivers: [wrk]", "only Prony's generator can delay the network")
	check("network: [delay 9s]", "is shorter than the delay of the network")
	check("network: [delay 5ms]\nvariants: [{name: web, protocol: h3}]",
		"only for HTTP/1.1, HTTP/2 and gRPC")
}
