package suite

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"prony.example/internal/base/strictyaml"
	"prony.example/load/engine/http2"
)

// speaks checks that a scenario's protocol fits the rest of the scenario and the suite.
func (c *checker) speaks(keyPath string, s *Suite, sc *Scenario) {
	is := func(names ...string) bool { return slices.Contains(names, sc.Protocol) }
	plain := is("", Protocols[0])
	socket, call := is("ws", "wss"), isCall(sc.Protocol)
	contract := cmp.Or(sc.Contract, s.Contract)
	var engines []string
	renewed := false
	for _, l := range s.Loads {
		engines, renewed = append(engines, l.Engine), renewed || l.Churn > 0
	}
	raw := plain && sc.Unix == "" // other tools support it
	for _, row := range []struct {
		wrong     bool
		key, hint string
		text      string
	}{
		{sc.Unix != "" && !plain, "unix", "remove unix or protocol",
			"a Unix socket requires protocol http"},
		{sc.TLS != (TLS{}) && !is("https", "h2", "h3", "grpcs", "wss"), "tls", "remove tls, or " +
			"set a protocol with TLS, such as https or h2", "the scenario's protocol has no TLS"},
		{sc.Streams > 1 && !shares(sc.Protocol), "streams",
			"use connections instead of " +
				"streams", "the scenario's protocol allows only one request at a time on " +
				"each connection"},
		{sc.Streams > 1 && renewed, "streams", "remove streams, or churn from the loads",
			"connections with several requests under way cannot be renewed after a number of " +
				"responses"},
		{!raw && others(s.Drivers, Drivers[0]), "protocol", "remove drivers",
			"only Prony's generator supports protocols other than HTTP/1.1 over TCP"},
		{!raw && !call && !is("https", "h2", "h2c") && slices.Contains(engines, "epoll"),
			"protocol", "remove engine from the loads",
			"the engine epoll supports only HTTP/1.1, HTTP/2 and gRPC over TCP, or over TLS"},
		{contract != "" && (socket || call && contract != Contracts[0]), "protocol", "remove " +
			"contract: Prony checks the scenario's expect on every response",
			"contracts are checked only in HTTP; contract " + Contracts[0] + " also in gRPC"},
		{s.Observe.Traces > 0 && socket, "protocol", "remove observe.traces",
			"WebSocket messages have no header fields, so they cannot have trace ids"},
		{sc.Unix != "" && others(s.Launchers, Launchers[0]), "unix", "start the target as a " +
			"process",
			"the Unix socket of a container is not accessible on this machine"},
	} {
		if row.wrong {
			c.Wrong(keyPath+row.key, row.hint, "%s", row.text)
		}
	}
	for i, r := range sc.Requests {
		method, path := r.Line("")
		line := fmt.Sprintf("%srequests[%d].request", keyPath, i)
		if (socket || call) && method != http.MethodPost {
			c.Wrong(line, "write POST "+path, "the request's body is the message, so its method "+
				"must be POST")
		}
		c.carried(fmt.Sprintf("%srequests[%d].headers", keyPath, i), sc.Protocol, r.Headers)
		if call && strings.Count(path, "/") != 2 {
			c.Wrong(line, "write a path such as POST /grpc.health.v1.Health/Check",
				"the path of a gRPC call must have the form /package.Service/Method")
		}
		if _, first := sc.Requests[0].Line(""); socket &&
			(path != first || strings.Contains(path, "{") || len(r.Headers) > 0) {
			c.Wrong(line, "put the differences into the "+
				"body", "a WebSocket opens at one path, "+
				"which cannot have placeholders; requests cannot set header fields")
		}
	}
}

// carried checks that a protocol sends all header fields of a request.
func (c *checker) carried(keyPath, protocol string, headers map[string]Text) {
	if !shares(protocol) {
		return
	}
	for _, name := range sortedNames(headers) {
		if !http2.Carries(name, string(headers[name]), isCall(protocol)) {
			c.Wrong(step(keyPath, name), "remove the header field", "protocol %s does not have "+
				"the header field %s, or sets it itself", protocol, name)
		}
	}
}

// spoken checks a variant that requests targets in another protocol.
func (c *checker) spoken(keyPath string, s *Suite, v Variant) {
	if v.Protocol == "" || v.Protocol == Protocols[0] {
		if v.Streams > 1 {
			c.Wrong(keyPath+".streams", "set the variant's protocol, such as h2c",
				"HTTP/1.1 allows only one request at a time on each connection")
		}
		if v.Protocol != "" {
			c.Wrong(keyPath+".protocol", "remove protocol", "a variant cannot have protocol http: "+
				"the target without the variant already uses HTTP/1.1")
		}
		return
	}
	for i, sc := range s.Scenarios {
		if !sc.has(v.Name) {
			continue
		}
		here := fmt.Sprintf("scenarios[%d].", i)
		if sc.Protocol != "" && sc.Protocol != Protocols[0] || sc.Unix != "" || sc.Streams > 0 {
			c.Wrong(here+"protocol", "remove protocol, unix and streams from the scenario: "+
				"variant "+v.Name+" sets "+
				"them", "both the scenario and one of its variants set the protocol")
			continue
		}
		for k, r := range sc.Requests {
			if isCall(v.Protocol) && (r.Call.Method == "" || sc.Flow) {
				c.Wrong(fmt.Sprintf("%srequests[%d]", here, k), "add a call to each request and "+
					"remove flow, or list other variants in the "+
					"scenario", "variant %s uses gRPC, but the "+
					"request has no call, or is part of a flow", v.Name)
			}
		}
		scenario := sc.in(v)
		c.speaks(here, s, &scenario)
		for _, l := range s.LoadsOf(sc) {
			if n := max(v.Streams, 1); l.Connections%n != 0 || l.Most%n != 0 {
				c.Wrong(keyPath+".streams", fmt.Sprintf("choose a divisor of %d", l.Connections),
					"load %s of scenario %s has %d concurrent requests, which cannot be divided "+
						"into %d on each connection",
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
		c.Wrong(keyPath+".method", "write a method such as /grpc.health.v1.Health/Check",
			"the method of a gRPC call must have the form /package.Service/Method")
	}
	c.sends(keyPath+".send", s, r.Send)
	c.wants(keyPath+".expect", s, r.Expect)
}
