package strictyaml

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// DecodeExact reads data, the content of the named file, as a mapping of any keys. Its numbers are
// json.Number with all of their digits, which float64 would round. A number that YAML 1.2 (section
// 10.3) does not have, such as 01234 or 1_000, is a string; so is +491234, because JSON has no such
// number. A value that JSON writes in another way is a Spelling. Keys have the text of the file.
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

// Spelling is a number or a boolean that JSON writes in another way, such as 0x1F or True, or not
// at all, such as .inf.
type Spelling struct {
	Text  string // in the file
	Value any    // json.Number or bool; NaN if JSON has no such number
}

// MarshalJSON returns the value in JSON.
func (s Spelling) MarshalJSON() ([]byte, error) { return json.Marshal(s.Value) }

// numbers puts exact values and keys into a tree.
type numbers struct{}

// Visit implements ast.Visitor.
func (v numbers) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.TagNode: // which says itself what its value is
		if n.Start.Value == string(token.StringTag) && plainScalar(n.Value) {
			n.Value = ast.String(n.Value.GetToken())
		}
	case *ast.MappingNode:
		mergeFirst(n)
	case *ast.MappingValueNode:
		if list, is := n.Value.(*ast.SequenceNode); is && n.Key.IsMergeKey() {
			slices.Reverse(list.Values) // the library lets the last one win, instead of the first
		}
		if plainScalar(n.Key) {
			n.Key = ast.String(n.Key.GetToken())
		}
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

// plainScalar reports whether a node is a scalar without quotes that is not a string.
func plainScalar(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return true
	case *ast.NullNode:
		return n.GetToken().Type == token.NullType // written as null or ~
	}
	return false
}

// mergeFirst moves merged entries before the others, which replace them wherever they are
// (https://yaml.org/type/merge.html); the library lets the last one win. Entries stay where they
// are if one of them defines an anchor, because only what follows can refer to it.
func mergeFirst(n *ast.MappingNode) {
	merged := func(v *ast.MappingValueNode) bool { return v.Key.IsMergeKey() }
	first := slices.IndexFunc(n.Values, merged)
	anchors := anchorFinder{}
	for _, v := range n.Values[:max(first, 0)] {
		ast.Walk(anchors, v)
	}
	if first > 0 && len(anchors) == 0 {
		explicit := slices.DeleteFunc(slices.Clone(n.Values), merged)
		n.Values = slices.DeleteFunc(n.Values, func(v *ast.MappingValueNode) bool {
			return !merged(v)
		})
		n.Values = append(n.Values, explicit...)
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// exact is a node with the number that it is, if it is one.
func exact(n ast.Node) ast.Node {
	t := n.GetToken()
	var value any = t.Value
	switch n := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	case *ast.BoolNode:
		if value = n.Value; strconv.FormatBool(n.Value) != t.Value {
			value = Spelling{t.Value, n.Value}
		}
		return &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t, Value: value}
	case *ast.InfinityNode, *ast.NanNode:
		return &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t,
			Value: Spelling{t.Value, math.NaN()}}
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
	if jsonNumber.MatchString(text) {
		value = json.Number(text)
	} else if i, ok := new(big.Int).SetString(text, 0); ok && strings.HasPrefix(text, "0x") ||
		ok && strings.HasPrefix(text, "0o") {
		value = json.Number(i.String())
	}
	if number, is := value.(json.Number); is && number.String() != t.Value {
		value = Spelling{t.Value, number}
	}
	return &ast.IntegerNode{BaseNode: &ast.BaseNode{}, Token: t, Value: value}
}
