package suite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/suite"
)

const speaking = `name: speaking
contract: hello
blocks: 1
warmup: {connections: 20}
scenarios:
  - name: read
    keys: [10, 99]
    requests:
      - request: GET /hello/{mode}?key={key}
        headers: {x: y}
        expect: {body: "v {key}"}
        call: {method: /p.S/Say, send: "s {key}", expect: "w {key}"}
  - name: file
    contract: http
    connections: 1000
    variants: [h2c]
    requests: [{request: GET /file}]
loads:
  - {name: peak, model: closed, connections: 100}
variants:
  - {name: h2c, protocol: h2c, streams: 10}
  - {name: grpc, protocol: grpc}
`

// speaks plans speaking for one target with h2c and gRPC, one with h2c that does not support the
// contract http, and one with only HTTP/1.1.
func speaks(t *testing.T) *suite.Plan {
	t.Helper()
	s, err := suite.Read("s.yaml", []byte(speaking))
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"hello", "http"}
	p, err := s.Plan([]suite.Target{
		{Name: "a", Mode: "virtual", Contracts: both, Protocols: []string{"h2c", "grpc"}},
		{Name: "b", Contracts: both[:1], Protocols: []string{"h2c"}},
		{Name: "c", Contracts: both},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each variant with a protocol is a trial beside the bare target's, for targets that support it, in
// the scenarios that have it.
func TestVariantsOfProtocols(t *testing.T) {
	var got []string
	for _, x := range speaks(t).Trials {
		got = append(got, x.Target+" "+x.Scenario+" "+x.Variant)
	}
	slices.Sort(got)
	want := []string{"a file h2c", "a file none", "a read grpc", "a read h2c", "a read none",
		"b read h2c", "b read none", "c file none", "c read none"}
	if !slices.Equal(got, want) {
		t.Errorf("planned %v, want %v", got, want)
	}
}

// A trial in another protocol sends the same number of concurrent requests as the bare one, over
// fewer connections; calls have messages of their own.
func TestSceneInAProtocol(t *testing.T) {
	p := speaks(t)
	hashes := map[string]string{}
	for _, x := range p.Trials {
		sc := p.Suite.SceneOf(x)
		r := sc.Requests[0]
		body := ""
		if r.Expect.Body != nil {
			body = *r.Expect.Body
		}
		got := fmt.Sprintf("%s %d by %d and %d, %s %q %d %q", sc.Protocol, sc.Streams,
			p.Suite.OfTrial(x)[0].Connections, p.Suite.WarmupOf(sc).Connections, r.Request, r.Body,
			len(r.Headers), body)
		want := map[string]string{
			"read none": ` 0 by 100 and 20, GET /hello/{mode}?key={key} "" 1 "v {key}"`,
			"read h2c":  `h2c 10 by 10 and 2, GET /hello/{mode}?key={key} "" 1 "v {key}"`,
			"read grpc": `grpc 0 by 100 and 20, POST /p.S/Say "s {key}" 0 "w {key}"`,
			"file none": ` 0 by 1000 and 1000, GET /file "" 0 ""`,
			"file h2c":  `h2c 10 by 100 and 100, GET /file "" 0 ""`,
		}[x.Scenario+" "+x.Variant]
		if got != want {
			t.Errorf("%s +%s: %s, want %s", x.Scenario, x.Variant, got, want)
		}
		hashes[p.Suite.SceneHash(sc)] = want
	}
	if len(hashes) != 5 {
		t.Errorf("five ways to be asked have %d hashes: %v", len(hashes), hashes)
	}
}

// Contradictions of variants with a protocol are refused, with their line.
func TestVariantsThatCannotSpeak(t *testing.T) {
	check := func(from, to, want string) {
		t.Helper()
		text := strings.Replace(speaking, from, to, 1)
		if text == speaking {
			t.Fatalf("%q is not in the suite", from)
		}
		_, err := suite.Read("s.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s for %s: %v, want %q", to, from, err, want)
		}
	}
	check("variants: [h2c]", "variants: [h2]",
		`s.yaml:16: the suite has no variant "h2"`)
	check("streams: 10", "streams: 3", `load peak of scenario read has 100 concurrent `+
		`requests, which cannot be divided into 3 on each connection`)
	check("{name: grpc, protocol: grpc}", "{name: grpc, streams: 2, env: {A: b}}",
		"HTTP/1.1 allows only one request at a time")
	check("{name: grpc, protocol: grpc}", "{name: grpc, protocol: http}",
		"a variant cannot have protocol http: the target without the variant already uses HTTP/1.1")
	check("{name: grpc, protocol: grpc}", "{name: grpc, protocol: https, streams: 2}",
		"the scenario's protocol allows only one request at a time on each connection")
	check("{name: grpc, protocol: grpc}", "{name: grpc, protocol: spdy}", "is not one of http")
	check("name: file\n", "name: file\n    protocol: h2c\n",
		"both the scenario and one of its variants set the protocol")
	check("variants: [h2c]", "variants: [grpc]",
		"variant grpc uses gRPC, but the request has no call")
	check("/p.S/Say", "/Say", "the method of a gRPC call must have the form "+
		"/package.Service/Method")
	check("send: \"s {key}\"", "send: \"s {kez}\"", "{kez}")
	check("{name: grpc, protocol: grpc}", "{name: grpc, env: {PROTOCOL: h2}}",
		"Prony itself sets the variable PROTOCOL, so a variant cannot set it")
}

// If no target supports a variant's protocol, the plan reports it.
func TestVariantThatNobodySpeaks(t *testing.T) {
	s, err := suite.Read("s.yaml", []byte(speaking))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Plan([]suite.Target{{Name: "c", Contracts: []string{"hello", "http"},
		Protocols: []string{"h2c"}}})
	if want := `no target supports variant "grpc"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
