package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"prony/internal/config"
	"prony/internal/pattern"
)

// newSource is a suite file, or a scenario's, with the places of its values. It is one YAML
// document without tags.
func newSource(file string, data []byte) (*config.Document, error) {
	d, err := config.Parse(file, data)
	if err != nil {
		return nil, err
	}
	bodies := d.Bodies()
	if len(bodies) == 0 || bodies[0] == nil {
		return nil, &config.Error{File: file, Problem: "it is empty"}
	}
	if len(bodies) > 1 {
		return nil, &config.Error{File: file, Problem: "it holds several YAML documents",
			Hint: "it can be one only: take out the lines ---"}
	}
	var tags tagFinder
	ast.Walk(&tags, bodies[0])
	if len(tags) > 0 {
		return nil, &config.Error{File: file, Line: tags[0].Start.Position.Line,
			Problem: fmt.Sprintf("there can be no YAML tags such as %s", tags[0].Start.Value),
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

// plainName are names that a path can hold.
var plainName = pattern.New(`^[A-Za-z0-9_-]+$`)

// step is the path of an entry of the mapping at a path, or of the mapping where no path can hold
// the entry's name.
func step(at, name string) string {
	if !plainName.MatchString(name) {
		return at
	}
	return at + "." + name
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
