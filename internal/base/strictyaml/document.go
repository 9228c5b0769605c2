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

// Document is a YAML file with its syntax tree. It reports a mistake in a decoded value at the
// value's line, even if the same text occurs elsewhere in the file. A nil Document is for values
// without a file.
//
// Paths are like loads[1].rate, with or without a leading "$."; "" and "$" are the whole document.
type Document struct {
	file string
	data []byte
	tree *ast.File
}

// Parse parses data, the content of the named file.
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

// Bodies returns the roots of the file's YAML documents; the root of an empty document is nil.
func (d *Document) Bodies() (out []ast.Node) {
	for _, doc := range d.tree.Docs {
		out = append(out, doc.Body)
	}
	return out
}

// Node returns the node at a path, or nil.
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

// Problem returns an error about the value at a path, or about its nearest parent in the file.
// Without a file it names the path instead of a line.
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

// begins returns the line where a node begins. A mapping's own token is its first colon or brace, a
// list's its first dash; both are on the line of the first item.
func begins(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// Names returns the keys of the mapping at a path, in the order of the file.
func (d *Document) Names(path string) (out []string) {
	for _, v := range d.entries(path) {
		out = append(out, v.Key.GetToken().Value)
	}
	return out
}

// entries returns the entries of the mapping at a path; none for other nodes.
func (d *Document) entries(path string) []*ast.MappingValueNode {
	switch n := d.Node(path).(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode: // a single entry, in older trees
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// Pick returns the document with the top-level keys for which keep is true. Problems keep their
// lines in the file.
func (d *Document) Pick(keep func(key string) bool) *Document {
	return d.of(slices.DeleteFunc(slices.Clone(d.entries("")), func(v *ast.MappingValueNode) bool {
		return !keep(v.Key.GetToken().Value)
	}))
}

// Over returns the document with the entries of second's mapping at a path added at the top level.
// They replace entries of the same name.
func (d *Document) Over(second *Document, path string) *Document {
	ownMappingValueNodes := second.entries(path)
	retained := d.Pick(func(key string) bool {
		return !slices.ContainsFunc(ownMappingValueNodes, func(v *ast.MappingValueNode) bool {
			return v.Key.GetToken().Value == key
		})
	})
	return d.of(append(retained.entries(""), ownMappingValueNodes...))
}

// With returns the document with the entries of a YAML text added; the node at the path from of the
// document replaces the node at the path to of the text. The text is a program's constant, so
// invalid YAML panics.
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

// of returns the document with other entries.
func (d *Document) of(entries []*ast.MappingValueNode) *Document {
	body := *d.Node("").(*ast.MappingNode)
	body.Values = entries
	doc := *d.tree.Docs[0]
	doc.Body = &body
	return &Document{d.file, d.data, &ast.File{Name: d.tree.Name,
		Docs: []*ast.DocumentNode{&doc}}}
}

// Decode decodes the document into the struct that v points to, as the function Decode does for a
// file.
func (d *Document) Decode(v any) error {
	return decoded(d.file, d.data, guarded(func() error {
		if err := checked(d.file, d.data, d.Node(""), v); err != nil {
			return err
		}
		return nodeToValue(d.Node(""), v)
	}))
}

// Check collects the problems of a file, so that its author can fix all of them at once.
type Check struct {
	*Document
	problems []error
}

// Read decodes a file as Decode does, and returns a Check for it.
func Read(file string, data []byte, v any) (*Check, error) {
	if err := Decode(file, data, v); err != nil {
		return nil, err
	}
	d, err := Parse(file, data)
	return &Check{Document: d}, err
}

// Wrong adds a problem with the value at a path, formatted by fmt.Sprintf.
func (c *Check) Wrong(location, hint, format string, args ...any) {
	c.problems = append(c.problems, c.Problem(location, fmt.Sprintf(format, args...), hint))
}

// Err joins the collected problems, each with its line; nil if none.
func (c *Check) Err() error { return errors.Join(c.problems...) }

// Join joins the problems in errs, each once, in the order of their lines; nil if none.
func Join(errs ...error) error {
	var all []error
	var add func(errs []error)
	add = func(errs []error) {
		for _, err := range errs {
			if several, is := err.(interface{ Unwrap() []error }); is {
				add(several.Unwrap())
			} else if err != nil && !slices.ContainsFunc(all, func(earlier error) bool {
				return earlier.Error() == err.Error()
			}) {
				all = append(all, err)
			}
		}
	}
	add(errs)
	lineOf := func(err error) int {
		if e, is := errors.AsType[*Error](err); is {
			return e.Line
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b error) int { return lineOf(a) - lineOf(b) })
	return errors.Join(all...)
}

func bare(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".") }

// parent removes the last step of a path: loads[1].rate, loads[1], loads, "".
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
