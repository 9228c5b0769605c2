package suite

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"prony.example/internal/base/strictyaml"
	"prony.example/load/extract"
)

// Scenario is what is sent: one kind of request, a weighted mix, or a flow, whose requests are
// steps that one user takes in order on one connection.
type Scenario struct {
	Name string `yaml:"name" json:"name"`
	Flow bool   `yaml:"flow" json:"flow,omitempty"`
	// Keys are the first and the last of the keys that {key} is drawn from; {0, 0}: none.
	Keys Keys `yaml:"keys" json:"keys"`
	// Zipf is the exponent of the keys' popularity, the first the most popular; 0: uniform.
	Zipf float64 `yaml:"zipf" json:"zipf,omitempty"`
	// Connections, when not 0, replaces that of every load and of the warm-up: see LoadsOf.
	Connections int `yaml:"connections" json:"connections,omitempty"`
	// Cookies has each user keep what the answers set.
	Cookies bool `yaml:"cookies" json:"cookies,omitempty"`
	// Data is a CSV file beside the suite, whose columns are variables; Rows is how its rows come:
	// Turn, the default, or Drawn.
	Data string `yaml:"data" json:"data,omitempty"`
	Rows string `yaml:"rows" json:"rows,omitempty"`
	// Protocol is one of Protocols, spoken over TCP or, of HTTP/1.1 without TLS, over the Unix
	// socket of that path, in which {port} is the service's; empty: HTTP/1.1. Streams are the
	// requests at once on each of the connections; 0: one.
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	Unix     string `yaml:"unix" json:"unix,omitempty"`
	Streams  int    `yaml:"streams" json:"streams,omitempty"`
	TLS      TLS    `yaml:"tls" json:"tls,omitzero"`
	// Contract is asked of targets instead of the suite's, where there is one.
	Contract string `yaml:"contract" json:"contract,omitempty"`
	// Variants are those of the suite that ride in it; none: all. The bare target always does.
	Variants []string  `yaml:"variants" json:"variants,omitempty"`
	Requests []Request `yaml:"requests" json:"requests"`

	DataHash string `yaml:"-" json:"dataHash,omitempty"` // of the file, as Suite.Hash
	spread   int    // requests at once on each of fewer connections; 0: on each of all
	columns  []string
	table    [][][]byte
}

// To is the scenario for a service that is asked by a name, where its requests have no other;
// empty: as it is.
func (s Scenario) To(host string) Scenario {
	if host == "" {
		return s
	}
	s.Requests = slices.Clone(s.Requests)
	for i := range s.Requests {
		r := &s.Requests[i]
		headers := map[string]Text{"Host": Text(host)}
		for name, value := range r.Headers {
			if strings.EqualFold(name, "host") {
				delete(headers, "Host")
			}
			headers[name] = value
		}
		r.Headers = headers
	}
	return s
}

// TLS is what of a service's certificate is believed. What is measured does not hang on it.
type TLS struct {
	Insecure bool   `yaml:"insecure" json:"insecure,omitempty"` // any
	CA       string `yaml:"ca" json:"ca,omitempty"`             // a file in PEM: what it signed

	PEM string `yaml:"-" json:"-"` // what the file holds
}

// How the rows of data come.
const (
	Sequential = "sequential"
	Random     = "random"
)

// When a setup is asked.
const (
	SetupRun  = "run"
	SetupUser = "user"
)

