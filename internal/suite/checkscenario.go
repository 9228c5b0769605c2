package suite

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/address"
	"prony.example/internal/base/lazyregexp"
	"prony.example/load/template"
)

// mode is the placeholder of the target's mode, which only paths have. It is filled in before the
// load begins.
const mode = "mode"

// scene is a scenario that is checked step by step.
type scene struct {
	*Scenario
	names []string // all variables of the flow
	known int      // number of names that the step may use
	sent  bool     // the requests so far contain the key
}

// scenario checks the scenario at a path, which ends with a dot or is empty.
func (c *checker) scenario(keyPath string, sc *Scenario) {
	isSet := sc.Keys != Keys{}
	if sc.Keys[1] < sc.Keys[0] {
		c.Wrong(keyPath+"keys", "", "keys %d to %d: the last key must not be less than the "+
			"first", sc.Keys[0], sc.Keys[1])
	}
	if sc.Zipf != 0 && !isSet {
		c.Wrong(keyPath+"zipf", "add keys to the scenario, such as [1, 50000]",
			"zipf needs keys, but the scenario has no keys")
	}
	c.routes(keyPath, sc)
	c.users(keyPath, sc)
	names, known := sc.Variables()
	for i, name := range names {
		if hasMeaning(name) || !varForm.MatchString(name) {
			names[i] = fmt.Sprintf("%s%d", misnamed, i) // the error is reported where it is set
		}
	}
	used := false
	for i := range sc.Requests {
		s := &scene{Scenario: sc, names: names, known: known[i], sent: used && sc.Flow}
		c.request(fmt.Sprintf("%srequests[%d]", keyPath, i), s, &sc.Requests[i])
		used = used || s.sent
	}
	if isSet && !used {
		c.Wrong(keyPath+"keys", "remove keys, or put {key} into a path",
			"the scenario has keys, but no request uses {key}")
	}
}

// routes checks that the names of requests, by which results list them, are unique.
func (c *checker) routes(keyPath string, sc *Scenario) {
	visited := map[string]bool{}
	for i := range sc.Requests {
		name := sc.Requests[i].Name
		if name != "" && visited[name] {
			c.Wrong(fmt.Sprintf("%srequests[%d].name", keyPath, i), "",
				"two requests have the name %q; names must be unique", name)
		}
		visited[name] = true
	}
}

// users checks data, setups and other keys that distinguish users.
func (c *checker) users(keyPath string, sc *Scenario) {
	if sc.Rows != "" && sc.Data == "" {
		c.Wrong(keyPath+"rows", "add data with the name of a CSV "+
			"file", "rows needs data, but the scenario "+
			"has no data")
	}
	began, when := false, ""
	for i := range sc.Requests {
		r := &sc.Requests[i]
		here := fmt.Sprintf("%srequests[%d]", keyPath, i)
		switch {
		case r.Setup == "":
			began = true
		case began:
			c.Wrong(here+".setup", "move the setup to the beginning of the list",
				"a setup request is listed after a request of the load, but Prony sends setup "+
					"requests before the load")
		case when != "" && when != r.Setup:
			c.Wrong(here+".setup", "set setup to the same value in all setup requests",
				"all setup requests must be sent either once for each run, or once by each user")
		}
		if when == "" {
			when = r.Setup
		}
		for _, name := range sortedNames(r.Headers) {
			if sc.Cookies && strings.EqualFold(name, "cookie") {
				c.Wrong(step(here+".headers", name), "remove cookies or the header field",
					"the header field Cookie conflicts with cookies: true, which sends the "+
						"cookies of earlier responses")
			}
		}
		for _, name := range sortedNames(r.Extract) {
			if r.Setup == "" && sc.fixed(name) {
				c.Wrong(step(here+".extract", name), "choose another name",
					"{%s} is already a value of the data or of a setup request", name)
			} else if slices.Contains(sc.columns, name) {
				c.Wrong(step(here+".extract", name), "choose another name",
					"{%s} is already a column of the data", name)
			}
		}
	}
	if !began {
		c.Wrong(keyPath+"requests", "add a request without setup",
			"all requests are setup requests, "+
				"so the load has no requests")
	}
}

