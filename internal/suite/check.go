package suite

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"prony/internal/config"
)

// checker collects what is wrong, so that a file with three mistakes is mended in one go.
type checker struct {
	src  *config.Document
	errs []error
}

// found records a problem about what stands at the path.
func (c *checker) found(at, hint, format string, args ...any) {
	c.errs = append(c.errs, c.src.Problem(at, fmt.Sprintf(format, args...), hint))
}

// check says what is wrong with the suite, one error per problem, in the order of the file's keys:
// first each value by its row, then how values fit together.
func (s *Suite) check(src *config.Document) error {
	c := &checker{src: src}
	walk(reflect.ValueOf(s).Elem(), "", "", c.value)
	if s.Warmup.Min > s.Warmup.Max {
		c.found("warmup.min", "", "warmup.min %v is above warmup.max %v",
			s.Warmup.Min, s.Warmup.Max)
	}
	for i, pattern := range s.Targets {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			c.found(fmt.Sprintf("targets[%d]", i), "", "target pattern %q is malformed", pattern)
		}
	}
	c.unique("scenarios", len(s.Scenarios), func(i int) string { return s.Scenarios[i].Name })
	for i := range s.Scenarios {
		c.scenario(fmt.Sprintf("scenarios[%d]", i), &s.Scenarios[i])
	}
	c.unique("loads", len(s.Loads), func(i int) string { return s.Loads[i].Name })
	for i := range s.Loads {
		c.load(fmt.Sprintf("loads[%d]", i), &s.Loads[i], s.Loads[:i])
	}
	return errors.Join(c.errs...)
}

