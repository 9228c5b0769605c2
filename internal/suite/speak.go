package suite

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// Call is a unary call of gRPC, and its messages as they go over the wire.
type Call struct {
	Method string `yaml:"method" json:"method"` // "/package.Service/Method"
	Send   string `yaml:"send" json:"send,omitempty"`
	Want   string `yaml:"want" json:"want,omitempty"`
}

// isCall says whether what is asked in a protocol are calls of gRPC.
func isCall(protocol string) bool { return strings.HasPrefix(protocol, "grpc") }

// shares says whether a protocol has several requests at once on a connection.
func shares(protocol string) bool {
	return isCall(protocol) || slices.Contains([]string{"h2", "h2c", "h3"}, protocol)
}

// has says whether a variant rides in the scenario.
func (s Scenario) has(variant string) bool {
	return variant == none || len(s.Variants) == 0 || slices.Contains(s.Variants, variant)
}

// kept says whether the target keeps the contract that the scenario has of its own.
func (s Scenario) kept(t Target) bool {
	return s.Contract == "" || slices.Contains(t.Contracts, s.Contract)
}

// in is the scenario as the variant has it asked: in its protocol, as many requests at once as
// without it over fewer connections.
func (s Scenario) in(v Variant) Scenario {
	s.Variants = nil
	if v.Protocol != "" {
		s.Protocol, s.Streams, s.spread = v.Protocol, v.Streams, v.Streams
	}
	s.Requests = slices.Clone(s.Requests)
	for i := range s.Requests {
		r := &s.Requests[i]
		if isCall(v.Protocol) {
			r.Name = cmp.Or(r.Name, r.Request)
			r.Request, r.Headers, r.Type = http.MethodPost+" "+r.Call.Method, nil, ""
			r.Body, r.BodyFile, r.content = r.Call.Send, "", ""
			want := r.Call.Want
			r.Expect, r.Checks = Expect{Status: http.StatusOK, Body: &want}, nil
		}
		r.Call = Call{}
	}
	return s
}

// over is over how many connections the scenario has so many requests at once.
func (s Scenario) over(atOnce int) int {
	each := max(s.spread, 1)
	return (atOnce + each - 1) / each
}
