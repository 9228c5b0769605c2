package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Edit is a YAML file under change. What is left alone stays as it was written, with its comments.
type Edit struct{ doc *Document }

// Change gives the text of a file after a change. Anchors are not followed: whoever changes a text
// reads it again, for what stands at an alias may have changed, too.
func Change(file string, data []byte, change func(*Edit) error) (text string, err error) {
	doc, err := parse(file, data, parser.ParseComments)
	if err != nil {
		return "", err
	}
	err = guarded(func() error {
		if err := change(&Edit{doc}); err != nil {
			return err
		}
		text = strings.TrimRight(doc.tree.String(), "\n") + "\n"
		return nil
	})
	return text, err
}

// Has says whether something stands at a path.
func (e *Edit) Has(path string) bool { return e.doc.Node(path) != nil }

// Keep takes those items out of the list at a path that keep does not want.
func (e *Edit) Keep(path string, keep func(i int) bool) error {
	list, err := e.list(path)
	if err != nil {
		return err
	}
	heads := list.ValueHeadComments
	var values []ast.Node
	var comments []*ast.CommentGroupNode
	for i, v := range list.Values {
		if !keep(i) {
			continue
		}
		values = append(values, v)
		if len(heads) == len(list.Values) {
			comments = append(comments, heads[i])
		}
	}
	if len(list.Values) > 0 && !keep(0) && !list.IsFlowStyle {
		list.Comment = nil // what stands above the first item is the list's to the library
	}
	list.Values, list.ValueHeadComments = values, comments
	return nil
}

// Add appends an item to the list at a path.
func (e *Edit) Add(path string, value any) error {
	list, err := e.list(path)
	if err != nil {
		return err
	}
	item, err := entry("item", value)
	if err != nil {
		return err
	}
	if len(list.ValueHeadComments) == len(list.Values) {
		list.ValueHeadComments = append(list.ValueHeadComments, nil)
	}
	list.Values = append(list.Values, item.Value)
	return nil
}

func (e *Edit) list(path string) (*ast.SequenceNode, error) {
	list, ok := e.doc.Node(path).(*ast.SequenceNode)
	if !ok {
		return nil, e.doc.Problem(path, fmt.Sprintf("%s is no plain list", path), "")
	}
	return list, nil
}

// Set puts a value at a path, whose last step is a key. One that the mapping does not have comes
// before the first that follows it in order.
func (e *Edit) Set(path string, value any, order []string) error {
	key := path[strings.LastIndexByte(path, '.')+1:]
	within := strings.TrimSuffix(strings.TrimSuffix(path, key), ".")
	in, ok := e.doc.Node(within).(*ast.MappingNode)
	if !ok {
		return e.doc.Problem(within, fmt.Sprintf("%s stands in no plain mapping", path), "")
	}
	fresh, err := entry(key, value)
	if err != nil {
		return err
	}
	for _, own := range in.Values {
		if own.Key.GetToken().Value == key {
			return replace(own, fresh.Value)
		}
	}
	if len(in.Values) > 0 {
		fresh.AddColumn(column(in.Values[0]) - column(fresh))
	}
	follows := func(own *ast.MappingValueNode) bool {
		return slices.Index(order, own.Key.GetToken().Value) > slices.Index(order, key)
	}
	at := slices.IndexFunc(in.Values, follows)
	if at < 0 {
		at = len(in.Values)
	}
	in.Values = slices.Insert(in.Values, at, fresh)
	return nil
}

func column(v *ast.MappingValueNode) int { return v.Key.GetToken().Position.Column }

// replace gives an entry another value; what was said of the old one on its line stays.
func replace(own *ast.MappingValueNode, value ast.Node) error {
	said := own.Key.GetComment()
	if said == nil {
		said = own.Value.GetComment()
	}
	own.Value = value
	if said == nil || len(said.Comments) != 1 {
		return nil
	}
	if err := own.Key.SetComment(nil); err != nil {
		return err
	}
	return value.SetComment(said)
}

// entry is a key with its value, on one line.
func entry(key string, value any) (*ast.MappingValueNode, error) {
	text, err := yaml.MarshalWithOptions(yaml.MapSlice{{Key: key, Value: value}}, yaml.Flow(true))
	if err != nil {
		return nil, err
	}
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	of, ok := tree.Docs[0].Body.(*ast.MappingNode)
	if !ok || len(of.Values) != 1 {
		return nil, fmt.Errorf("write %s: it does not go on one line", key)
	}
	return of.Values[0], nil
}