// value checks one value by its row. A key that the file leaves out and that needs no value is
// fine; one that it gives as zero is checked like any other.
func (c *checker) value(row *parameter, v reflect.Value, at string) {
	name, given := last(at), c.src.Node(at) != nil
	switch {
	case v.IsZero() && row.required && !given:
		c.found(at, "", "%s is missing", name)
		return
	case v.IsZero() && !row.required && !given && (row.def == "" || row.when != ""):
		return
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	if len(row.choices) > 0 && !slices.Contains(row.choices, v.String()) {
		hint := ""
		if near := config.Nearest(v.String(), row.choices); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		c.found(at, hint, "%s %q is none of %s", name, v.String(), strings.Join(row.choices, ", "))
	}
	if row.form != "" && !regexp.MustCompile(row.form).MatchString(v.String()) {
		c.found(at, "", "%s %q is not of the form of %q", name, v.String(), row.such)
	}
	c.bounds(row, v, at)
}

func (c *checker) bounds(row *parameter, v reflect.Value, at string) {
	if row.min == 0 && row.max == 0 {
		return
	}
	n, text := number(v)
	if n >= row.min && n <= row.max { // false for not-a-number too
		return
	}
	if v.Kind() == reflect.Slice {
		c.found(at, "", "%s has %s items, outside %s", last(at), text, row.bounds(v.Type()))
		return
	}
	c.found(at, "", "%s %s is outside %s", last(at), text, row.bounds(v.Type()))
}

// number is a value as the rows bound it, and as it is printed: of a list its length, of keys the
// last one.
func number(v reflect.Value) (float64, string) {
	if k, ok := v.Interface().(Keys); ok {
		return float64(max(k[0], k[1])), fmt.Sprint(k)
	}
	text := fmt.Sprint(v.Interface())
	switch v.Kind() {
	case reflect.Slice:
		return float64(v.Len()), fmt.Sprint(v.Len())
	case reflect.Float64:
		return v.Float(), text
	case reflect.Uint64:
		return float64(v.Uint()), text
	}
	return float64(v.Int()), text
}

// bounds prints the row's range in the units of the type.
func (p *parameter) bounds(t reflect.Type) string {
	show := func(n float64) string {
		switch t {
		case reflect.TypeFor[Duration]():
			return Duration(n).String()
		case reflect.TypeFor[Size]():
			return Size(n).String()
		}
		if n == float64(int64(n)) {
			return fmt.Sprint(int64(n))
		}
		return fmt.Sprint(n)
	}
	return show(p.min) + " to " + show(p.max)
}

func (c *checker) unique(list string, n int, name func(int) string) {
	seen := map[string]bool{}
	for i := range n {
		if seen[name(i)] {
			c.found(fmt.Sprintf("%s[%d].name", list, i), "",
				"%s holds %q already; names are unique", list, name(i))
		}
		seen[name(i)] = true
	}
}

func (c *checker) scenario(at string, sc *Scenario) {
	given := sc.Keys != Keys{}
	if sc.Keys[1] < sc.Keys[0] {
		c.found(at+".keys", "", "keys from %d to %d are none", sc.Keys[0], sc.Keys[1])
	}
	used := false
	for i := range sc.Requests {
		if c.request(fmt.Sprintf("%s.requests[%d]", at, i), &sc.Requests[i], given) {
			used = true
		}
	}
	if given && !used {
		c.found(at+".keys", "take them out, or put {key} into a path",
			"keys are given and not used")
	}
}

// braces finds what looks like a placeholder, and braces that are none.
var braces = regexp.MustCompile(`\{[^{}]*\}|[{}]`)

// request checks the placeholders of a request and what it expects, and says whether its path uses
// a key.
func (c *checker) request(at string, r *Request, keys bool) (used bool) {
	for _, found := range braces.FindAllString(r.Request, -1) {
		switch {
		case found == "{mode}":
		case found != "{key}":
			hint := "write %7B and %7D for braces that are meant"
			if near := config.Nearest(found, []string{"{key}", "{mode}"}); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.found(at+".request", hint, "%s in a path is neither {key} nor {mode}", found)
		default:
			used = true
		}
	}
	if used && !keys {
		c.found(at+".request", "give the scenario keys, such as [1, 50000]",
			"{key} stands for nothing: the scenario has no keys")
	}
	for _, p := range []string{"{key}", "{mode}"} {
		if strings.Contains(r.Body, p) {
			c.found(at+".body", "", "%s stands for nothing in a body, whose length is fixed", p)
		}
	}
	if r.Body == "" && r.Type != "" {
		c.found(at+".type", "", "type is the body's, and there is no body")
	}
	c.expect(at+".expect", &r.Expect, used)
	return used
}

func (c *checker) expect(at string, e *Expect, keys bool) {
	var given []string
	for _, g := range []struct {
		name string
		here bool
	}{{"body", e.Body != nil}, {"size", e.Size != nil}, {"lorem", e.Lorem != nil}} {
		if g.here {
			given = append(given, g.name)
		}
	}
	if len(given) > 1 {
		c.found(at+"."+given[1], "keep one", "expect has %s, which are checks of the same body",
			strings.Join(given, " and "))
	}
	if e.Body != nil && strings.Contains(*e.Body, "{key}") && !keys {
		c.found(at+".body", "", "{key} stands for nothing: the request's path has none")
	}
	if e.Body != nil && strings.Contains(*e.Body, "{mode}") {
		c.found(at+".body", "", "{mode} stands for nothing in an answer")
	}
}

// load checks one load against the earlier ones.
func (c *checker) load(at string, l *Load, earlier []Load) {
	switch {
	case l.Model == Closed && l.Rate != Rate{}:
		c.found(at+".rate", "make it open, or take the rate out",
			"closed load %q has a rate; its rate is whatever comes of its connections", l.Name)
	case l.Model == Closed && l.Arrivals != "":
		c.found(at+".arrivals", "make it open, or take them out",
			"closed load %q has arrivals; it sends when it was answered", l.Name)
	case l.Model == Open && l.Rate == Rate{}:
		c.found(at, `such as "rate: 20000/s" or "rate: 50% of peak"`,
			"open load %q has no rate", l.Name)
	case l.Rate.Of != "":
		c.share(at+".rate", l, earlier)
	}
}

func (c *checker) share(at string, l *Load, earlier []Load) {
	var closed []string
	for _, e := range earlier {
		switch {
		case e.Name == l.Rate.Of && e.Model != Open:
			return // closed, or of no model, which was found already
		case e.Name == l.Rate.Of:
			c.found(at, "", "rate is a share of %q, which is not closed: what it delivers was "+
				"asked for", l.Rate.Of)
			return
		case e.Model == Closed:
			closed = append(closed, e.Name)
		}
	}
	hint := "put a closed load before it"
	if near := config.Nearest(l.Rate.Of, closed); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if len(closed) > 0 {
		hint = "earlier closed loads are " + strings.Join(closed, ", ")
	}
	c.found(at, hint, "rate is a share of %q, which is no earlier load", l.Rate.Of)
}
