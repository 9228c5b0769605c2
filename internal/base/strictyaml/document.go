package strictyaml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Document is a YAML file with its syntax tree, so that a mistake in a value that was decoded long
// ago is still reported at its own line, be the same text anywhere else in the file or not. A nil
// Document is for values that no file holds.
//
// Paths are as loads[1].rate, with or without a leading "$."; "" and "$" are the whole.
type Document struct {
	file string
	data []byte
	tree *ast.File
}

// Parse reads the syntax tree of data, the content of the named file.
func Parse(file string, data []byte) (*Document, error) {
	data, err := plain(file, data)
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, placed(file, data, err)
	}
	return &Document{file, data, tree}, nil
}

// Bodies are the roots of the file's YAML documents; that of an empty one is nil.
func (d *Document) Bodies() (out []ast.Node) {
	for _, doc := range d.tree.Docs {
		out = append(out, doc.Body)
	}
	return out
}

// Node returns what stands at a path, or nil.
func (d *Document) Node(path string) ast.Node {
	if d == nil {
		return nil
	}
	p, err := yaml.PathString(strings.TrimSuffix("$."+bare(path), "."))
	if err != nil {
		return nil
	}
	n, err := p.FilterFile(d.tree)
	if err != nil {
		return nil
	}
	return n
}

// Problem makes the error about the value at a path, or about the nearest thing around it that the
// file holds. Without a file it names the path instead of a line.
func (d *Document) Problem(path, problem, hint string) *Error {
	if d == nil {
		return &Error{File: path, Problem: problem, Hint: hint}
	}
	e := &Error{File: d.file, Problem: problem, Hint: hint}
	for location := bare(path); e.Line == 0 && location != ""; location = parent(location) {
		if n := d.Node(location); n != nil {
			e.Line = begins(n)
		}
	}
	e.Source = line(d.data, e.Line)
	return e
}

// begins is the line where a node begins. A mapping's own token is its first colon or brace, a
// list's its first dash, which stand on the line of the first item.
func begins(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// Names are the keys of the mapping at a path, in the order of the file.
func (d *Document) Names(path string) (out []string) {
	for _, v := range d.entries(path) {
		out = append(out, v.Key.GetToken().Value)
	}
	return out
}

// entries are those of the mapping at a path; none of anything else.
func (d *Document) entries(path string) []*ast.MappingValueNode {
	switch n := d.Node(path).(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode: // one alone, in older trees
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// Pick is the document with those keys at the top that keep wants. What is wrong with a value is
// still reported at its line of the file.
func (d *Document) Pick(keep func(key string) bool) *Document {
	return d.of(slices.DeleteFunc(slices.Clone(d.entries("")), func(v *ast.MappingValueNode) bool {
		return !keep(v.Key.GetToken().Value)
	}))
}

// Over is the document with the entries of other's mapping at a path at the top, in the place of
// any of their names that stand there.
func (d *Document) Over(second *Document, path string) *Document {
	ownMappingValueNodes := second.entries(path)
	retained := d.Pick(func(key string) bool {
		return !slices.ContainsFunc(ownMappingValueNodes, func(v *ast.MappingValueNode) bool {
			return v.Key.GetToken().Value == key
		})
	})
	return d.of(append(retained.entries(""), ownMappingValueNodes...))
}

// With is the document with what a YAML text says, too, in which what stands at the path from of
// the document stands at the path to. The text is a program's own: it panics at one that is none.
func (d *Document) With(text, to, from string) *Document {
	tree, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic(err)
	}
	more := &Document{tree: tree}
	if to != "" {
		p, err := yaml.PathString("$." + to)
		if err == nil {
			err = p.ReplaceWithNode(tree, d.Node(from))
		}
		if err != nil {
			panic(err)
		}
	}
	return d.Over(more, "")
}

// of is the document with other entries.
func (d *Document) of(entries []*ast.MappingValueNode) *Document {
	body := *d.Node("").(*ast.MappingNode)
	body.Values = entries
	doc := *d.tree.Docs[0]
	doc.Body = &body
	return &Document{d.file, d.data, &ast.File{Name: d.tree.Name,
		Docs: []*ast.DocumentNode{&doc}}}
}

// Decode decodes the document into the struct that v points to, as the function of that name does
// a file.
func (d *Document) Decode(v any) error {
	return decoded(d.file, d.data, v, guarded(func() error {
		return yaml.NodeToValue(d.Node(""), v, yaml.Strict())
	}))
}

// Check is a file under check. It collects what is wrong, so that a file with three mistakes is
// mended in one go.
type Check struct {
	*Document
	problems []error
}

// Read decodes a file as Decode does, and gives it to be checked.
func Read(file string, data []byte, v any) (*Check, error) {
	if err := Decode(file, data, v); err != nil {
		return nil, err
	}
	d, err := Parse(file, data)
	return &Check{Document: d}, err
}

// Wrong notes a problem about the value at a path, in fmt.Sprintf's words.
func (c *Check) Wrong(location, hint, format string, args ...any) {
	c.problems = append(c.problems, c.Problem(location, fmt.Sprintf(format, args...), hint))
}

// Err joins what was noted, each with its line; nil: nothing.
func (c *Check) Err() error { return errors.Join(c.problems...) }

func bare(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".") }

// parent cuts the last step off a path: loads[1].rate, loads[1], loads, nothing.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
