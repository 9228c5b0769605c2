package config

import (
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

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
func (d *Document) Over(other *Document, path string) *Document {
	own := other.entries(path)
	kept := d.Pick(func(key string) bool {
		return !slices.ContainsFunc(own, func(v *ast.MappingValueNode) bool {
			return v.Key.GetToken().Value == key
		})
	})
	return d.of(append(kept.entries(""), own...))
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