// Request is one kind of request and the answer that is right for it. Its path, header values and
// body, and the answers that it wants, are texts of package text.
type Request struct {
	Name    string          `yaml:"name" json:"name,omitempty"` // in results; empty: Request
	Request string          `yaml:"request" json:"request"`     // "GET /hello/{mode}?key={key}"
	Headers map[string]Text `yaml:"headers" json:"headers,omitempty"`
	Body    string          `yaml:"body" json:"body,omitempty"`
	// BodyFile is a file beside the suite that holds the body: see Content.
	BodyFile string  `yaml:"bodyFile" json:"bodyFile,omitempty"`
	Type     string  `yaml:"type" json:"type,omitempty"` // media type of the body
	Weight   int     `yaml:"weight" json:"weight"`       // of the sum; not in flows
	Expect   Expect  `yaml:"expect" json:"expect"`
	Checks   []Check `yaml:"checks" json:"checks,omitempty"`
	// Call is the same request as one of gRPC, for variants that speak it.
	Call    Call             `yaml:"call" json:"call,omitzero"`
	Extract map[string]Place `yaml:"extract" json:"extract,omitempty"` // by variable; flows
	// Setup, when not empty, makes it one that is asked before the load: SetupRun or SetupUser.
	Setup string   `yaml:"setup" json:"setup,omitempty"`
	Pause Duration `yaml:"pause" json:"pause,omitempty"` // flows: before the next
	// BackendCalls is how often at least it has the service ask, by counter. It is no part of what
	// is sent.
	BackendCalls map[string]int `yaml:"backendCalls" was:"asks" json:"-"`

	// BodyHash is of the file, as Suite.Hash; or a size, see Sized.
	BodyHash string `yaml:"-" json:"bodyHash,omitempty"`
	// Given says that Expect and Checks are what somebody wants, of a request that Hold has asked.
	Given   bool `yaml:"-" json:"-"`
	content string
}

// Expect is what is checked on every answer: the status, and at most one of the other three.
type Expect struct {
	Status int     `yaml:"status" json:"status"`
	Body   *string `yaml:"body" json:"body,omitempty"`   // byte for byte, with placeholders
	Size   *int64  `yaml:"size" json:"size,omitempty"`   // the body's length in bytes
	Lorem  *int64  `yaml:"lorem" json:"lorem,omitempty"` // bytes of lorem.txt repeated
}

// Place is where in an answer a value stands: exactly one of the four, or a Regex in a Header.
type Place struct {
	JSON   string `yaml:"json" json:"json,omitempty"`     // path in GJSON's syntax
	Header string `yaml:"header" json:"header,omitempty"` // name of a field
	Regex  string `yaml:"regex" json:"regex,omitempty"`   // RE2; the first group, or the match
	Body   bool   `yaml:"body" json:"body,omitempty"`     // the whole body
}

// Check is something that must hold for a good answer: one Place, and one of the four below.
type Check struct {
	Place    `yaml:",inline"`
	Is       *Text  `yaml:"is" json:"is,omitempty"` // byte for byte, with placeholders
	Contains *Text  `yaml:"contains" json:"contains,omitempty"`
	Matches  string `yaml:"matches" json:"matches,omitempty"` // RE2
	Exists   *bool  `yaml:"exists" json:"exists,omitempty"`
}

// UnmarshalYAML fills in the defaults before the file's own keys.
func (r *Request) UnmarshalYAML(decode func(any) error) error {
	type request Request
	return defaulted("scenarios[].requests[].", (*request)(r), decode)
}

