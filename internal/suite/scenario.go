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

	"prony.example/internal/base/address"
	"prony.example/internal/base/strictyaml"
	"prony.example/load/extract"
)

// Scenario defines the requests: one kind, a weighted mix, or a flow, whose requests are steps that
// one user takes in order on one connection.
type Scenario struct {
	Name string `yaml:"name" json:"name"`
	Flow bool   `yaml:"flow" json:"flow,omitempty"`
	// Keys are the first and the last of the keys that {key} is drawn from; {0, 0}: none.
	Keys Keys `yaml:"keys" json:"keys"`
	// Zipf is the exponent of the keys' popularity, the first the most popular; 0: uniform.
	Zipf float64 `yaml:"zipf" json:"zipf,omitempty"`
	// Connections, when not 0, replaces that of every load and of the warm-up: see LoadsOf.
	Connections int `yaml:"connections" json:"connections,omitempty"`
	// Cookies makes each user keep the cookies of responses.
	Cookies bool `yaml:"cookies" json:"cookies,omitempty"`
	// Data is a CSV file beside the suite, whose columns are variables. Rows is the order of its
	// rows: Sequential, the default, or Random.
	Data string `yaml:"data" json:"data,omitempty"`
	Rows string `yaml:"rows" json:"rows,omitempty"`
	// Protocol is one of Protocols; empty: HTTP/1.1. It is used over TCP, or for HTTP/1.1 without
	// TLS also over the Unix socket at a path, in which {port} is the service's. Streams is the
	// number of concurrent requests on each connection; 0: one.
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	Unix     string `yaml:"unix" json:"unix,omitempty"`
	Streams  int    `yaml:"streams" json:"streams,omitempty"`
	TLS      TLS    `yaml:"tls" json:"tls,omitzero"`
	// Contract replaces the suite's contract.
	Contract string `yaml:"contract" json:"contract,omitempty"`
	// Variants are the suite's variants in this scenario; none: all. The bare target always runs.
	Variants []string  `yaml:"variants" json:"variants,omitempty"`
	Requests []Request `yaml:"requests" json:"requests"`

	DataHash string `yaml:"-" json:"dataHash,omitempty"` // of the file, as Suite.Hash
	spread   int    // streams of a variant, which divide the connections; 0: do not divide
	columns  []string
	table    [][][]byte
}

// To returns the scenario for a service with a host name, which requests without a Host field get;
// empty: unchanged.
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

// TLS is the trust in a service's certificate. It does not affect measurements.
type TLS struct {
	Insecure bool   `yaml:"insecure" json:"insecure,omitempty"` // accept any certificate
	CA       string `yaml:"ca" json:"ca,omitempty"`             // a PEM file of trusted roots

	PEM string `yaml:"-" json:"-"` // content of the file
}

// Orders of the rows of data.
const (
	Sequential = "sequential"
	Random     = "random"
)

// When a setup is sent.
const (
	SetupRun  = "run"
	SetupUser = "user"
)

// Request is one kind of request with its expected response. Its path, header values, body and
// expectations are templates.
type Request struct {
	Name    string          `yaml:"name" json:"name,omitempty"` // in results; empty: Request
	Request string          `yaml:"request" json:"request"`     // "GET /hello/{mode}?key={key}"
	Headers map[string]Text `yaml:"headers" json:"headers,omitempty"`
	Body    string          `yaml:"body" json:"body,omitempty"`
	// BodyFile is a file beside the suite that contains the body: see Content.
	BodyFile string  `yaml:"bodyFile" json:"bodyFile,omitempty"`
	Type     string  `yaml:"type" json:"type,omitempty"` // media type of the body
	Weight   int     `yaml:"weight" json:"weight"`       // share of the sum; not in flows
	Expect   Expect  `yaml:"expect" json:"expect"`
	Checks   []Check `yaml:"checks" json:"checks,omitempty"`
	// Call is the same request in gRPC, for variants that use it.
	Call    Call             `yaml:"call" json:"call,omitzero"`
	Extract map[string]Place `yaml:"extract" json:"extract,omitempty"` // by variable; flows
	// Setup, when not empty, sends the request before the load: SetupRun or SetupUser.
	Setup string   `yaml:"setup" json:"setup,omitempty"`
	Pause Duration `yaml:"pause" json:"pause,omitempty"` // flows: before the next
	// BackendCalls is the minimum number of backend calls of the service for it, by counter. It is
	// not sent.
	BackendCalls map[string]int `yaml:"backendCalls" json:"-"`

	// BodyHash is the hash of the file, as Suite.Hash; or a size, see Sized.
	BodyHash string `yaml:"-" json:"bodyHash,omitempty"`
	// Given means that Expect and Checks are from the file, in a request that Hold has sent.
	Given   bool `yaml:"-" json:"-"`
	content string
}

