package suite_test

import (
	"strings"
	"testing"

	"prony.example/internal/suite"
)

// A scenario's protocol must fit the rest of the suite; contradictions are reported with their
// line.
func TestProtocolsThatContradict(t *testing.T) {
	const form = `name: s
CONTRACT
scenarios:
  - name: one
    SPEAKS
    requests: [{request: REQUEST, body: x}]
loads: [{name: peak, model: closedLOAD}]
`
	check := func(want, speaks, request, contract, load string) {
		t.Helper()
		text := strings.NewReplacer("CONTRACT", contract, "SPEAKS", speaks, "REQUEST", request,
			"LOAD", load).Replace(form)
		_, err := suite.Read("s.yaml", []byte(text))
		if want == "" && err == nil {
			return
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %s %s %s: %v, want %q", speaks, request, contract, load, err, want)
		}
	}
	for _, p := range suite.Protocols {
		check("", "protocol: "+p, "POST /p.S/M", "", "")
	}
	check("", "unix: /tmp/s", "GET /", "", "")
	check("", "protocol: https", "POST /x", "contract: hello", "")
	check("is none of http, https", "protocol: spdy", "POST /x", "", "")
	check("s.yaml:6: a Unix socket goes with protocol http",
		"protocol: h2c\n    unix: /s", "POST /x", "",
		"")
	check("this protocol has no TLS", "tls: {insecure: true}", "POST /x", "", "")
	check("one request at a time", "streams: 2", "POST /x", "", "")
	check("", "protocol: h2c", "POST /x", "contract: http", "")
	check("", "protocol: grpc", "POST /p.S/M", "contract: hello", "")
	check("and hello also in gRPC", "protocol: grpc", "POST /p.S/M", "contract: http", "")
	check("and hello also in gRPC", "contract: http\n    protocol: grpc", "POST /p.S/M",
		"contract: hello", "")
	check("contracts are checked in HTTP", "protocol: ws", "POST /x", "contract: hello", "")
	check("only prony itself speaks", "protocol: h2c", "POST /x", "drivers: [prony, wrk]", "")
	check("uring and epoll speak only", "protocol: h3", "POST /x", "", ", engine: epoll")
	check("", "protocol: h2c", "POST /x", "", ", engine: epoll")
	check("", "protocol: https", "POST /x", "", ", engine: epoll")
	check("", "protocol: grpcs", "POST /x.Y/Z", "", ", engine: epoll")
	check("", "protocol: h2c", "POST /x", "", ", engine: nethttp")
	check("no header fields for trace ids", "protocol: ws", "POST /x", "observe: {traces: 1%}", "")
	check("a container's socket", "unix: /s", "POST /x", "launchers: [docker]", "")
	check("the message", "protocol: ws", "PUT /x", "", "")
	check("a call's path is", "protocol: grpc", "POST /x", "", "")
	check("read none.pem: no such file", "protocol: h2\n    tls: {ca: none.pem}", "POST /x", "",
		"")
	check("opened at one path", "protocol: ws", `"POST /x", headers: {a: b}`, "", "")
}