// ReadScenario reads a file that holds one scenario, with the keys that each of a suite's has.
// There is no target whose mode could stand for {mode}.
func ReadScenario(file string, data []byte) (*Scenario, error) {
	c, err := newChecker(file, data)
	if err != nil {
		return nil, err
	}
	c.noMode = true
	s := &Scenario{}
	if err := strictyaml.Decode(file, data, s); err != nil {
		return nil, err
	}
	s.fill()
	if s.Protocol != "" || s.Unix != "" || s.Streams != 0 || s.TLS != (TLS{}) {
		c.Wrong("protocol", "remove protocol, unix, streams and "+
			"tls", "protocol, unix, streams and tls are possible only "+
			"in suites; prony load uses its URL and its flags instead")
	}
	for i, r := range s.Requests {
		if len(r.BackendCalls) > 0 {
			c.Wrong(fmt.Sprintf("requests[%d].backendCalls", i), "remove backendCalls",
				"backendCalls needs the counters of a target, and this load has no targets")
		}
	}
	c.bodies(s, "", filepath.Dir(file), nil)
	walk(reflect.ValueOf(s).Elem(), "scenarios[].", "", c.value)
	c.scenario("", s)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// fill sets the defaults that depend on other values.
func (s *Scenario) fill() {
	for i := range s.Requests {
		r := &s.Requests[i]
		if (r.Body != "" || r.BodyFile != "") && r.Type == "" && r.header("content-type") == "" {
			r.Type = "text/plain"
		}
	}
}

// header returns the name, as the request has it, of its header field of that name, or "".
func (r *Request) header(name string) string {
	for input := range r.Headers {
		if strings.EqualFold(input, name) {
			return input
		}
	}
	return ""
}

// Line returns method and path for a target that serves the mode. Other placeholders stay: their
// values are drawn for each request.
func (r Request) Line(mode string) (method, path string) {
	method, path, _ = strings.Cut(r.Request, " ")
	return method, strings.ReplaceAll(path, "{mode}", mode)
}

// Content is the text of the body: of Body, or of the file that BodyFile names. A file that is not
// UTF-8 holds no placeholders, whatever its bytes look like.
func (r Request) Content() string {
	return cmp.Or(r.Body, r.content)
}

// filler is what bodies of a given size begin with: one text, so that rows differ in length alone,
// without placeholders, and in memory once, however many trials send it.
var filler = sync.OnceValue(func() string {
	const digits = "0123456789abcdef"
	return strings.Repeat(digits, bodyMax/len(digits))
})

// Sized is the scenario whose requests send bodies of n bytes, at most bodyMax, where they have
// one; setups keep theirs. With n of 0 it is the scenario itself.
func (s Scenario) Sized(n strictyaml.Size) Scenario {
	if n == 0 {
		return s
	}
	s.Requests = slices.Clone(s.Requests)
	for i := range s.Requests {
		if r := &s.Requests[i]; r.sizes() {
			r.Body, r.BodyFile, r.BodyHash, r.content = "", "", n.String(), filler()[:n]
		}
	}
	return s
}

// sizes says whether the body of the request may be of any size.
func (r *Request) sizes() bool { return r.Setup == "" && r.Content() != "" }

// Table gives the columns of the scenario's file, and its rows.
func (s Scenario) Table() (columns []string, rows [][][]byte) { return s.columns, s.table }

// Variables are those of the data, then those that the steps set, in the order in which they first
// do; those of one step by name. A step may use the first known[step] of them.
func (s Scenario) Variables() (names []string, known []int) {
	names = slices.Clone(s.columns)
	for _, r := range s.Requests {
		known = append(known, len(names))
		for _, name := range sortedNames(r.Extract) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, known
}

// Finder makes what finds the place in an answer.
func (p Place) Finder() (*extract.Finder, error) {
	switch {
	case p.JSON != "":
		return extract.JSON(p.JSON)
	case p.Header != "" && p.Regex != "":
		return extract.HeaderRegex(p.Header, p.Regex)
	case p.Header != "":
		return extract.Header(p.Header)
	case p.Regex != "":
		return extract.Regex(p.Regex)
	}
	return extract.Body(), nil
}

// Make makes the check, of whose texts vars are the variables.
func (c Check) Make(vars []string) (extract.Check, error) {
	finder, err := c.Finder()
	if err != nil {
		return extract.Check{}, err
	}
	switch {
	case c.Is != nil:
		return extract.Is(finder, string(*c.Is), vars)
	case c.Contains != nil:
		return extract.Contains(finder, string(*c.Contains), vars)
	case c.Matches != "":
		return extract.Matches(finder, c.Matches)
	}
	return extract.Exists(finder, c.Exists == nil || *c.Exists), nil
}

// Call is a unary call of gRPC, and its messages as they go over the wire.
type Call struct {
	Method string `yaml:"method" json:"method"` // "/package.Service/Method"
	Send   string `yaml:"send" json:"send,omitempty"`
	Expect string `yaml:"expect" was:"want" json:"want,omitempty"`
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
			want := r.Call.Expect
			r.Expect, r.Checks = Expect{Status: http.StatusOK, Body: &want}, nil
		}
		r.Call = Call{}
	}
	return s
}

// over is over how many connections the scenario has so many requests at once.
func (s Scenario) over(atOnce int) int {
	perItem := max(s.spread, 1)
	return (atOnce + perItem - 1) / perItem
}
