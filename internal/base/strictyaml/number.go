package strictyaml

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"prony.example/internal/base/jsontree"
	"prony.example/internal/base/lazyregexp"
)

// The YAML library cuts the fraction of a number for an integer key, and reads 0x10, 1_000 and "3"
// as integers. A number must be exactly what its author wrote, so numbers are checked in the text
// before it is decoded: YAML by checked, JSON by exactJSON. The library also takes a text that
// looks like a number for one, such as the tag 1.10; checked makes texts of those.

var (
	wholeForm   = lazyregexp.New(`^[-+]?(0|[1-9][0-9]*)$`)
	decimalForm = lazyregexp.New(`^[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
)

// Hints of problems with numbers.
const (
	wholeHint   = "write decimal digits, such as 3, without fraction, exponent or quotes"
	decimalHint = "write a decimal number, such as 2 or 0.5, without quotes"
	nullHint    = "write a number, or remove the key"
)

// number returns what is wrong with the text of a number for a type, and a hint; "" if the type
// holds exactly this number, or if the type is no number.
func number(t reflect.Type, text string) (problem, hint string) {
	switch k := t.Kind(); {
	case k >= reflect.Int && k <= reflect.Int64:
		if !wholeForm.MatchString(text) {
			return "must be a whole number, not " + text, wholeHint
		}
		if _, err := strconv.ParseInt(text, 10, t.Bits()); err != nil {
			return "must be at most " + strconv.FormatUint(1<<(t.Bits()-1)-1, 10) + ", not " + text,
				""
		}
	case k >= reflect.Uint && k <= reflect.Uint64:
		if !wholeForm.MatchString(text) {
			return "must be a whole number, not " + text, wholeHint
		}
		if _, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, t.Bits()); err != nil {
			return "must be 0 to " + strconv.FormatUint(math.MaxUint64>>(64-t.Bits()), 10) +
				", not " + text, ""
		}
	case k == reflect.Float32 || k == reflect.Float64:
		if !decimalForm.MatchString(text) {
			return "must be a decimal number, not " + text, decimalHint
		}
		if _, err := strconv.ParseFloat(text, t.Bits()); err != nil {
			return "is too large: " + text, ""
		}
	}
	return "", ""
}

// isNumeric reports whether a type holds a number, also if it is read as a text.
func isNumeric(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
}

// isNumber reports whether a type is read as a number, not as a text such as a size.
func isNumber(t reflect.Type) bool {
	return isNumeric(t) &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// members returns the types of a struct's keys by their tag, with those of embedded structs; none
// of other types.
func members(t reflect.Type, tag string) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")
		inline := f.Anonymous && name == "" || strings.Contains(options, "inline")
		switch {
		case inline && f.Type.Kind() == reflect.Struct:
			maps.Copy(out, members(f.Type, tag))
		case name == "" && tag == "json" && f.IsExported():
			out[f.Name] = f.Type
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}

// bareType follows pointers.
func bareType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// treeCheck finds the keys and values of a tree that their types do not have. The library stops at
// the first one, and overlooks an unknown key without a value.
type treeCheck struct {
	file    string
	data    []byte
	v       any // what the file is decoded into
	anchors map[string]ast.Node
	errs    []error
}

// checked reports all keys and values of a file that the type of v does not have, and makes texts
// of numbers that the type has as texts.
func checked(file string, data []byte, body ast.Node, v any) error {
	if body == nil {
		return nil
	}
	e := &treeCheck{file: file, data: data, v: v, anchors: map[string]ast.Node{}}
	ast.Walk(anchorFinder(e.anchors), body)
	e.walk(body, reflect.TypeOf(v), "")
	return errors.Join(e.errs...)
}

// anchorFinder collects the nodes that aliases repeat.
type anchorFinder map[string]ast.Node

// Visit implements ast.Visitor.
func (f anchorFinder) Visit(n ast.Node) ast.Visitor {
	if a, is := n.(*ast.AnchorNode); is && a.Name != nil {
		f[a.Name.GetToken().Value] = a.Value
	}
	return f
}

// walk checks a node that is the value of a key, and returns the node to decode.
func (e *treeCheck) walk(n ast.Node, t reflect.Type, key string) ast.Node {
	switch alias := n.(type) {
	case *ast.AnchorNode:
		alias.Value = e.walk(alias.Value, t, key)
		return alias
	case *ast.AliasNode:
		if anchor := e.anchors[alias.Value.GetToken().Value]; anchor != nil {
			e.walk(anchor, t, key)
		}
		return alias
	case nil:
		return nil
	}
	t = bareType(t)
	k, before := t.Kind(), len(e.errs)
	decodes := reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.NodeUnmarshaler]())
	if decodes && k == reflect.Struct {
		k = reflect.Invalid // read as a text
	}
	mapping, isMapping := n.(*ast.MappingNode)
	list, isList := n.(*ast.SequenceNode)
	switch text := written(n); {
	case isMapping && (k == reflect.Struct || k == reflect.Map):
		e.merge(mapping)
		for _, v := range mapping.Values {
			e.entry(v, t)
		}
	case isList && (k == reflect.Slice || k == reflect.Array):
		for i, v := range list.Values {
			list.Values[i] = e.walk(v, t.Elem(), key)
		}
		if decodes && len(e.errs) == before {
			e.value(n, t, key, text)
		}
	case !decodes && text != "" && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map,
		reflect.Slice, reflect.Array}, k):
		e.add(n, noun(t)+" is required, but this is "+nodeNoun(n), "")
	default:
		e.value(n, t, key, text)
		if t.Kind() == reflect.String && n.Type() != ast.NullType && plainScalar(n) {
			return ast.String(n.GetToken())
		}
	}
	return n
}

// merge replaces merged mappings by those of their entries that the mapping does not have itself,
// because the library refuses these (https://yaml.org/type/merge.html).
func (e *treeCheck) merge(m *ast.MappingNode) {
	var merged []ast.Node
	names := map[string]bool{}
	explicit := slices.DeleteFunc(slices.Clone(m.Values), func(v *ast.MappingValueNode) bool {
		alias, is := v.Value.(*ast.AliasNode)
		if is = is && v.Key.IsMergeKey(); is {
			merged = append(merged, e.anchors[alias.Value.GetToken().Value])
		} else {
			names[v.Key.GetToken().Value] = true
		}
		return is
	})
	for _, n := range merged {
		from, is := n.(*ast.MappingNode)
		if !is {
			return // the library reports it
		}
		e.merge(from)
		for _, v := range from.Values {
			if name := v.Key.GetToken().Value; !names[name] {
				explicit, names[name] = append(explicit, v), true
			}
		}
	}
	m.Values = explicit
}

// nodeNoun returns what a file has at a node.
func nodeNoun(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.IntegerNode:
		return "a whole number"
	case *ast.FloatNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	}
	return "a text"
}

// entry checks an entry of a mapping.
func (e *treeCheck) entry(v *ast.MappingValueNode, t reflect.Type) {
	name := v.Key.GetToken().Value
	known := members(t, "yaml")
	inner, is := known[name]
	switch {
	case v.Key.IsMergeKey():
		v.Value = e.walk(v.Value, t, name)
	case t.Kind() == reflect.Map:
		if plainScalar(v.Key) {
			v.Key = ast.String(v.Key.GetToken())
		}
		v.Value = e.walk(v.Value, t.Elem(), name)
	case is:
		v.Value = e.walk(v.Value, inner, name)
	default:
		all, here := Keys(e.v), slices.Sorted(maps.Keys(known))
		hint := Meant(name, here, Meant(name, all, "known keys are "+strings.Join(here, ", ")))
		if slices.Contains(all, name) {
			hint = "it is a key of " + strings.Join(homes(reflect.TypeOf(e.v), name), " and of ")
		}
		e.add(v.Key, fmt.Sprintf("unknown key %q", name), hint)
	}
}

// written returns a scalar as it is in the file, or what the node is; "" for no value.
func written(n ast.Node) string {
	switch n.Type() {
	case ast.NullType:
		return ""
	case ast.MappingType, ast.SequenceType:
		return nodeNoun(n)
	}
	token := n.GetToken()
	if s, is := n.(*ast.StringNode); is && token.Value == s.Value {
		if origin := strings.TrimSpace(token.Origin); len(origin) > 1 && (origin[0] == '"' ||
			origin[0] == '\'') {
			return origin
		}
	}
	return token.Value
}

// value checks a node that has no keys or items for its type.
func (e *treeCheck) value(n ast.Node, t reflect.Type, key, text string) {
	problem, hint := "", ""
	switch {
	case text == "" && isNumeric(t):
		problem, hint = "has no value", nullHint
	case !isNumber(t):
	case t == reflect.TypeFor[time.Duration]():
		if _, err := Duration(strings.Trim(text, `"'`)); err != nil {
			problem = "cannot be read: " + err.Error()
		}
	default:
		problem, hint = number(t, text)
	}
	if problem != "" {
		e.add(n, key+" "+problem, hint)
	} else if err := yaml.NodeToValue(n, reflect.New(t).Interface()); err != nil && text != "" {
		e.errs = append(e.errs, decoded(e.file, e.data, err))
	}
}

