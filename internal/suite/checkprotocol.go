package suite

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// speaks checks that what a scenario speaks goes with the rest of it and of the suite.
func (c *checker) speaks(at string, s *Suite, sc *Scenario) {
	is := func(names ...string) bool { return slices.Contains(names, sc.Protocol) }
	plain := is("", Protocols[0])
	socket, call := is("ws", "wss"), is("grpc", "grpcs")
	other := func(list []string, usual string) bool {
		return slices.ContainsFunc(list, func(x string) bool { return x != "" && x != usual })
	}
	var engines []string
	slow := false
	for _, l := range s.Loads {
		engines = append(engines, l.Engine)
		slow = slow || l.Slow.Clients > 0
	}
	raw := plain && sc.Unix == "" // what other tools speak
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
		{sc.Streams > 1 && !is("h2", "h2c", "h3", "grpc", "grpcs"), "streams",
			"give it connections", "this protocol has one request at a time on a connection"},
		{!raw && other(s.Drivers, Drivers[0]), "protocol", "leave out drivers",
			"only prony itself speaks anything but HTTP/1.1 over TCP"},
		{!raw && !is("https", "h2", "h2c") && slices.ContainsFunc(engines, isRaw), "protocol",
			"leave out the loads' engine",
			"uring and epoll speak only HTTP/1.1 and HTTP/2 over TCP, or TLS over it"},
		{slow && !plain && !is("https"), "protocol", "leave out slow",
			"slow clients never end a request of HTTP/1.1, and there is none"},
		{s.Contract != "" && !plain && !is("https"), "protocol", "leave out contract: what the " +
			"scenario expects is checked on every answer", "contracts are asked in HTTP/1.1"},
		{s.Observe.Traces > 0 && socket, "protocol", "leave out observe.traces",
			"messages of a WebSocket have no header fields for trace ids"},
		{sc.Unix != "" && other(s.Launchers, Launchers[0]), "unix", "start it as a process",
			"a container's socket is not on this machine"},
		{sc.Unix != "" && s.Duet != "" && !strings.Contains(sc.Unix, "{port}"), "unix",
			"put {port} into its path", "two trials side by side cannot have one socket"},
	} {
		if row.wrong {
			c.Wrong(at+row.key, row.hint, "%s", row.text)
		}
	}
	for i, r := range sc.Requests {
		method, path := r.Line("")
		line := fmt.Sprintf("%srequests[%d].request", at, i)
		if (socket || call) && method != http.MethodPost {
			c.Wrong(line, "write POST "+path, "what is sent has a body, the message")
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
