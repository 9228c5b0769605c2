package suite

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony/internal/config"
)

// newSource is a suite file with the places of its values. A suite is one YAML document without
// tags.
func newSource(file string, data []byte) (*config.Document, error) {
	d, err := config.Parse(file, data)
	if err != nil {
		if withLine := config.Decode(file, data, &Suite{}); withLine != nil {
			err = withLine
		}
		return nil, err
	}
	bodies := d.Bodies()
	if len(bodies) == 0 || bodies[0] == nil {
		return nil, &config.Error{File: file, Problem: "it is empty"}
	}
	if len(bodies) > 1 {
		return nil, &config.Error{File: file, Problem: "it holds several YAML documents",
			Hint: "a suite is one: take out the lines ---"}
	}
	var tags tagFinder
	ast.Walk(&tags, bodies[0])
	if len(tags) > 0 {
		return nil, &config.Error{File: file, Line: tags[0].Start.Position.Line,
			Problem: fmt.Sprintf("a suite has no YAML tags such as %s", tags[0].Start.Value),
			Hint:    "quote the value if the exclamation mark is meant"}
	}
	return d, nil
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

// last is the last named step of a path: rate of loads[1].rate, loads of loads[1].
func last(path string) string {
	path = path[strings.LastIndex(path, ".")+1:]
	name, _, _ := strings.Cut(path, "[")
	return name
}
