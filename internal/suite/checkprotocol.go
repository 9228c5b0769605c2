package suite

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"prony.example/internal/base/strictyaml"
)

// speaks checks that a scenario's protocol fits the rest of the scenario and the suite.
func (c *checker) speaks(keyPath string, s *Suite, sc *Scenario) {
	is := func(names ...string) bool { return slices.Contains(names, sc.Protocol) }
	plain := is("", Protocols[0])
	socket, call := is("ws", "wss"), isCall(sc.Protocol)
	contract := cmp.Or(sc.Contract, s.Contract)
	var engines []string
	for _, l := range s.Loads {
		engines = append(engines, l.Engine)
	}
	raw := plain && sc.Unix == "" // other tools support it
	isRaw := func(engine string) bool { return engine == "uring" || engine == "epoll" }
	for _, row := range []struct {
		wrong     bool
		key, hint string
		text      string
	}{
		{sc.Unix != "" && !plain, "unix", "leave out one of the two",
			"a Unix socket goes with protocol http"},
		{sc.TLS != (TLS{}) && !is("https", "h2", "h3", "grpcs", "wss"), "tls", "leave it out, or " +
			"name a protocol that has it", "this protocol has no TLS"},
		{sc.Streams > 1 && !shares(sc.Protocol), "streams",
			"give it connections", "this protocol has one request at a time on a connection"},
		{!raw && others(s.Drivers, Drivers[0]), "protocol", "leave out drivers",
			"only prony itself speaks anything but HTTP/1.1 over TCP"},
		{!raw && !call && !is("https", "h2", "h2c") && slices.ContainsFunc(engines, isRaw),
			"protocol", "leave out the loads' engine",
			"uring and epoll speak only HTTP/1.1, HTTP/2 and gRPC over TCP, or TLS over it"},
		{contract != "" && (socket || call && contract != Contracts[0]), "protocol", "leave " +
			"out contract: what the scenario expects is checked on every answer",
			"contracts are checked in HTTP, and " + Contracts[0] + " also in gRPC"},
		{s.Observe.Traces > 0 && socket, "protocol", "leave out observe.traces",
			"messages of a WebSocket have no header fields for trace ids"},
		{sc.Unix != "" && others(s.Launchers, Launchers[0]), "unix", "start it as a process",
			"a container's socket is not on this machine"},
	} {
		if row.wrong {
			c.Wrong(keyPath+row.key, row.hint, "%s", row.text)
		}
	}
	for i, r := range sc.Requests {
		method, path := r.Line("")
		line := fmt.Sprintf("%srequests[%d].request", keyPath, i)
		if (socket || call) && method != http.MethodPost {
			c.Wrong(line, "write POST "+path, "the message is the body of the request")
		}
		if call && strings.Count(path, "/") != 2 {
			c.Wrong(line, "such as POST /grpc.health.v1.Health/Check",
				"a call's path is /package.Service/Method")
		}
		if _, first := sc.Requests[0].Line(""); socket &&
			(path != first || strings.Contains(path, "{") || len(r.Headers) > 0) {
			c.Wrong(line, "put what differs into the body", "a WebSocket is opened at one path, "+
				"without placeholders or header fields of ours")
		}
	}
}

// spoken checks a variant that requests targets in another protocol.
func (c *checker) spoken(keyPath string, s *Suite, v Variant) {
	if v.Protocol == "" || v.Protocol == Protocols[0] {
		if v.Streams > 1 {
			c.Wrong(keyPath+".streams", "name the variant's protocol, such as h2c",
				"HTTP/1.1 has one request at a time on a connection")
		}
		if v.Protocol != "" {
			c.Wrong(keyPath+".protocol", "leave it out", "the bare target speaks HTTP/1.1")
		}
		return
	}
	for i, sc := range s.Scenarios {
		if !sc.has(v.Name) {
			continue
		}
		here := fmt.Sprintf("scenarios[%d].", i)
		if sc.Protocol != "" && sc.Protocol != Protocols[0] || sc.Unix != "" || sc.Streams > 0 {
			c.Wrong(here+"protocol", "leave out protocol, unix and streams: variant "+v.Name+
				" has them", "the scenario says what is spoken, and so does a variant in it")
			continue
		}
		for k, r := range sc.Requests {
			if isCall(v.Protocol) && (r.Call.Method == "" || sc.Flow) {
				c.Wrong(fmt.Sprintf("%srequests[%d]", here, k), "give each request a call, and no "+
					"flow, or name the scenario's variants", "variant %s speaks gRPC, and the "+
					"request is not a call", v.Name)
			}
		}
		scenario := sc.in(v)
		c.speaks(here, s, &scenario)
		for _, l := range s.LoadsOf(sc) {
			if n := max(v.Streams, 1); l.Connections%n != 0 || l.Most%n != 0 {
				c.Wrong(keyPath+".streams", fmt.Sprintf("want a divisor of %d", l.Connections),
					"load %s of %s has %d requests at once, which are not %d on each connection",
					l.Name, sc.Name, l.Connections, n)
			}
		}
	}
}

// rides checks that the variants of a scenario exist.
func (c *checker) rides(keyPath string, s *Suite, sc *Scenario) {
	for i, name := range sc.Variants {
		if names := namesOf(s.Variants, variantName); !slices.Contains(names, name) {
			c.Wrong(fmt.Sprintf("%svariants[%d]", keyPath, i), strictyaml.Meant(name, names, ""),
				"the suite has no variant %q", name)
		}
	}
}

// call checks a request's form for gRPC.
func (c *checker) call(keyPath string, s *scene, r Call) {
	if r == (Call{}) {
		return
	}
	if strings.Count(r.Method, "/") != 2 || !strings.HasPrefix(r.Method, "/") {
		c.Wrong(keyPath+".method", "such as /grpc.health.v1.Health/Check",
			"a call's method is /package.Service/Method")
	}
	c.sends(keyPath+".send", s, r.Send)
	c.wants(keyPath+".expect", s, r.Expect)
}
