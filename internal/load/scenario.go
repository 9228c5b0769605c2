package load

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"prony/internal/pace"
)

// Request is one kind of request of a scenario and the answer that is right for it. {key} in Path,
// Body and Want stands for the key drawn for that request.
type Request struct {
	Method string
	Path   string
	Body   string
	Type   string // media type of Body
	Weight int    // share of the requests; 0 counts as 1

	Status   int    // 0 counts as 200
	Want     string // the body, byte for byte; checked when HasWant
	HasWant  bool
	WantSize int64 // the body's length when Want is not given; -1 for any
}

// Scenario is what a load sends.
type Scenario struct {
	Requests []Request
	KeyLo    uint64 // keys are drawn uniformly from KeyLo..KeyHi
	KeyHi    uint64
}

// route is a compiled request: all that the hot loop needs, in the order it needs it.
type route struct {
	out    template
	want   template
	status int
	check  bool
	size   int64
	upTo   uint64 // this route serves draws below; the last one's equals the total weight
}

// template is a text with the key's places cut out.
type template struct {
	parts [][]byte // the key goes between each two
	fixed bool     // no key: parts[0] is the whole
}

func newTemplate(s string) template {
	var t template
	for _, p := range strings.Split(s, "{key}") {
		t.parts = append(t.parts, []byte(p))
	}
	t.fixed = len(t.parts) == 1
	return t
}

// render appends the text with the key filled in; within dst's capacity it does not allocate.
func (t *template) render(dst []byte, key uint64) []byte {
	dst = append(dst, t.parts[0]...)
	for _, p := range t.parts[1:] {
		dst = strconv.AppendUint(dst, key, 10)
		dst = append(dst, p...)
	}
	return dst
}

// size bounds the rendered length.
func (t *template) size() int {
	n := 0
	for _, p := range t.parts {
		n += len(p) + len("18446744073709551615")
	}
	return n
}

// plan is a compiled scenario.
type plan struct {
	routes []route
	total  uint64 // of weights
	keyLo  uint64
	keys   uint64 // how many keys there are
	seed   uint64
	outMax int // bytes of the longest request that carries a key
	inMax  int // likewise of the bodies wanted
}

func compile(s Scenario, host string, seed uint64) (*plan, error) {
	if len(s.Requests) == 0 {
		return nil, fmt.Errorf("compile scenario: it has no requests")
	}
	if s.KeyHi < s.KeyLo {
		return nil, fmt.Errorf("compile scenario: keys from %d to %d are none", s.KeyLo, s.KeyHi)
	}
	if s.KeyHi-s.KeyLo == math.MaxUint64 {
		return nil, fmt.Errorf("compile scenario: keys from 0 to 2^64-1 are one too many")
	}
	if strings.ContainsAny(host, " \r\n") {
		return nil, fmt.Errorf("compile scenario: %q is not a host", host)
	}
	p := &plan{keyLo: s.KeyLo, keys: s.KeyHi - s.KeyLo + 1, seed: seed}
	for _, r := range s.Requests {
		c, err := r.compile(host)
		if err != nil {
			return nil, err
		}
		p.total += uint64(max(r.Weight, 1))
		c.upTo = p.total
		p.routes = append(p.routes, c)
		if !c.out.fixed {
			p.outMax = max(p.outMax, c.out.size())
		}
		if !c.want.fixed {
			p.inMax = max(p.inMax, c.want.size())
		}
	}
	return p, nil
}

func (r Request) compile(host string) (route, error) {
	if r.Method == "" || strings.ContainsAny(r.Method, " \r\n") {
		return route{}, fmt.Errorf("compile scenario: %q is not a method", r.Method)
	}
	if r.Method == "HEAD" || r.Method == "CONNECT" {
		return route{}, fmt.Errorf("compile scenario: %s %s: the answer to %s has another "+
			"framing, which is not supported; use GET", r.Method, r.Path, r.Method)
	}
	if strings.ContainsAny(r.Type, "\r\n") {
		return route{}, fmt.Errorf("compile scenario: %q is not a media type", r.Type)
	}
	if !strings.HasPrefix(r.Path, "/") || strings.ContainsAny(r.Path, " \r\n") {
		return route{}, fmt.Errorf("compile scenario: path %q must begin with / and have no "+
			"spaces", r.Path)
	}
	if strings.Contains(r.Body, "{key}") {
		return route{}, fmt.Errorf("compile scenario: {key} in the body of %s %s: its length "+
			"would differ from request to request", r.Method, r.Path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, host)
	if r.Body != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", orElse(r.Type, "text/plain"))
	}
	if r.Body != "" || r.Method == "POST" || r.Method == "PUT" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	b.WriteString("\r\n")
	b.WriteString(r.Body)
	c := route{
		out: newTemplate(b.String()), want: newTemplate(r.Want),
		status: r.Status, check: r.HasWant, size: r.WantSize,
	}
	if c.status == 0 {
		c.status = 200
	}
	return c, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// draw returns route and key of the k-th request: pure functions of seed and k, so that every
// contender is asked for the same keys in the same order.
func (p *plan) draw(k uint64) (*route, uint64) {
	r := &p.routes[0]
	if len(p.routes) > 1 {
		w := pace.Below(p.seed^routeSalt, k, p.total)
		for i := range p.routes {
			if w < p.routes[i].upTo {
				r = &p.routes[i]
				break
			}
		}
	}
	return r, p.keyLo + pace.Below(p.seed^keySalt, k, p.keys)
}

// The salts make the draws of route and key independent of each other and of the gaps between
// arrivals, which are drawn from the seed as it is. Without them a large key would always follow a
// short gap.
const (
	routeSalt = 0x5851f42d4c957f2d
	keySalt   = 0x14057b7ef767814f
)