// fixed reports whether a variable has its value when the load begins.
func (s *Scenario) fixed(name string) bool {
	set := func(r Request) bool {
		_, ok := r.Extract[name]
		return ok && r.Setup != ""
	}
	return slices.Contains(s.columns, name) || slices.ContainsFunc(s.Requests, set)
}

// request checks a request, then the expectations for its response.
func (c *checker) request(keyPath string, s *scene, r *Request) {
	_, path := r.Line("{" + mode + "}")
	c.path(keyPath+".request", s, path)
	c.headers(keyPath+".headers", s, r)
	ownText := r.header("content-type")
	switch {
	case r.Body != "" && r.BodyFile != "":
		c.Wrong(keyPath+".bodyFile", "remove body or "+
			"bodyFile", "the request has both body and bodyFile")
	case r.Body == "" && r.BodyFile == "" && r.Type != "":
		c.Wrong(keyPath+".type", "", "type is the media type of a body, but the request has no "+
			"body")
	case ownText != "" && r.Type != "":
		c.Wrong(step(keyPath+".headers", ownText), "remove type or the header "+
			"field", "type and the header field %s "+
			"both set the media type of the body", ownText)
	case r.Body != "":
		c.sends(keyPath+".body", s, r.Body)
	default:
		c.sends(keyPath+".bodyFile", s, r.Content())
	}
	c.expect(keyPath+".expect", s, &r.Expect)
	c.bodiless(keyPath, r)
	c.asks(keyPath, r)
	for i := range r.Checks {
		c.check(fmt.Sprintf("%s.checks[%d]", keyPath, i), s, &r.Checks[i])
	}
	c.call(keyPath+".call", s, r.Call)
	c.steps(keyPath, s, r)
}

// bodiless reports checks of the body in the response to a HEAD request, which has none: the bytes
// after its head are the next response, whatever length the head announces (RFC 9112, section 6.3).
func (c *checker) bodiless(keyPath string, r *Request) {
	if method, _ := r.Line(""); method != http.MethodHead {
		return
	}
	report := func(key string) {
		c.Wrong(key, "check a header field or the status", "the response to a HEAD request has "+
			"no body")
	}
	e := &r.Expect
	for _, name := range e.bodies() {
		report(keyPath + ".expect." + name)
	}
	for i := range r.Checks {
		if r.Checks[i].Header == "" {
			report(fmt.Sprintf("%s.checks[%d]", keyPath, i))
		}
	}
	for _, name := range sortedNames(r.Extract) {
		if r.Extract[name].Header == "" {
			report(step(keyPath+".extract", name))
		}
	}
}

// hasMeaning reports whether a placeholder of that name is not a variable.
func hasMeaning(name string) bool {
	_, err := template.Parse("", []string{name})
	return name == mode || err != nil && varForm.MatchString(name)
}

// steps checks keys that only a flow's requests can have, or cannot have.
func (c *checker) steps(keyPath string, s *scene, r *Request) {
	for _, name := range sortedNames(r.Extract) {
		here := step(keyPath+".extract", name)
		if hasMeaning(name) {
			c.Wrong(here, "choose another name", "{%s} is a built-in placeholder", name)
		}
		c.place(here, r.Extract[name])
	}
	switch {
	case r.Setup != "" && r.Pause != 0:
		c.Wrong(keyPath+".pause", "remove pause", "a setup request cannot have a pause")
	case r.Setup != "" && (r.Weight > 1 || c.Node(keyPath+".weight") != nil):
		c.Wrong(keyPath+".weight", "remove weight", "a setup request is sent once, so it cannot "+
			"have a weight")
	case r.Setup != "":
	case !s.Flow && len(r.Extract) > 0:
		c.Wrong(keyPath+".extract", `write "flow: true" if the requests are steps of a flow`,
			"extract sets values for later steps, but the scenario is not a flow")
	case !s.Flow && r.Pause != 0:
		c.Wrong(keyPath+".pause", `write "flow: true" if the requests are steps of a flow`,
			"pause is the time between two steps, but the scenario is not a flow")
	case s.Flow && (r.Weight > 1 || c.Node(keyPath+".weight") != nil):
		c.Wrong(
			keyPath+".weight",
			"remove weight",
			"each step of a flow is sent once, so it cannot have a weight",
		)
	}
}

