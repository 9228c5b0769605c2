package service

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"prony/internal/config"
)

// document is a YAML file that decodes, with the places of its nodes, so that a mistake which only
// shows later still names its line.
type document struct {
	file  string
	lines []string
	tree  *ast.File
	errs  []error
}

func newDocument(file string, data []byte) *document {
	d := &document{file: file, lines: strings.Split(string(data), "\n")}
	// Decoding has succeeded before this, so parsing does; without a tree the line stays unknown.
	d.tree, _ = parser.ParseBytes(data, 0)
	return d
}

// wrong notes a problem at a path such as "$.targets[1].mode", or at the nearest node above it.
func (d *document) wrong(path, problem, hint string) {
	e := &config.Error{File: d.file, Problem: problem, Hint: hint, Line: d.line(path)}
	if 1 <= e.Line && e.Line <= len(d.lines) {
		e.Source = strings.TrimSpace(d.lines[e.Line-1])
	}
	d.errs = append(d.errs, e)
}

func (d *document) line(path string) int {
	for d.tree != nil && path != "$" {
		if at, err := yaml.PathString(path); err == nil {
			if node, err := at.FilterFile(d.tree); err == nil && node != nil {
				return node.GetToken().Position.Line
			}
		}
		path = path[:max(1, strings.LastIndexAny(path, ".["))]
	}
	return 0
}
