package suite

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"prony/internal/config"
)

// source is a suite file with its syntax tree, so that a mistake in a value that was decoded long
// ago is still reported at its own line, be the same text anywhere else in the file or not.
type source struct {
	file string
	data []byte
	tree *ast.File
}

func newSource(file string, data []byte) (*source, error) {
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		if withLine := config.Decode(file, data, &Suite{}); withLine != nil {
			err = withLine
		}
		return nil, err
	}
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil {
		return nil, &config.Error{File: file, Problem: "it is empty"}
	}
	if len(tree.Docs) > 1 {
		return nil, &config.Error{File: file, Problem: "it holds several YAML documents",
			Hint: "a suite is one: take out the lines ---"}
	}
	var tags tagFinder
	ast.Walk(&tags, tree.Docs[0].Body)
	if len(tags) > 0 {
		return nil, &config.Error{File: file, Line: tags[0].Start.Position.Line,
			Problem: fmt.Sprintf("a suite has no YAML tags such as %s", tags[0].Start.Value),
			Hint:    "quote the value if the exclamation mark is meant"}
	}
	return &source{file, data, tree}, nil
}

// tagFinder collects tags, which would change a value's type behind the decoder's back; a tag
// before a missing list makes it panic.
type tagFinder []*ast.TagNode

// Visit sees every node of the tree.
func (f *tagFinder) Visit(n ast.Node) ast.Visitor {
	if t, ok := n.(*ast.TagNode); ok {
		*f = append(*f, t)
	}
	return f
}

// node returns what stands at a path such as loads[1].rate, or nil. A nil source has nothing.
func (s *source) node(path string) ast.Node {
	if s == nil {
		return nil
	}
	p, err := yaml.PathString(strings.TrimSuffix("$."+path, "."))
	if err != nil {
		return nil
	}
	n, err := p.FilterFile(s.tree)
	if err != nil {
		return nil
	}
	return n
}

// problem makes the error about the value at the path, or about the nearest thing around it that
// the file holds. Without a source it names the path instead of a line.
func (s *source) problem(path, problem, hint string) error {
	if s == nil {
		return &config.Error{File: path, Problem: problem, Hint: hint}
	}
	e := &config.Error{File: s.file, Problem: problem, Hint: hint}
	for at := path; e.Line == 0 && at != ""; at = parent(at) {
		if n := s.node(at); n != nil {
			e.Line = line(n)
		}
	}
	if lines := strings.Split(string(s.data), "\n"); e.Line > 0 && e.Line <= len(lines) {
		e.Source = strings.TrimSpace(lines[e.Line-1])
	}
	return e
}

// line is where a node begins. A mapping's own token is its first colon or brace, a list's its
// first dash, which stand on the line of the first item.
func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

// parent cuts the last step off a path: loads[1].rate, loads[1], loads, nothing.
func parent(path string) string {
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}

// last is the last named step of a path: rate of loads[1].rate, loads of loads[1].
func last(path string) string {
	path = path[strings.LastIndex(path, ".")+1:]
	name, _, _ := strings.Cut(path, "[")
	return name
}