// parse parses a text of the step and reports its errors. With modes, the text may contain the
// mode.
func (c *checker) parse(keyPath string, s *scene, in string, modes bool) *template.Text {
	names := s.names
	if modes && !c.noMode {
		names = append(slices.Clip(names), mode)
	}
	t, err := template.Parse(in, names)
	if err != nil {
		c.misread(keyPath, err, modes)
		return nil
	}
	for _, i := range t.Vars() {
		if i >= s.known && i < len(s.names) {
			c.Wrong(
				keyPath,
				"use this placeholder only in later steps",
				"{%s} is used before a step has set its value",
				names[i],
			)
		}
	}
	return t
}

// misnamed begins the names that replace invalid ones, which no message shows.
const misnamed = "misnamed"

var misnames = lazyregexp.New(misnamed + `[0-9]+, `)

// misread reports the error of a text. For paths, it suggests no escaped braces, which they cannot
// contain.
func (c *checker) misread(keyPath string, err error, path bool) {
	e, is := errors.AsType[*template.Error](err)
	if !is {
		c.Wrong(keyPath, "", "%v", err)
		return
	}
	hint := misnames.ReplaceAllString(e.Hint, "")
	switch {
	case e.Text == "{"+mode+"}":
		c.Wrong(
			keyPath,
			"only the path of a request to a target can have {mode}",
			"{mode} has no value here",
		)
	case path || e.Literal == "":
		c.Wrong(keyPath, hint, "%s: %s", e.Text, e.Problem)
	default:
		c.Wrong(keyPath, hint+" The text itself is "+e.Literal, "%s: %s", e.Text, e.Problem)
	}
}

// sends checks a text of a request, and notes whether it contains the key.
func (c *checker) sends(keyPath string, s *scene, in string) *template.Text {
	t := c.parse(keyPath, s, in, false)
	c.key(keyPath, s, in, t)
	c.asked(keyPath, t)
	return t
}

// asked reports placeholders in a request that only responses can have.
func (c *checker) asked(keyPath string, t *template.Text) {
	if t != nil && t.Lab() != "" {
		c.Wrong(keyPath, "only expect.body and the key is of a check can have this placeholder",
			"%s is a placeholder for responses, but this text is sent in a request", t.Lab())
	}
}

// key searches a text that could not be parsed for the key itself, so that one mistake is reported
// once.
func (c *checker) key(keyPath string, s *scene, in string, t *template.Text) {
	if t == nil {
		s.sent = s.sent || strings.Contains(in, "{key}")
		return
	}
	if !t.HasKey() {
		return
	}
	s.sent = true
	if s.Keys == (Keys{}) {
		c.Wrong(keyPath, "add keys to the scenario, such as [1, 50000]",
			"{key} has no value: the scenario has no keys")
	}
}

// wants checks a text that a response is compared with.
func (c *checker) wants(keyPath string, s *scene, in string) {
	t := c.parse(keyPath, s, in, false)
	if t != nil && len(t.Environment()) > 0 {
		c.Wrong(keyPath, "write $${NAME} for the text ${NAME} itself",
			"${%s} is possible only in requests; the check of a response cannot use "+
				"it", t.Environment()[0])
	}
	if t != nil && t.HasKey() && !s.sent {
		c.Wrong(keyPath, "", "{key} has no value: no request before this response uses {key}")
	}
}

