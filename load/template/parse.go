package template

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/lazyregexp"
	"prony.example/internal/base/strictyaml"
	"prony.example/load/pace"
)

// hexMax bounds {hex N}: longer values are bodies, for which a file is better.
const hexMax = 65536

// words are the built-in placeholders, each with an example and a function that makes it from its
// arguments. The error of make says what is wrong with the arguments.
var words = []word{
	{"key", "{key}", func(string) (part, error) { return part{kind: keyKind}, nil }},
	{"seq", "{seq}", func(string) (part, error) { return part{kind: seqKind}, nil }},
	{"random", "{random 1..100}", newRandom},
	{"hex", "{hex 16}", newHex},
	{"uuid", "{uuid}", func(string) (part, error) { return part{kind: uuidKind}, nil }},
	{"pick", "{pick red|green}", newPick},
	{"lab", "{lab host}", newLab},
}

type word struct {
	name, example string
	make          func(args string) (part, error)
}

func (w word) bare() bool { return !strings.Contains(w.example, " ") }

// placeholderRe matches the inside of a placeholder and its closing brace.
var placeholderRe = lazyregexp.New(`^([a-z][A-Za-z0-9_]*)( [^{}\r\n]*)?}`)

// Error describes an invalid placeholder for its author.
type Error struct {
	Text    string // the placeholder as written
	Problem string
	Hint    string
	Literal string // how to write the text if no placeholder is meant; "" if one is
}

// Error returns "parse text: problem; hint".
func (e *Error) Error() string {
	s := "parse " + e.Text + ": " + e.Problem + "; " + e.Hint
	if e.Literal != "" {
		s += " The text itself is " + e.Literal
	}
	return s
}

// Parse parses a text. vars are the names that {name} can refer to besides the built-in ones: a
// lower-case letter, then letters, digits and underscores. An error about a placeholder is an
// *Error.
func Parse(s string, vars []string) (*Text, error) {
	for _, name := range vars {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	t := &Text{}
	var literal []byte
	for pos := 0; pos < len(s); {
		if n, name := environment(s[pos:]); name != "" {
			t.add(part{before: literal, kind: envKind, name: name})
			literal = nil
			pos += n
			continue
		} else if n > 0 {
			literal = append(literal, s[pos+1:pos+n]...)
			pos += n
			continue
		}
		if s[pos] != '{' {
			literal = append(literal, s[pos])
			pos++
			continue
		}
		if m := escaped(s[pos:]); m != "" {
			literal = append(literal, m[1:len(m)-1]...)
			pos += len(m)
			continue
		}
		m := placeholderRe.FindStringSubmatch(s[pos+1:])
		if m == nil {
			literal = append(literal, '{')
			pos++
			continue
		}
		p, err := newPart(m[1], m[2], vars)
		if err != nil {
			return nil, err
		}
		p.before, p.salt = literal, salt(len(t.parts), s[:pos])
		t.add(p)
		literal = nil
		pos += 1 + len(m[0])
	}
	t.tail = literal
	return t, nil
}

func checkName(name string) error {
	if m := placeholderRe.FindStringSubmatch(name + "}"); m == nil || m[1] != name {
		return fmt.Errorf("name variable %q: it must be a lower-case letter, then letters, digits "+
			"and underscores, such as ownerId", name)
	}
	if slices.Contains(names(nil), name) {
		return fmt.Errorf("name variable %q: {%s} has a meaning of its own; choose another name",
			name, name)
	}
	return nil
}

func (t *Text) add(p part) {
	t.parts = append(t.parts, p)
	if p.kind == varKind && !slices.Contains(t.vars, p.n) {
		t.vars = append(t.vars, p.n)
		slices.Sort(t.vars)
	}
}

// escaped returns the {{…}} that s begins with, or "".
func escaped(s string) string {
	if !strings.HasPrefix(s, "{{") {
		return ""
	}
	m := placeholderRe.FindString(s[2:])
	if m == "" || !strings.HasPrefix(s[2+len(m):], "}") {
		return ""
	}
	return s[:2+len(m)+1]
}

// Escape returns a template that renders as s, even if s contains text that looks like a
// placeholder.
func Escape(s string) string {
	var b strings.Builder
	for pos := 0; pos < len(s); {
		if n, _ := environment(s[pos:]); n > 0 {
			b.WriteString("$" + s[pos:pos+n])
			pos += n
			continue
		}
		if s[pos] == '{' {
			if m := placeholderRe.FindString(s[pos+1:]); m != "" {
				b.WriteString("{{" + m + "}")
				pos += 1 + len(m)
				continue
			}
		}
		b.WriteByte(s[pos])
		pos++
	}
	return b.String()
}

// salt makes the draws of placeholders independent of each other, and of those of routes, keys and
// gaps.
func salt(nth int, before string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(before[strings.LastIndexByte(before, '\n')+1:]))
	return pace.Mix(h.Sum64(), uint64(nth))
}

