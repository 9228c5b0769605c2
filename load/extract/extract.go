// Package extract extracts values from a response and checks them.
//
//	response ─► Finder: json, header, regex, body ─► value ─► Check: does it hold?
//	                                                     └──► Capture: a variable of the flow
//
// Finders and checks are created when a load begins; from then on they are read-only, and many
// threads use them. Finding and comparing a header, the body, or a value at a plain JSON path does
// not allocate, unless the value is a string with escapes. A regular expression that matches
// allocates its positions.
//
// Non-goals: decoding the body (compression, character sets); HTML and XML, for which regular
// expressions must do.
package extract

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Finder finds a value in a response. It is read-only and may be shared between threads.
type Finder struct {
	kind finderKind
	text string         // path, field name or pattern as written
	re   *regexp.Regexp // regex only
}

type finderKind uint8

const (
	ofJSON finderKind = iota
	ofHeader
	ofRegex
	ofBody
)

// patternMax bounds regular expressions, in bytes. RE2's time is linear in pattern and body, so no
// pattern can stall a load, but a long one still costs its length at each byte.
const patternMax = 4096

// JSON finds the value at a path in GJSON syntax, such as owner.pets.0.id
// (https://github.com/tidwall/gjson/blob/master/SYNTAX.md). A string is found without its quotes
// and escapes, everything else as it stands in the body. The body is not validated as JSON, because
// this would double the cost; the path @valid validates it and finds all of it.
func JSON(path string) (*Finder, error) {
	if path == "" {
		return nil, fmt.Errorf("find in JSON: the path is empty; use one such as owner.id, or " +
			"@this for the whole")
	}
	return &Finder{kind: ofJSON, text: path}, nil
}

// Header finds the trimmed value of a header field (RFC 9110, section 5.5). The case of the name
// does not matter. If several lines have the name, the first one counts.
func Header(name string) (*Finder, error) {
	if name == "" || strings.IndexFunc(name, func(r rune) bool { return !isToken(r) }) >= 0 {
		return nil, fmt.Errorf("find header: %q is not the name of a field; use one such as "+
			"content-type", name)
	}
	return &Finder{kind: ofHeader, text: name}, nil
}

// isToken reports whether a character may be in a field's name (RFC 9110, section 5.6.2).
func isToken(r rune) bool {
	return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) ||
		strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

// Regex finds the first match of a regular expression in the body: its first group, or the whole
// match if it has no group. The syntax is RE2's (https://github.com/google/re2/wiki/Syntax).
func Regex(pattern string) (*Finder, error) {
	re, err := compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("find by regular expression: %w", err)
	}
	return &Finder{kind: ofRegex, text: pattern, re: re}, nil
}

func compile(pattern string) (*regexp.Regexp, error) {
	if pattern == "" || len(pattern) > patternMax {
		return nil, fmt.Errorf("the pattern has %d bytes; 1 to %d are allowed", len(pattern),
			patternMax)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%w; the syntax is RE2's, without backreferences and lookaround",
			err)
	}
	return re, nil
}

// HeaderRegex finds the first match in the values of a header field, over all lines with that name
// in order. It selects one of several Set-Cookie lines, for example.
func HeaderRegex(name, pattern string) (*Finder, error) {
	f, err := Header(name)
	if err != nil {
		return nil, err
	}
	if f.re, err = compile(pattern); err != nil {
		return nil, fmt.Errorf("find in header %s by regular expression: %w", name, err)
	}
	return f, nil
}

// Body finds the complete body.
func Body() *Finder { return &Finder{kind: ofBody} }

// Find returns the value, which is a part of head or body if possible, and whether it exists. The
// caller must not change it. The head is the status line and the header lines, each with its CRLF.
func (f *Finder) Find(head, body []byte) ([]byte, bool) {
	switch f.kind {
	case ofJSON:
		return findJSON(body, f.text)
	case ofHeader:
		return findHeader(head, f.text, f.re)
	case ofRegex:
		return findRegex(body, f.re)
	}
	return body, true
}

// Coded returns a remark for a value that a body lacks because the service compressed the body;
// empty: it did not, or the value is not in the body.
func (f *Finder) Coded(head []byte) string {
	value, _ := findHeader(head, "content-encoding", nil)
	coding := string(value)
	if f.kind == ofHeader || coding == "" || strings.EqualFold(coding, "identity") {
		return ""
	}
	return fmt.Sprintf("; the body has Content-Encoding %s, which is not decoded: send "+
		"Accept-Encoding: identity, or configure the service", word(coding))
}

// String names the source: "json owner.id", "header location", "regex …" or "body".
func (f *Finder) String() string {
	switch f.kind {
	case ofJSON:
		return "json " + word(f.text)
	case ofHeader:
		if f.re != nil {
			return "header " + f.text + " regex " + word(f.re.String())
		}
		return "header " + f.text
	case ofRegex:
		return "regex " + word(f.text)
	}
	return "body"
}

// findJSON reads the body in place, because gjson.GetBytes would copy the value. Nothing writes to
// the body while the string made from it is in use.
func findJSON(body []byte, path string) ([]byte, bool) {
	r := gjson.Get(unsafe.String(unsafe.SliceData(body), len(body)), path)
	if !r.Exists() {
		return nil, false
	}
	s := r.Raw
	if r.Type == gjson.String {
		s = r.Str
	}
	return unsafe.Slice(unsafe.StringData(s), len(s)), true
}

func findHeader(head []byte, name string, re *regexp.Regexp) ([]byte, bool) {
	_, tail, _ := bytes.Cut(head, []byte("\n")) // skip the status line
	for len(tail) > 0 {
		var line []byte
		line, tail, _ = bytes.Cut(tail, []byte("\n"))
		if len(line) == 0 || line[0] == '\r' {
			return nil, false // the end of the head
		}
		if len(line) <= len(name) || line[len(name)] != ':' || !equalFold(line, name) {
			continue
		}
		value := bytes.Trim(line[len(name)+1:], " \t\r")
		if re == nil {
			return value, true
		}
		if results, ok := findRegex(value, re); ok {
			return results, true
		}
	}
	return nil, false
}

// equalFold reports whether the line begins with the name, which is ASCII; bytes.EqualFold would
// also take a Kelvin sign for a k.
func equalFold(line []byte, name string) bool {
	for i := range len(name) {
		if lower(line[i]) != lower(name[i]) {
			return false
		}
	}
	return true
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func findRegex(body []byte, re *regexp.Regexp) ([]byte, bool) {
	positions := re.FindSubmatchIndex(body)
	if positions == nil {
		return nil, false
	}
	from, to := positions[0], positions[1]
	if len(positions) > 2 {
		from, to = positions[2], positions[3]
	}
	if from < 0 {
		return nil, false // the group did not take part in the match
	}
	return body[from:to], true
}

// shownMax bounds the length at which a path, pattern or value is shown, in bytes.
const shownMax = 80

// word quotes a text unless it reads as one word.
func word(s string) string {
	cut := ""
	if len(s) > shownMax {
		s, cut = strings.ToValidUTF8(s[:shownMax], ""), "…"
	}
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == '"' }
	if s == "" || strings.ContainsFunc(s, odd) {
		return strconv.Quote(s) + cut
	}
	return s + cut
}
