package extract

import (
	"bytes"
	"fmt"
	"regexp"

	"prony.example/load/template"
)

// Capture stores a value for later steps of a flow.
type Capture struct {
	Var  string
	From *Finder
}

// Check is a condition for a good response. Is, Contains, Matches and Exists create it. It is
// read-only and may be shared between threads.
type Check struct {
	Of *Finder

	kind checkKind
	want *template.Text    // is, contains
	like *template.Pattern // is: a text with source ports
	re   *regexp.Regexp    // matches
	not  bool              // exists: the value must not exist
	text string            // the text or pattern as written
}

type checkKind uint8

const (
	is checkKind = iota
	contains
	matches
	exists
)

// Is checks that the value equals a text, byte for byte. For vars, here and below, see
// template.Parse.
func Is(finder *Finder, want string, vars []string) (Check, error) {
	return compared(finder, is, want, vars)
}

// Contains checks that the value contains a text, which must not be empty.
func Contains(finder *Finder, want string, vars []string) (Check, error) {
	if want == "" {
		return Check{}, fmt.Errorf("check that %s contains nothing: every value does; use exists",
			finder)
	}
	return compared(finder, contains, want, vars)
}

func compared(finder *Finder, kind checkKind, want string, vars []string) (Check, error) {
	c := Check{Of: finder, kind: kind, text: want}
	var err error
	if c.want, err = template.Parse(want, vars); err != nil {
		return Check{}, fmt.Errorf("check that %s: %w", &c, err)
	}
	if lab := c.want.Lab(); lab != "" && kind == contains {
		return Check{}, fmt.Errorf("check that %s: %s is of whole values; use is", &c, lab)
	}
	return c, nil
}

// Matches checks that a regular expression in RE2 syntax matches somewhere in the value.
func Matches(finder *Finder, pattern string) (Check, error) {
	c := Check{Of: finder, kind: matches, text: pattern}
	var err error
	if c.re, err = compile(pattern); err != nil {
		return Check{}, fmt.Errorf("check that %s: %w", &c, err)
	}
	return c, nil
}

// At returns the check for a service that gets requests with this Host at this port. It fills the
// placeholders for both.
func (c Check) At(host, port string) Check {
	if c.want != nil {
		c.want = c.want.At(host, port)
		c.like = c.want.Pattern()
	}
	return c
}

// Exists checks that the value exists, or that it does not. An empty value and a JSON null exist.
func Exists(finder *Finder, want bool) Check { return Check{Of: finder, kind: exists, not: !want} }

// onStack is the longest text with placeholders, in bytes, that is compared without an allocation.
const onStack = 512

// Holds reports whether the response passes the check. A missing value fails all checks except
// Exists with false.
func (c *Check) Holds(head, body []byte, v *template.Values) bool {
	got, ok := c.Of.Find(head, body)
	switch {
	case c.kind == exists:
		return ok != c.not
	case !ok:
		return false
	case c.kind == matches:
		return c.re.Match(got)
	case c.like != nil:
		return c.like.Is(got)
	}
	want, fixed := c.want.Fixed()
	if !fixed {
		var room [onStack]byte
		want = c.want.Append(room[:0], v)
	}
	if c.kind == contains {
		return bytes.Contains(got, want)
	}
	return bytes.Equal(got, want)
}

// String describes the check for the example of a failure, such as "json id is 7".
func (c *Check) String() string {
	switch {
	case c.not:
		return fmt.Sprintf("%s does not exist", c.Of)
	case c.kind == exists:
		return fmt.Sprintf("%s exists", c.Of)
	}
	verb := [...]string{is: "is", contains: "contains", matches: "matches"}[c.kind]
	return fmt.Sprintf("%s %s %s", c.Of, verb, word(c.text))
}
