package config

import (
	"errors"
	"fmt"
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
	for at := bare(path); e.Line == 0 && at != ""; at = parent(at) {
		if n := d.Node(at); n != nil {
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
func (c *Check) Wrong(at, hint, format string, args ...any) {
	c.problems = append(c.problems, c.Problem(at, fmt.Sprintf(format, args...), hint))
}

// Err joins what was noted, each with its line; nil: nothing.
func (c *Check) Err() error { return errors.Join(c.problems...) }

func bare(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, "$"), ".") }

// parent cuts the last step off a path: loads[1].rate, loads[1], loads, nothing.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
