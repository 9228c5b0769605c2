package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/strictyaml"
	"prony.example/load/network"
)

// Network is a network that Prony's generator simulates between itself and the target, in the form
// of network.Parse. The zero Network is none.
type Network struct{ network.Delay }

// UnmarshalYAML reads the node's text; errors name its line.
func (n *Network) UnmarshalYAML(node ast.Node) error { return strictyaml.Text(node, n) }

// suffix is what the name of a load over the network has after the name of the load.
func (n Network) suffix() string {
	text := ""
	if !n.IsZero() {
		text = " delay " + n.RoundTrip.String()
	}
	if n.Jitter > 0 {
		text += " jitter " + n.Jitter.String()
	}
	return strings.ReplaceAll(text, "µ", "u") // names are ASCII
}

// spread replaces the loads by as many for each network. Rates that are shares of another load
// are shares of the one over the same network.
func (s *Suite) spread(networks []Network) {
	if s.Networks = networks; len(networks) == 0 {
		return
	}
	var all []Load
	for _, n := range networks {
		for _, l := range s.Loads {
			if s.hasLoad(l.Rate.Of) {
				l.Rate.Of += n.suffix()
			}
			l.Network = n
			l.Name += n.suffix()
			all = append(all, l)
		}
	}
	s.Loads = all
}

// gather undoes spread.
func (s *Suite) gather() {
	if len(s.Networks) == 0 {
		return
	}
	n := s.Networks[0]
	s.Loads = slices.DeleteFunc(slices.Clone(s.Loads), func(l Load) bool { return l.Network != n })
	for i := range s.Loads {
		l := &s.Loads[i]
		l.Name, l.Network = strings.TrimSuffix(l.Name, n.suffix()), Network{}
		l.Rate.Of = strings.TrimSuffix(l.Rate.Of, n.suffix())
	}
	s.Networks = nil
}

func (s *Suite) hasLoad(name string) bool {
	return slices.ContainsFunc(s.Loads, func(l Load) bool { return l.Name == name })
}

// networked checks that the generator of every load can delay the networks, and that they differ.
func (c *checker) networked(s *Suite) {
	var names []string
	delays := false
	for _, n := range s.Networks {
		names = append(names, n.String())
		delays = delays || !n.IsZero()
	}
	c.unique("network", "", names)
	if !delays {
		return
	}
	if others(s.Drivers, Drivers[0]) {
		c.Wrong("drivers", "remove drivers", "only Prony's generator can delay the network")
	}
	for i, l := range s.Loads {
		if l.Engine == "nethttp" {
			c.Wrong(fmt.Sprintf("loads[%d].engine", i), "remove engine",
				"only the engine epoll can delay the network")
		}
		if longest := s.longest(); l.Lead > 0 && l.Lead < Duration(longest) {
			c.Wrong(fmt.Sprintf("loads[%d].leadIn", i), "set leadIn to at least "+
				longest.String(), "a lead-in of %v is shorter than the delay of the network, so "+
				"the window would open before the first response", l.Lead)
		}
	}
	for i, sc := range s.Scenarios {
		protocols := []string{sc.Protocol}
		for _, v := range s.Variants {
			protocols = append(protocols, v.Protocol)
		}
		if sc.Unix != "" || slices.ContainsFunc(protocols, func(name string) bool {
			return slices.Contains([]string{"h3", "ws", "wss"}, name)
		}) {
			c.Wrong(fmt.Sprintf("scenarios[%d]", i), "remove network, or change the protocol",
				"the generator can delay the network only for HTTP/1.1, HTTP/2 and gRPC over TCP")
		}
	}
}

// longest returns the longest round trip of the suite's networks.
func (s *Suite) longest() (d time.Duration) {
	for _, n := range s.Networks {
		d = max(d, n.RoundTrip+n.Jitter)
	}
	return d
}
