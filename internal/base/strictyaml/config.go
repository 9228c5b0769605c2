// Package strictyaml decodes the YAML files that people write: suites, manifests, golden answers.
// Unknown keys are errors. Every error has file, line, the line's text and, if a known key is
// similar, a suggestion.
package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error describes a mistake in a file, for its author.
type Error struct {
	File    string
	Line    int // from 1; 0 if unknown
	Problem string
	Source  string // the line's text, trimmed
	Hint    string
}

// Error returns "file:line: problem", with source and hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	fmt.Fprintf(&b, ": %s", e.Problem)
	if e.Source != "" {
		fmt.Fprintf(&b, " in %q", e.Source)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Decode reads data, the content of the named file, into the struct that v points to.
func Decode(file string, data []byte, v any) error {
	data, err := plain(file, data)
	if err != nil {
		return err
	}
	return decoded(file, data, guarded(func() error {
		tree, err := parser.ParseBytes(data, 0)
		if err != nil {
			return err
		}
		for _, doc := range tree.Docs {
			if err := checked(file, data, doc.Body, v); err != nil {
				return err
			}
		}
		if len(tree.Docs) == 0 {
			return nil
		}
		return nodeToValue(tree.Docs[0].Body, v)
	}))
}

// nodeToValue decodes a node that was checked; nil has no values.
func nodeToValue(n ast.Node, v any) error {
	if n == nil {
		return nil
	}
	return yaml.NodeToValue(n, v, yaml.Strict())
}

// decoded translates an error of the YAML library for the file's author.
func decoded(file string, data []byte, err error) error {
	if _, is := errors.AsType[*Error](err); err == nil || is {
		return err
	}
	out := placed(file, data, err)
	if mismatch, is := errors.AsType[*yaml.TypeError](err); is {
		out.Problem = fmt.Sprintf("%s is required, but this is %s", noun(mismatch.DstType),
			noun(mismatch.SrcType))
	}
	return out
}

// noun returns what a file has for a type of the program.
func noun(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Interface:
		return "a value"
	}
	return "a whole number"
}

// placed adds file and line to an error of the YAML library.
func placed(file string, data []byte, err error) *Error {
	out := &Error{File: file, Problem: err.Error()}
	if place, is := errors.AsType[yaml.Error](err); is {
		out.Problem = place.GetMessage()
		if strings.HasPrefix(out.Problem, "',' or '}' must be") {
			out.Hint = "put quotes around a value that contains braces or a comma, such as '{port}'"
		}
		if t := place.GetToken(); t != nil && t.Position != nil {
			out.Line = t.Position.Line
			out.Source = line(data, out.Line)
		}
	}
	return out
}

// guarded turns a panic into an error: the library panics at a tag in the place of a list, and the
// file's author should not get a stack trace.
func guarded(decode func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("invalid YAML: %v; use plain YAML without tags", p)
		}
	}()
	return decode()
}

