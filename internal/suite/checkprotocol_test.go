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
	check("is not one of http, https", "protocol: spdy", "POST /x", "", "")
	check("s.yaml:6: a Unix socket requires protocol http",
		"protocol: h2c\n    unix: /s", "POST /x", "",
		"")
	check("the scenario's protocol has no TLS", "tls: {insecure: true}", "POST /x", "", "")
	check("one request at a time", "streams: 2", "POST /x", "", "")
	check("", "protocol: h2c", "POST /x", "contract: http", "")
	check("", "protocol: grpc", "POST /p.S/M", "contract: hello", "")
	check("contract hello also in gRPC", "protocol: grpc", "POST /p.S/M", "contract: http", "")
	check("contract hello also in gRPC", "contract: http\n    protocol: grpc", "POST /p.S/M",
		"contract: hello", "")
	check("contracts are checked only in HTTP", "protocol: ws", "POST /x", "contract: hello", "")
	check("only Prony's generator supports", "protocol: h2c", "POST /x", "drivers: [prony, wrk]",
		"")
	check("the engine epoll supports only", "protocol: h3", "POST /x", "", ", engine: epoll")
	check("", "protocol: h2c", "POST /x", "", ", engine: epoll")
	check("", "protocol: https", "POST /x", "", ", engine: epoll")
	check("", "protocol: grpcs", "POST /x.Y/Z", "", ", engine: epoll")
	check("", "protocol: h2c", "POST /x", "", ", engine: nethttp")
	check("messages have no header fields", "protocol: ws", "POST /x", "observe: {traces: 1%}", "")
	check("cannot be renewed", "protocol: h2\n    streams: 2", "POST /x", "", ", churn: 3")
	check("", "protocol: h2\n    streams: 1", "POST /x", "", ", churn: 3")
	check("the header field Connection", "protocol: h3", `"POST /x", headers: {Connection: close}`,
		"", "")
	check("the header field content-type", "protocol: grpc",
		`"POST /p.S/M", headers: {content-type: a/b}`, "", "")
	check("", "protocol: h2", `"POST /x", headers: {content-type: a/b, TE: trailers}`, "", "")
	check("", "protocol: https", `"POST /x", headers: {Connection: close}`, "", "")
	check("the Unix socket of a container", "unix: /s", "POST /x", "launchers: [docker]", "")
	check("the message", "protocol: ws", "PUT /x", "", "")
	check("the path of a gRPC call", "protocol: grpc", "POST /x", "", "")
	check("read none.pem: no such file", "protocol: h2\n    tls: {ca: none.pem}", "POST /x", "",
		"")
	check("opens at one path", "protocol: ws", `"POST /x", headers: {a: b}`, "", "")
}
