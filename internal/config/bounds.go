package config

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of what a file may be, beside its size. What people write goes ten deep and has some
// thousand values. The YAML library recurses, and copies what aliases repeat: 441 bytes became more
// than 3 GB.
const (
	deepest  = 100     // brackets within each other
	expanded = 100_000 // values, those counted again that aliases repeat
)

// plain takes a byte order mark away, and refuses what would take the YAML library all memory.
func plain(file string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	wrong := func(at int, format string, args ...any) ([]byte, error) {
		return nil, &Error{File: file, Line: 1 + bytes.Count(data[:at], []byte("\n")),
			Problem: fmt.Sprintf(format, args...), Hint: "is it the file that you meant?"}
	}
	depth := 0
	for i, c := range data {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '\n':
			if bytes.HasPrefix(data[i+1:], bytes.Repeat([]byte(" "), 4*deepest)) {
				return wrong(i+1, "a line that is set in by %d blanks", 4*deepest)
			}
		}
		if depth > deepest {
			return wrong(i, "more than %d brackets within each other", deepest)
		}
	}
	if !bytes.ContainsRune(data, '*') {
		return data, nil
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, placed(file, data, err)
	}
	all := 0
	for _, doc := range tree.Docs {
		all += values(doc.Body, map[string]int{})
	}
	if all > expanded {
		return wrong(0, "its aliases make more than %d values of it", expanded)
	}
	return data, nil
}

// values counts those below a node, with those of what its aliases stand for; anchors has what came
// before. Beyond the bound it counts no further.
func values(n ast.Node, anchors map[string]int) int {
	c := &counter{anchors: anchors}
	if n != nil {
		ast.Walk(c, n)
	}
	return min(c.n, 2*expanded)
}

type counter struct {
	anchors map[string]int
	n       int
}

// Visit implements ast.Visitor.
func (c *counter) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode:
		size := values(n.Value, c.anchors)
		c.anchors[n.Name.GetToken().Value] = size
		c.n += size
		return nil
	case *ast.AliasNode:
		c.n += c.anchors[n.Value.GetToken().Value]
		return nil
	}
	c.n++
	return c
}
