package jsontree

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// shape has the keys of a type.
type shape struct {
	fields map[string]*shape // of a struct; a nil shape: its value has no keys, or any
	inside *shape            // of the values of a map or a list
}

// shapes are the known ones.
var shapes = struct {
	sync.Mutex
	known map[reflect.Type]*shape
}{known: map[reflect.Type]*shape{}}

// shapeOf returns the shape of a type, nil for one without keys.
func shapeOf(t reflect.Type) *shape {
	if t == nil {
		return nil
	}
	shapes.Lock()
	defer shapes.Unlock()
	return build(t)
}

// build makes a shape. A type that unmarshals itself has the keys of its fields, because our own
// ones decode them after they have looked at an older form.
func build(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, is := shapes.known[t]; is {
		return s
	}
	s := &shape{}
	switch t.Kind() {
	case reflect.Struct:
		shapes.known[t] = s // before its fields, which may have the type again
		s.fields = map[string]*shape{}
		s.add(t)
	case reflect.Map, reflect.Slice, reflect.Array:
		shapes.known[t] = s
		s.inside = build(t.Elem())
	default:
		return nil
	}
	return s
}

// add adds the keys of a struct, as encoding/json names them.
func (s *shape) add(t reflect.Type) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			s.add(inner)
		case f.IsExported():
			s.fields[cmp.Or(name, f.Name)] = build(f.Type)
		}
	}
}

// item returns the shape of an array's values.
func (s *shape) item() *shape {
	if s == nil {
		return nil
	}
	return s.inside
}

// member returns the shape of a key's value, and what is wrong with the key.
func (s *shape) member(name []byte) (value *shape, problem string) {
	if s == nil || s.fields == nil {
		return s.item(), ""
	}
	if value, known := s.fields[string(name)]; known {
		return value, ""
	}
	for key := range s.fields {
		if strings.EqualFold(key, string(name)) {
			return nil, fmt.Sprintf("the key %q must be written %q", name, key)
		}
	}
	return nil, ""
}
