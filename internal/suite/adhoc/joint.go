package adhoc

import (
	"fmt"
	"strings"

	"prony.example/internal/base/units"
	"prony.example/load/template"
)

// quoted is an answer, or a field of one, which may quote what the lab gave for it.
type quoted struct {
	in                 string
	host, port, source string // empty: not known
}

// value is what the lab gave of that kind.
func (q *quoted) value(kind string) string {
	switch kind {
	case template.LabHost:
		return q.host
	case template.LabPort:
		return q.port
	}
	return q.source
}

// labKinds are looked for in this order: a host may end in the port.
var labKinds = []string{template.LabHost, template.LabSource, template.LabPort}

// given counts what the lab gave by where it stands in an answer.
type given map[string]int

// joint is the one text, as package text reads it, that all of them are, when each is asked where
// it was: byte for byte, but for what the lab gave each, where all quote it at the same place.
// False: there is none. So a number that is the port of one by chance is held as what it is.
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

// walk reads them side by side, as long as they are one: each next is a byte that all have, or a
// kind of what the lab gave. It moves the places, and reports whether it came to all ends.
func walk(pieces []quoted, positions []int, next func(kind string, b byte)) bool {
	last := byte(0)
	for {
		if kind := quotes(pieces, positions); kind != "" &&
			last != '{' { // which would make it a literal
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

// quotes is the kind of what the lab gave that stands at these places in all of them.
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

// stands reports whether a value is a word of its own at a place, and no part of a number or a
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

// escape reports whether a colon of a URL ends it that stands in another URL.
func escape(in string) bool { return strings.HasSuffix(strings.ToLower(in), "%3a") }

// String says what is left out of a comparison.
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