func line(data []byte, n int) string {
	lines := strings.Split(string(data), "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(lines[n-1])
}

// Keys lists the YAML keys of v's type and of all structs below it, in the order of declaration,
// without repetitions.
func Keys(v any) (out []string) {
	keys(reflect.TypeOf(v), "", map[reflect.Type]bool{}, func(_, name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	return out
}

// homes lists the keys whose structs have the key, as words of a hint.
func homes(t reflect.Type, key string) (out []string) {
	keys(t, "", map[reflect.Type]bool{}, func(subject, name string) {
		if home := cmp.Or(subject, "the file itself"); name == key && !slices.Contains(out, home) {
			out = append(out, home)
		}
	})
	return out
}

// keys visits the keys of a type and of all structs below it, each struct once. outer is the key
// that has the type as its value.
func keys(t reflect.Type, outer string, visited map[reflect.Type]bool,
	visit func(outer, name string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		keys(t.Elem(), outer, visited, visit)
		return
	}
	if t.Kind() != reflect.Struct || visited[t] {
		return
	}
	visited[t] = true
	for f := range t.Fields() {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Tag.Get("yaml"), "-"), ",")
		if name != "" {
			visit(outer, name)
		}
		keys(f.Type, cmp.Or(name, outer), visited, visit)
	}
}

// Meant returns a question with the nearest known word, or otherwise if no known word is near.
func Meant(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// Nearest returns the known word within an edit distance of a third of the word's length, at least
// two (a transposition), or "".
func Nearest(word string, known []string) string {
	best, limit := "", min(max(2, len(word)/3)+1, len(word))
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < limit {
			best, limit = k, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: insertions, deletions and substitutions (Soviet
// Physics Doklady, 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// Bounds of a file's structure. Files that people write have ten levels and some thousand values.
// The YAML library recurses, and copies the values of aliases: 441 bytes became more than 3 GB.
const (
	deepest  = 100     // brackets within each other
	expanded = 100_000 // values that aliases repeat
)

// plain removes a byte order mark, and rejects files that would exhaust the YAML library's memory.
func plain(file string, data []byte) ([]byte, error) {
	data, err := shallow(file, data)
	if err != nil || !bytes.ContainsRune(data, '*') {
		return data, err
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, placed(file, data, err)
	}
	return data, bounded(file, data, tree)
}

// shallow takes a byte order mark away, and refuses what goes too deep.
func shallow(file string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	depth, most := 0, 0
	for i, c := range data {
		switch c {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			if bytes.HasPrefix(data[i+1:], bytes.Repeat([]byte(" "), 4*deepest)) {
				return nil, mistaken(file, 1+bytes.Count(data[:i+1], []byte("\n")),
					"a line is indented by %d blanks", 4*deepest)
			}
		}
	}
	if most <= deepest {
		return data, nil
	}
	depth = 0 // of brackets that are not in a text
	for _, t := range lexer.Tokenize(string(data)) {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth = max(depth-1, 0)
		}
		if depth > deepest {
			return nil, mistaken(file, t.Position.Line,
				"brackets are nested more than %d levels deep", deepest)
		}
	}
	return data, nil
}

// mistaken is the error of a file that nobody has written by hand.
func mistaken(file string, line int, format string, args ...any) error {
	return &Error{File: file, Line: line, Problem: fmt.Sprintf(format, args...),
		Hint: "check that this is the right file"}
}

// bounded refuses a tree whose aliases repeat too much, or stand within what they repeat.
func bounded(file string, data []byte, tree *ast.File) error {
	all := 0
	for _, doc := range tree.Docs {
		c := &counter{anchors: map[string]int{}}
		if doc.Body != nil {
			ast.Walk(c, doc.Body)
		}
		if c.inside != nil {
			number, name := c.inside.Position.Line, c.inside.Value
			return &Error{File: file, Line: number, Source: line(data, number),
				Problem: fmt.Sprintf("the alias *%s stands within its own anchor &%[1]s", name)}
		}
		all += c.repeated
	}
	if all > expanded {
		return mistaken(file, 1, "YAML aliases expand the file to more than %d values", expanded)
	}
	return nil
}

// counter counts the values below a node with those that its aliases stand for; anchors has what
// came before, or -1 for an anchor around the node. Beyond the bound it counts no further.
type counter struct {
	anchors     map[string]int
	n, repeated int          // repeated: those of aliases alone
	inside      *token.Token // of an alias that stands within its own anchor
}

// Visit implements ast.Visitor.
func (c *counter) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		inner, name := &counter{anchors: c.anchors}, n.Name.GetToken().Value
		c.anchors[name] = -1
		ast.Walk(inner, n.Value)
		c.anchors[name], c.inside = inner.n, cmp.Or(c.inside, inner.inside)
		c.add(inner.n, inner.repeated)
		return nil
	case *ast.AliasNode:
		size := c.anchors[n.Value.GetToken().Value]
		if size < 0 {
			c.inside, size = n.Value.GetToken(), 0
		}
		c.add(size, size)
		return nil
	}
	c.n++
	return c
}

func (c *counter) add(n, repeated int) {
	c.n, c.repeated = min(c.n+n, 2*expanded), min(c.repeated+repeated, 2*expanded)
}
