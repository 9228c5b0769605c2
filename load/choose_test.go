package load

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"prony.example/load/engine/nethttp"
	"prony.example/record"
)

// chosen sets the engine of a load with these requests.
func chosen(c nethttp.Config, requests ...Request) (Spec, error) {
	s := Spec{Name: "load", Model: record.Closed, Connections: 4, Window: time.Second,
		Timeout: time.Second, Scenario: Scenario{Requests: requests}}
	s.Address = netip.MustParseAddrPort("127.0.0.1:1")
	c.Network, c.Address = "tcp", s.Address.String()
	return s, Choice{Speak: &c}.Set(&s)
}

// Header fields that a protocol does not have, or sets itself, are refused: they would not be sent.
func TestUnfitFields(t *testing.T) {
	check := func(protocol, field, want string) {
		t.Helper()
		name, value, _ := strings.Cut(field, ": ")
		r := Request{Method: "POST", Path: "/a.B/C", Headers: []Header{{name, value}}}
		_, err := chosen(nethttp.Config{Protocol: protocol}, r)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s with %s: %v, want %q", protocol, field, err, want)
		}
	}
	for _, protocol := range []string{nethttp.H2, nethttp.H2C, nethttp.H3, nethttp.GRPC} {
		for _, field := range []string{"Connection: close", "connection: keep-alive", "Upgrade: x",
			"Keep-Alive: 5", "Proxy-Connection: x", "TE: gzip"} {
			name, _, _ := strings.Cut(field, ":")
			check(protocol, field, "header field "+name)
		}
		check(protocol, "TE: trailers", "")
		check(protocol, "X-A: b", "")
	}
	check(nethttp.GRPCS, "Content-Type: a/b", "header field Content-Type")
	check(nethttp.GRPCS, "grpc-timeout: 1S", "header field grpc-timeout")
	check(nethttp.H2, "Content-Type: a/b", "")
	check(nethttp.WS, "Connection: close", "header field Connection")
	check(nethttp.WSS, "Sec-WebSocket-Key: x", "header field Sec-WebSocket-Key")
	check(nethttp.WS, "Sec-WebSocket-Protocol: x", "")
	for _, protocol := range []string{nethttp.H1, nethttp.H1TLS, nethttp.H1Unix} {
		check(protocol, "Connection: close", "")
	}
}

// A WebSocket opens once: with the path and the fields of its messages, which are all the same.
func TestWebSocketOpensOnce(t *testing.T) {
	t.Setenv("ROOM", "7")
	check := func(want string, requests ...Request) {
		t.Helper()
		_, err := chosen(nethttp.Config{Protocol: nethttp.WS, Path: "/x"}, requests...)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", requests, err, want)
		}
	}
	message := func(path string, fields ...Header) Request {
		return Request{Method: "POST", Path: path, Headers: fields, Body: "{key}"}
	}
	check("", message("/a?room=${ROOM}", Header{"A", "b"}), message("/a?room=${ROOM}",
		Header{"A", "b"}))
	check("path", message("/a?user={key}"))
	check("header field A", message("/a", Header{"A", "{key}"}))
	check("one path", message("/a"), message("/b"))
	check("header fields", message("/a", Header{"A", "b"}), message("/a"))
	c := nethttp.Config{Protocol: nethttp.WS, Path: "/x"}
	if err := handshake(&c, []Request{message("/a?room=${ROOM}")}); err != nil ||
		c.Path != "/a?room=7" {
		t.Errorf("it opens at %s, %v", c.Path, err)
	}
}

// A connection with several requests under way cannot be renewed after a number of responses.
func TestChurnOfStreams(t *testing.T) {
	for streams, want := range map[int]string{1: "could be opened", 2: "churn"} {
		s, err := chosen(nethttp.Config{Protocol: nethttp.H2C, Streams: streams},
			Request{Method: "GET", Path: "/"})
		if err != nil {
			t.Fatal(err)
		}
		s.Churn = 3
		if _, err := Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d streams: %v, want %q", streams, err, want)
		}
	}
}