// add adds an error at a node.
func (e *treeCheck) add(n ast.Node, problem, hint string) {
	number := n.GetToken().Position.Line
	e.errs = append(e.errs, &Error{File: e.file, Line: number, Problem: problem,
		Source: line(e.data, number), Hint: hint})
}

// JSON decodes a JSON document of a user into v. What jsontree.Strict refuses, and numbers that v
// cannot hold exactly, are errors. A null is no number.
func JSON(r io.Reader, v any) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var tree any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return err
	}
	if problem, line := jsontree.BadKey(data, v); line > 0 {
		return fmt.Errorf("line %d: %s", line, problem)
	}
	if err := exactJSON(tree, reflect.TypeOf(v), ""); err != nil {
		return err
	}
	return jsontree.Strict(data, v)
}

// exactJSON checks all numbers of a value for a type.
func exactJSON(value any, t reflect.Type, key string) error {
	t = bareType(t)
	var errs []error
	switch value := value.(type) {
	case map[string]any:
		known := members(t, "json")
		for name, v := range value {
			inner, is := known[name]
			if t.Kind() == reflect.Map {
				inner, is = t.Elem(), true
			}
			switch {
			case v == nil && t.Kind() == reflect.Map:
				errs = append(errs, fmt.Errorf("%s has no value; write one, or remove the key",
					name))
			case is:
				errs = append(errs, exactJSON(v, inner, name))
			}
		}
	case []any:
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			for _, v := range value {
				errs = append(errs, exactJSON(v, t.Elem(), key))
			}
		}
	case nil:
		if key == "" {
			return errors.New("the document is null; write an object")
		}
		if isNumeric(t) {
			return fmt.Errorf("%s has no value; %s", key, nullHint)
		}
	case json.Number:
		if isNumber(t) {
			return sentence(key, t, value.String())
		}
	case string:
		if isNumber(t) {
			return sentence(key, t, strconv.Quote(value))
		}
	}
	return errors.Join(errs...)
}

// sentence returns the error of a number's text, or nil.
func sentence(key string, t reflect.Type, text string) error {
	problem, hint := number(t, text)
	switch {
	case problem == "":
		return nil
	case hint == "":
		return fmt.Errorf("%s %s", key, problem)
	}
	return fmt.Errorf("%s %s; %s", key, problem, hint)
}
