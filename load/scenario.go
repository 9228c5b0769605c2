package load

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"prony.example/load/engine/http1"
	"prony.example/load/extract"
	"prony.example/load/pace"
	"prony.example/load/template"
)

// Request is one kind of request of a scenario, with its expected response. Path, Header values,
// Body and Want are templates (see package template): {key} is the key drawn for the request, {seq}
// its number, {name} a variable of the flow.
type Request struct {
	Name    string // in results; empty: method and path
	Method  string
	Path    string
	Headers []Header // in addition to Host, Content-Type and Content-Length
	Body    string
	Type    string // media type of Body
	Weight  int    // relative frequency in a mix; 0 counts as 1; ignored in flows

	Status   int    // 0 counts as 200
	Want     string // the expected body, byte for byte; checked if HasWant
	HasWant  bool
	WantSize int64 // the expected length of the body if HasWant is false; -1: any

	Checks  []extract.Check
	Extract []extract.Capture // flows: values for later steps
	Pause   time.Duration     // flows: from this step's response to the next step
}

// Header is a header field of a request.
type Header struct{ Name, Value string }

// Scenario defines the requests of a load: a weighted mix, from which each request is drawn, or a
// flow, whose requests one user sends in order. An arrival, or a closed user's turn, is one request
// or one flow.
type Scenario struct {
	Session
	Requests []Request
	Flow     bool
	KeyLo    uint64 // keys are drawn from KeyLo..KeyHi
	KeyHi    uint64
	Zipf     float64 // exponent of their popularity, KeyLo the most popular; 0: uniform
}

// Steps returns the number of requests of a turn.
func (s *Scenario) Steps() int {
	if s.Flow {
		return len(s.Requests)
	}
	return 1
}

// route is a compiled request with all that the hot loop needs.
type route struct {
	name   string
	index  int    // in the plan
	out    []byte // the complete request, if it is constant
	path   *template.Text
	head   *template.Text // otherwise: up to the empty line, without Content-Length
	body   *template.Text
	sized  bool   // it has a Content-Length
	want   []byte // the expected body, if it is constant
	wantT  *template.Text
	like   *template.Pattern // the expected body, if only source ports vary
	status int
	check  bool // compare the body with want
	size   int64
	upTo   uint64 // this route serves draws below; the last route's upTo equals the total weight

	headOnly bool // a response to HEAD has no body, whatever its head says

	repeatable bool // the method is idempotent
	last       bool // Connection: close, so no request may follow (RFC 9112, section 9.6)
	keep       bool // keep the complete response, for checks or extract
	checks     []extract.Check
	extract    []capture
	pauseNs    int64
}

// capture stores a value from a response in a variable of the flow.
type capture struct {
	from *extract.Finder
	into int
}

// plan is a compiled scenario.
type plan struct {
	routes []route
	total  uint64 // of weights
	keyLo  uint64
	keys   uint64 // how many keys there are
	zipf   *pace.Zipf
	seed   uint64
	port   string   // of the target
	vars   []string // of the flow
	inHead []bool   // whether the variable is part of a path or a header field
	inPath []bool   // whether the variable is part of a path, which a space would end
	flow   bool

	setup   []route // sent before the load
	fixed   int     // number of variables that data and setup define; they come first
	users   []user  // initial state of connections, by connection number modulo len(users)
	perUser bool
	cookies bool
	rows    [][][]byte // values of the first variables
	drawn   bool

	outMax   int // bytes of the longest request that varies, without variables
	inMax    int // bytes of the longest expected body that varies, without variables
	fixedMax int // bytes of the longest constant request
}

// Bounds of the bytes that are kept of a response's body: for checks and extraction, and for the
// text of an error.
const (
	keepMax    = 1 << 20
	explainMax = 4 << 10
)

// compile compiles a scenario for requests with this Host to this port.
func compile(s Scenario, host, port string, seed uint64) (*plan, error) {
	if len(s.Requests) == 0 {
		return nil, fmt.Errorf("compile scenario: it has no requests")
	}
	if s.KeyHi < s.KeyLo {
		return nil, fmt.Errorf("compile scenario: keys %d to %d: the last key must not be less "+
			"than the first", s.KeyLo, s.KeyHi)
	}
	if s.KeyHi-s.KeyLo == math.MaxUint64 {
		return nil, fmt.Errorf("compile scenario: keys from 0 to 2^64-1 are one too many")
	}
	if strings.ContainsAny(host, " \r\n{}") {
		return nil, fmt.Errorf("compile scenario: %q is not a host", host)
	}
	p := &plan{port: port, keyLo: s.KeyLo, keys: s.KeyHi - s.KeyLo + 1, seed: seed, flow: s.Flow}
	if s.Zipf < 0 || math.IsNaN(s.Zipf) || math.IsInf(s.Zipf, 0) {
		return nil, fmt.Errorf("compile scenario: Zipf exponent %v is not above 0", s.Zipf)
	}
	if s.Zipf > 0 && p.keys > 1<<53 {
		return nil, fmt.Errorf("compile scenario: Zipf draws of at most 2^53 keys, not of %d",
			p.keys)
	}
	if s.Zipf > 0 {
		p.zipf = pace.NewZipf(p.keys, s.Zipf)
	}
	if err := p.sessions(&s, host); err != nil {
		return nil, fmt.Errorf("compile scenario: %w", err)
	}
	for _, r := range s.Requests {
		if err := p.add(r, host, false); err != nil {
			return nil, fmt.Errorf("compile scenario: %s %s: %w", r.Method, r.Path, err)
		}
	}
	if err := p.fits(s.Columns); err != nil {
		return nil, fmt.Errorf("compile scenario: %w", err)
	}
	return p, nil
}