// path checks the text of a path outside of its placeholders.
func (c *checker) path(keyPath string, s *scene, in string) {
	t := c.parse(keyPath, s, in, true)
	c.key(keyPath, s, in, t)
	c.asked(keyPath, t)
	if t == nil {
		return
	}
	if _, err := address.Path(in); err != nil {
		var e *address.Error
		errors.As(err, &e)
		c.Wrong(keyPath, e.Hint, "%s", e.Problem)
		return
	}
	for _, literal := range t.Literals() {
		if i := bytes.IndexAny(literal, "{}#"); i >= 0 {
			c.Wrong(keyPath, fmt.Sprintf("write %%%X for this character in a path", literal[i]),
				"a path cannot contain %q", literal[i])
			return
		}
	}
}

// headers checks the header fields. The ones that the generator sets itself cannot be set.
func (c *checker) headers(keyPath string, s *scene, r *Request) {
	visited := map[string]bool{}
	for _, name := range sortedNames(r.Headers) {
		here, lower := step(keyPath, name), strings.ToLower(name)
		switch {
		case lower == "content-length" || lower == "transfer-encoding":
			c.Wrong(here, "remove this header field",
				"header field %s cannot be set: it follows from the "+
					"body", name)
		case visited[lower]:
			c.Wrong(here, "remove one of the two header fields",
				"header field %s is set twice", name)
		}
		visited[lower] = true
		if _, null := c.Node(here).(*ast.NullNode); null {
			c.Wrong(here, `write "" for an empty value`, "header field %s has no value", name)
		}
		if t := c.sends(here, s, string(r.Headers[name])); t != nil && holdsControl(t) {
			c.Wrong(here, "", "header field %s cannot contain line ends or other control "+
				"characters", name)
		}
	}
}

func holdsControl(t *template.Text) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return slices.ContainsFunc(t.Literals(), func(literal []byte) bool {
		return bytes.ContainsFunc(literal, control)
	})
}

func (c *checker) expect(keyPath string, s *scene, e *Expect) {
	specified := e.bodies()
	if len(specified) > 1 {
		c.Wrong(
			keyPath+"."+specified[1],
			"remove all but one of these checks",
			"expect has %s, but only one check of the body is possible",
			strings.Join(specified, " and "),
		)
	}
	if e.Body != nil {
		c.wants(keyPath+".body", s, *e.Body)
	}
}

// bodies returns the keys of the checks of the body.
func (e Expect) bodies() []string {
	e.Status = 0
	return present(e)
}

// present returns the keys of a struct that have a value, without those of embedded structs.
func present(value any) (keys []string) {
	for f, v := range reflect.ValueOf(value).Fields() {
		if !f.Anonymous && !v.IsZero() {
			keys = append(keys, f.Tag.Get("yaml"))
		}
	}
	return keys
}

// place checks that a place is unambiguous and valid.
func (c *checker) place(keyPath string, p Place) bool {
	specified := present(p)
	if len(specified) != 1 && !(len(specified) == 2 && p.Header != "" && p.Regex != "") {
		c.Wrong(keyPath, "set exactly one of json, header, regex, and body: "+
			"true", "the check or "+
			"extract has %d sources of a value",
			len(specified))
		return false
	}
	if _, err := p.Finder(); err != nil {
		c.Wrong(keyPath+"."+specified[0], "", "%v", err)
		return false
	}
	return true
}

// check checks a check of a response.
func (c *checker) check(keyPath string, s *scene, k *Check) {
	specified := present(*k)
	if len(specified) != 1 {
		c.Wrong(
			keyPath,
			"set exactly one of is, contains, matches and exists",
			"the check has %d conditions",
			len(specified),
		)
		return
	}
	if !c.place(keyPath, k.Place) {
		return
	}
	keyPath += "." + specified[0]
	if _, err := k.Make(s.names); err != nil {
		c.misread(keyPath, err, false)
		return
	}
	for _, want := range []*Text{k.Is, k.Contains} {
		if want != nil {
			c.wants(keyPath, s, string(*want))
		}
	}
}
