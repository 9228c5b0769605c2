package adhoc

import (
	"fmt"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/load/template"
)

// quoted is a response, or a field of one, with the lab's values that it may quote.
type quoted struct {
	in                 string
	host, port, source string // empty: unknown
}

// value returns the lab's value of a kind.
func (q *quoted) value(kind string) string {
	switch kind {
	case template.LabHost:
		return q.host
	case template.LabPort:
		return q.port
	}
	return q.source
}

// labKinds are the kinds in the order of the search: a host may end in the port.
var labKinds = []string{template.LabHost, template.LabSource, template.LabPort}

// given counts the lab's values in a response by kind.
type given map[string]int

// joint returns the template that all pieces match: they are equal byte for byte, apart from values
// of the lab that all of them quote at the same position. It returns false if there is none. So a
// number that equals one service's port by chance is compared as it is.
func joint(pieces []quoted, positions given) (string, bool) {
	var out, literal strings.Builder
	single := walk(pieces, make([]int, len(pieces)), func(kind string, b byte) {
		if kind == "" {
			literal.WriteByte(b)
			return
		}
		fmt.Fprintf(&out, "%s{lab %s}", template.Escape(literal.String()), kind)
		literal.Reset()
		positions[kind]++
	})
	return out.String() + template.Escape(literal.String()), single
}

// walk reads the pieces in parallel as long as they match, and calls next with each byte that all
// have, or with the kind of a lab's value. It advances positions, and reports whether it reached
// the end of all pieces.
func walk(pieces []quoted, positions []int, next func(kind string, b byte)) bool {
	last := byte(0)
	for {
		if kind := quotes(pieces, positions); kind != "" &&
			last != '{' { // it would escape the placeholder's brace
			next(kind, 0)
			last = 0
			for i := range pieces {
				positions[i] += len(pieces[i].value(kind))
			}
			continue
		}
		ended := 0
		for i := range pieces {
			if positions[i] == len(pieces[i].in) {
				ended++
			}
		}
		if ended > 0 {
			return ended == len(pieces)
		}
		last = pieces[0].in[positions[0]]
		for i := range pieces {
			if pieces[i].in[positions[i]] != last {
				return false
			}
		}
		for i := range positions {
			positions[i]++
		}
		next("", last)
	}
}

// quotes returns the kind of the lab's value at the given positions of all pieces, or "".
func quotes(pieces []quoted, positions []int) string {
	for _, kind := range labKinds {
		all := true
		for i := 0; all && i < len(pieces); i++ {
			all = stands(pieces[i].in, positions[i], pieces[i].value(kind))
		}
		if all {
			return kind
		}
	}
	return ""
}

// stands reports whether a value is a separate word at a position, and not part of a number or
// name.
func stands(in string, pos int, value string) bool {
	if value == "" || !strings.HasPrefix(in[pos:], value) {
		return false
	}
	if pos > 0 && (isWord(in[pos-1]) && !escape(in[:pos]) || in[pos-1] == '.') {
		return false
	}
	end := pos + len(value)
	return end == len(in) || !isWord(in[end]) &&
		(in[end] != '.' || end+1 == len(in) || !isWord(in[end+1]))
}

func isWord(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || b == '_'
}

// escape reports whether a text ends in an escaped colon, as of a URL inside another URL.
func escape(in string) bool { return strings.HasSuffix(strings.ToLower(in), "%3a") }

// String describes what a comparison leaves out.
func (g given) String() string {
	var out []string
	for _, kind := range labKinds {
		if n := g[kind]; n > 0 {
			text := map[string]string{template.LabHost: "the address in the request",
				template.LabPort:   "its port",
				template.LabSource: "the source port of the request"}[kind]
			out = append(out, fmt.Sprintf("%s (%s)", text, units.Plural(n, "place")))
		}
	}
	return strings.Join(out, ", ")
}