// add compiles a request of the load or of its setup.
func (p *plan) add(r Request, host string, setup bool) error {
	if err := r.check(); err != nil {
		return err
	}
	c := route{
		name: cmp.Or(r.Name, r.Method+" "+r.Path), index: len(p.routes), status: r.Status,
		check: r.HasWant,
		size:  r.WantSize, headOnly: r.Method == http.MethodHead, pauseNs: int64(r.Pause),
		repeatable: slices.Contains(idempotent, r.Method),
	}
	if c.status == 0 {
		c.status = 200
	}
	if err := c.compile(r, host, p.port, p.vars); err != nil {
		return err
	}
	var err error
	if c.path, err = sent(r.Path, p.vars, true); err != nil {
		return err
	}
	for _, v := range c.head.Vars() {
		p.inHead[v] = true
	}
	for _, v := range c.path.Vars() {
		p.inPath[v] = true
	}
	for _, e := range r.Extract {
		if !p.flow && !setup {
			return fmt.Errorf("it extracts %s, which only a later step of a flow could use", e.Var)
		}
		into := p.variable(e.Var)
		if into < p.fixed {
			return fmt.Errorf("it extracts %s, which stands for what setup or data has", e.Var)
		}
		c.extract = append(c.extract, capture{e.From, into})
	}
	if setup {
		p.setup = append(p.setup, c)
		return nil
	}
	c.keep = len(c.checks)+len(c.extract) > 0
	p.total += uint64(max(r.Weight, 1))
	c.upTo = p.total
	if c.out == nil {
		p.outMax = max(p.outMax, c.head.Max()+c.body.Max()+len(lengthName)+24)
	}
	p.fixedMax = max(p.fixedMax, len(c.out))
	if c.want == nil {
		p.inMax = max(p.inMax, c.wantT.Max())
	}
	p.routes = append(p.routes, c)
	return nil
}

// variable returns the index of a variable of the flow, and adds the variable if it is new.
func (p *plan) variable(name string) int {
	for i, v := range p.vars {
		if v == name {
			return i
		}
	}
	p.vars = append(p.vars, name)
	p.inHead, p.inPath = append(p.inHead, false), append(p.inPath, false)
	return len(p.vars) - 1
}

func (r *Request) check() error {
	if r.Method == "" || strings.ContainsAny(r.Method, " \r\n{}") {
		return fmt.Errorf("%q is not a method", r.Method)
	}
	if r.Method == http.MethodConnect {
		return fmt.Errorf("the answer to CONNECT is a tunnel, which is not supported; use GET")
	}
	if strings.ContainsAny(r.Type, "\r\n{}") {
		return fmt.Errorf("%q is not a media type", r.Type)
	}
	if !strings.HasPrefix(r.Path, "/") {
		return fmt.Errorf("path %q must begin with /", r.Path)
	}
	for _, h := range r.Headers {
		if h.Name == "" || strings.ContainsAny(h.Name, " :\t\r\n{}") ||
			strings.ContainsAny(h.Value, "\r\n") {
			return fmt.Errorf("%q: %q is not a header field", h.Name, h.Value)
		}
		switch strings.ToLower(h.Name) {
		case "content-length", "transfer-encoding":
			return fmt.Errorf("header %s is set from the body; leave it out", h.Name)
		}
	}
	return nil
}

const lengthName = "Content-Length: "