func names(vars []string) []string {
	out := slices.Clone(vars)
	for _, w := range words {
		out = append(out, w.name)
	}
	return out
}

// newPart makes the placeholder with a name and arguments. Nonempty arguments begin with a space.
func newPart(name, args string, vars []string) (part, error) {
	e := &Error{Text: "{" + name + args + "}"}
	if i := slices.Index(vars, name); i >= 0 {
		if args != "" {
			e.Problem, e.Hint = "a variable takes no arguments", "write {"+name+"}"
			return part{}, e
		}
		return part{kind: varKind, n: i}, nil
	}
	i := slices.IndexFunc(words, func(w word) bool { return w.name == name })
	if i < 0 {
		return part{}, unknown(e, name, vars)
	}
	w := words[i]
	e.Hint = "write it as in " + w.example
	switch {
	case w.bare() && args != "":
		e.Problem = "it takes no arguments"
		return part{}, e
	case !w.bare() && args == "":
		e.Problem = "it wants arguments"
		return part{}, e
	}
	p, err := w.make(strings.TrimPrefix(args, " "))
	if err != nil {
		e.Problem = err.Error()
		return part{}, e
	}
	return p, nil
}

func unknown(e *Error, name string, vars []string) error {
	known := names(vars)
	e.Problem = fmt.Sprintf("there is no placeholder %q", name)
	e.Hint = "known are " + strings.Join(known, ", ") + "."
	if near := strictyaml.Nearest(name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean {%s}?", near)
	}
	e.Literal = "{" + e.Text + "}"
	return e
}

// newRandom parses LO..HI.
func newRandom(args string) (part, error) {
	first, last, ok := strings.Cut(args, "..")
	lo, err1 := strconv.ParseInt(first, 10, 64)
	hi, err2 := strconv.ParseInt(last, 10, 64)
	span := uint64(hi) - uint64(lo) + 1
	switch {
	case !ok || err1 != nil || err2 != nil:
		return part{}, errors.New("it wants the first and the last whole number of a range")
	case lo > hi:
		return part{}, fmt.Errorf("%d is above %d", lo, hi)
	case span == 0:
		return part{}, errors.New("a range of all numbers of 64 bits is one number too many")
	}
	return part{kind: randomKind, lo: lo, span: span}, nil
}

func newHex(args string) (part, error) {
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 || n > hexMax {
		return part{}, fmt.Errorf("it wants a number of digits from 1 to %d", hexMax)
	}
	return part{kind: hexKind, n: n}, nil
}

func newPick(args string) (part, error) {
	p := part{kind: pickKind}
	for o := range strings.SplitSeq(args, "|") {
		p.items = append(p.items, []byte(o))
	}
	if len(p.items) < 2 {
		return part{}, errors.New("it wants two alternatives or more, with | between them")
	}
	return p, nil
}
