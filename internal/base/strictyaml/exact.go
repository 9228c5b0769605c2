package strictyaml

import (
	"encoding/json"
	"math/big"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// DecodeExact reads data, the content of the named file, as a mapping of any keys. Its numbers are
// json.Number with all of their digits, which float64 would round. A number that YAML 1.2 (section
// 10.3) does not have, such as 01234 or 1_000, is a string; so is +491234, because JSON has no such
// number.
func DecodeExact(file string, data []byte) (out map[string]any, err error) {
	if data, err = shallow(file, data); err != nil {
		return nil, err
	}
	err = guarded(func() error {
		tree, err := parser.ParseBytes(data, 0)
		if err != nil {
			return err
		}
		if err := bounded(file, data, tree); err != nil {
			return err
		}
		var body ast.Node
		for _, doc := range tree.Docs {
			switch doc.Body.(type) {
			case nil, *ast.DirectiveNode, *ast.CommentGroupNode:
				continue
			}
			if body != nil {
				return mistaken(file, doc.Body.GetToken().Position.Line, "a second document")
			}
			body = doc.Body
		}
		if body == nil {
			return nil
		}
		ast.Walk(numbers{}, body)
		return yaml.NodeToValue(body, &out)
	})
	return out, decoded(file, data, err)
}

// numbers puts exact numbers into a tree.
type numbers struct{}

// Visit implements ast.Visitor.
func (v numbers) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.TagNode: // which says itself what its value is
		switch n.Value.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			if n.Start.Value == string(token.StringTag) {
				t := n.Value.GetToken()
				n.Value = &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t, Value: t.Value}
			}
		}
	case *ast.MappingValueNode:
		n.Value = exact(n.Value)
	case *ast.AnchorNode:
		n.Value = exact(n.Value)
	case *ast.SequenceNode:
		for i := range n.Values {
			n.Values[i] = exact(n.Values[i])
		}
	}
	return v
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// exact is a node with the number that it is, if it is one.
func exact(n ast.Node) ast.Node {
	t := n.GetToken()
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.StringNode: // the library takes 1e3 as a text
		if t.Type != token.StringType || !jsonNumber.MatchString(t.Value) {
			return n
		}
	default:
		return n
	}
	text := strings.TrimSuffix(t.Value, ".")
	if tail, is := strings.CutPrefix(text, "."); is {
		text = "0." + tail
	} else if tail, is := strings.CutPrefix(text, "-."); is {
		text = "-0." + tail
	}
	var value any = t.Value
	if jsonNumber.MatchString(text) {
		value = json.Number(text)
	} else if i, ok := new(big.Int).SetString(text, 0); ok && strings.HasPrefix(text, "0x") ||
		ok && strings.HasPrefix(text, "0o") {
		value = json.Number(i.String())
	}
	return &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t, Value: value}
}
