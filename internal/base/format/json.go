package format

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// JSON writes a value by its fields' tags, as encoding/json does, with three differences: NaN and
// infinite numbers are null, empty lists are [], so that readers can loop, and < and > are not
// escaped, because people also read documents. It omits fields without a tag.
func JSON(w io.Writer, v any) error {
	var b, indented bytes.Buffer
	if err := encode(&b, reflect.ValueOf(v)); err != nil {
		return err
	}
	if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := w.Write(indented.Bytes())
	return err
}

// Finite returns a pointer to x, or nil (null) if x is NaN or infinite. It is for values that
// encoding/json writes.
func Finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

func encode(b *bytes.Buffer, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return encode(b, v.Elem())
		}
	case reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			b.WriteString("null")
			return nil
		}
	case reflect.Slice:
		return members(b, "[]", v.Len(), func(i int) error { return encode(b, v.Index(i)) })
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int {
			return strings.Compare(x.String(), y.String())
		})
		return members(b, "{}", len(keys), func(i int) error {
			return named(b, keys[i].String(), v.MapIndex(keys[i]))
		})
	case reflect.Struct:
		if _, ok := v.Interface().(encoding.TextMarshaler); ok {
			break // a time
		}
		fields := fieldsOf(v)
		return members(b, "{}", len(fields), func(i int) error {
			return named(b, fields[i].name, fields[i].value)
		})
	}
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v.Interface())
}

func members(b *bytes.Buffer, brackets string, n int, write func(int) error) error {
	b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(i); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

func named(b *bytes.Buffer, name string, v reflect.Value) error {
	if err := encode(b, reflect.ValueOf(name)); err != nil {
		return err
	}
	b.WriteByte(':')
	return encode(b, v)
}

type field struct {
	name  string
	value reflect.Value
}

// fieldsOf returns the tagged fields of a struct, with the fields of embedded structs in their
// place.
func fieldsOf(v reflect.Value) (out []field) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fieldsOf(v.Field(i))...)
		case name == "" || name == "-", options == "omitempty" && empty(v.Field(i)),
			options == "omitzero" && v.Field(i).IsZero():
		default:
			out = append(out, field{name, v.Field(i)})
		}
	}
	return out
}

func empty(v reflect.Value) bool {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		return v.Len() == 0
	}
	return v.Kind() != reflect.Struct && v.IsZero()
}