// compile compiles the templates of the request and of the expected body.
func (c *route) compile(r Request, host, port string, vars []string) error {
	ownByName := map[string]bool{}
	var fields strings.Builder
	for _, h := range r.Headers {
		c.last = c.last || strings.EqualFold(h.Name, "connection") && http1.Closes(h.Value)
		ownByName[strings.ToLower(h.Name)] = true
		fmt.Fprintf(&fields, "%s: %s\r\n", h.Name, h.Value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", r.Method, r.Path)
	if !ownByName["host"] {
		fmt.Fprintf(&b, "Host: %s\r\n", host)
	}
	if r.Body != "" && !ownByName["content-type"] {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", cmp.Or(r.Type, "text/plain"))
	}
	b.WriteString(fields.String())
	c.sized = r.Body != "" || r.Method == http.MethodPost || r.Method == http.MethodPut
	var err error
	if c.head, err = sent(b.String(), vars, true); err != nil {
		return err
	}
	if c.body, err = sent(r.Body, vars, false); err != nil {
		return err
	}
	if c.wantT, err = template.Parse(r.Want, vars); err != nil {
		return err
	}
	if names := c.wantT.Environment(); len(names) > 0 {
		return fmt.Errorf("the expected answer contains ${%s}, which only requests have; use a "+
			"check for it", names[0])
	}
	for _, h := range r.Headers {
		if t, err := sent(h.Value, vars, true); err == nil && strings.EqualFold(h.Name, "host") {
			if name, fixed := t.Fixed(); fixed {
				host = string(name)
			}
		}
	}
	c.wantT = c.wantT.At(host, port)
	if w, ok := c.wantT.Fixed(); ok {
		c.want = append([]byte{}, w...)
	} else if c.like = c.wantT.Pattern(); c.like != nil {
		c.want = c.like.Literal
	} else if lab := c.wantT.Lab(); lab != "" {
		return fmt.Errorf("an answer that has %s has no other placeholder that varies", lab)
	}
	for i := range r.Checks {
		c.checks = append(c.checks, r.Checks[i].At(host, port))
	}
	sample := template.Values{Vars: make([][]byte, len(vars))}
	for i := range sample.Vars {
		sample.Vars[i] = []byte("x")
	}
	out := c.render(nil, nil, nil, &sample)
	line, _, _ := strings.Cut(string(out), "\r\n")
	if strings.Count(line, " ") != 2 || strings.ContainsAny(line, "\r\n") {
		return fmt.Errorf("path %q must have no spaces; write %%20", r.Path)
	}
	_, headFixed := c.head.Fixed()
	if _, fixed := c.body.Fixed(); fixed && headFixed {
		c.out = out
	}
	return nil
}

// sent compiles the template of a request and fills in environment variables. A value must not add
// lines to the request's head.
func sent(s string, vars []string, head bool) (*template.Text, error) {
	t, err := template.Parse(s, vars)
	if err != nil {
		return nil, err
	}
	if lab := t.Lab(); lab != "" {
		return nil, fmt.Errorf("%s is of answers, and this is sent", lab)
	}
	odd := ""
	t, err = t.Fill(func(name string) (string, bool) {
		value, ok := os.LookupEnv(name)
		if head && strings.ContainsFunc(value, isControl) {
			odd = name
		}
		return value, ok
	})
	if err == nil && odd != "" {
		err = fmt.Errorf("the value of %s in the environment has a line's end or another control "+
			"character, which no head of a request may have; export it without", odd)
	}
	return t, err
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// render appends the request to dst, with an additional header field if there is one. The body is
// rendered first, into scratch, because Content-Length comes before it.
func (c *route) render(dst, scratch, field []byte, v *template.Values) []byte {
	dst = c.head.Append(dst, v)
	dst = append(dst, field...)
	body, fixed := c.body.Fixed()
	if !fixed {
		body = c.body.Append(scratch[:0], v)
	}
	if c.sized {
		dst = append(dst, lengthName...)
		dst = strconv.AppendInt(dst, int64(len(body)), 10)
		dst = append(dst, "\r\n"...)
	}
	dst = append(dst, "\r\n"...)
	return append(dst, body...)
}

// draw returns route and key of the k-th turn. They are pure functions of seed and k, so every
// target gets the same keys in the same order. A flow begins with its first step.
func (p *plan) draw(k uint64) (*route, uint64) {
	r := &p.routes[0]
	if len(p.routes) > 1 && !p.flow {
		w := pace.Below(p.seed^routeSalt, k, p.total)
		for i := range p.routes {
			if w < p.routes[i].upTo {
				r = &p.routes[i]
				break
			}
		}
	}
	if p.zipf != nil {
		return r, p.keyLo + p.zipf.Draw(p.seed^keySalt, k)
	}
	return r, p.keyLo + pace.Below(p.seed^keySalt, k, p.keys)
}

// The salts make the draws of route, key, think time and trace independent of each other and of the
// gaps between arrivals, which use the seed without salt. Otherwise, for example, a large key would
// always follow a short gap.
const (
	routeSalt = 0x5851f42d4c957f2d
	keySalt   = 0x14057b7ef767814f
	thinkSalt = 0x2545f4914f6cdd1d
	traceSalt = 0xd6e8feb86659fd93
	stepSalt  = 0x9fb21c651e98df25 // times the step's index: each step of a flow has its own draws
)