// Expect is checked on every response: the status, and at most one of the other three.
type Expect struct {
	Status int     `yaml:"status" json:"status"`
	Body   *string `yaml:"body" json:"body,omitempty"`   // byte for byte, with placeholders
	Size   *int64  `yaml:"size" json:"size,omitempty"`   // the body's length in bytes
	Lorem  *int64  `yaml:"lorem" json:"lorem,omitempty"` // bytes of lorem.txt repeated
}

// Place is the position of a value in a response: exactly one of the four, or a Regex in a Header.
type Place struct {
	JSON   string `yaml:"json" json:"json,omitempty"`     // path in GJSON's syntax
	Header string `yaml:"header" json:"header,omitempty"` // name of a field
	Regex  string `yaml:"regex" json:"regex,omitempty"`   // RE2; the first group, or the match
	Body   bool   `yaml:"body" json:"body,omitempty"`     // the whole body
}

// Check is a condition of a good response: one Place, and one of the four below.
type Check struct {
	Place    `yaml:",inline"`
	Is       *Text  `yaml:"is" json:"is,omitempty"` // byte for byte, with placeholders
	Contains *Text  `yaml:"contains" json:"contains,omitempty"`
	Matches  string `yaml:"matches" json:"matches,omitempty"` // RE2
	Exists   *bool  `yaml:"exists" json:"exists,omitempty"`
}

// UnmarshalYAML sets the defaults before it reads the file's own keys.
func (r *Request) UnmarshalYAML(decode func(any) error) error {
	type request Request
	return defaulted("scenarios[].requests[].", (*request)(r), decode)
}

// ReadScenario reads a file with one scenario, with the same keys as in a suite. Without targets,
// {mode} has no value.
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

// header returns the name of a header field as the request has it, or "".
func (r *Request) header(name string) string {
	for input := range r.Headers {
		if strings.EqualFold(input, name) {
			return input
		}
	}
	return ""
}

// Line returns the method and the path for a target that serves the mode. Other placeholders stay:
// their values are drawn for each request. Characters beyond ASCII become percent-encoded.
func (r Request) Line(mode string) (method, path string) {
	method, path, _ = strings.Cut(r.Request, " ")
	path = strings.ReplaceAll(path, "{mode}", mode)
	if sent, err := address.Path(path); err == nil { // the check of the suite reports errors
		path = sent
	}
	return method, path
}

// Content returns the text of the body, from Body or the file in BodyFile. A file that is not UTF-8
// contains no placeholders.
func (r Request) Content() string {
	return cmp.Or(r.Body, r.content)
}

// filler is the beginning of bodies of a given size: one text without placeholders, so that bodies
// differ only in length, and all trials share its memory.
var filler = sync.OnceValue(func() string {
	const digits = "0123456789abcdef"
	return strings.Repeat(digits, bodyMax/len(digits))
})

// Sized returns the scenario with bodies of n bytes, at most bodyMax, in all requests that have a
// body, except setups. With n of 0 it returns the scenario itself.
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

// sizes reports whether the size of the request's body can be changed.
func (r *Request) sizes() bool { return r.Setup == "" && r.Content() != "" }

// Table returns the columns of the scenario's data, and its rows.
func (s Scenario) Table() (columns []string, rows [][][]byte) { return s.columns, s.table }

// Variables returns the names of the data's columns, then of the variables that steps set, in the
// order of the steps and by name within each. A step may use the first known[step] of them.
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

// Finder returns what finds the place in a response.
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

// Make returns the check. vars are the variables that its texts may use.
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

// Call is a unary call of gRPC, and its messages as they are sent.
type Call struct {
	Method string `yaml:"method" json:"method"` // "/package.Service/Method"
	Send   string `yaml:"send" json:"send,omitempty"`
	Expect string `yaml:"expect" json:"want,omitempty"`
}

// isCall reports whether the requests of a protocol are calls of gRPC.
func isCall(protocol string) bool { return strings.HasPrefix(protocol, "grpc") }

// shares reports whether a protocol allows concurrent requests on a connection.
func shares(protocol string) bool {
	return isCall(protocol) || slices.Contains([]string{"h2", "h2c", "h3"}, protocol)
}

// has reports whether a variant runs in the scenario.
func (s Scenario) has(variant string) bool {
	return variant == none || len(s.Variants) == 0 || slices.Contains(s.Variants, variant)
}

// kept reports whether the target supports the scenario's own contract.
func (s Scenario) kept(t Target) bool {
	return s.Contract == "" || slices.Contains(t.Contracts, s.Contract)
}

// in returns the scenario for a variant: in its protocol, with the same number of concurrent
// requests over fewer connections.
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

// over returns how many connections the scenario needs for a number of concurrent requests.
func (s Scenario) over(atOnce int) int {
	perItem := max(s.spread, 1)
	return (atOnce + perItem - 1) / perItem
}
