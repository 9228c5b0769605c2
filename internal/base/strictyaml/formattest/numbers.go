// Package formattest checks for tests that a file format has no second reading: every numeric key
// holds exactly the number that its author wrote, and every key has one name.
//
// Non-goals: ranges of values and numbers in keys that hold no single number.
package formattest

import (
	"encoding"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
)

// texts are numbers, and what looks like numbers, as people write them.
var texts = []string{"3", "+3", "2.5", "2.0", "1e3", "1E-2", "0x10", "0o17", "0b11", "010", "1_000",
	`"3"`, "'3'", ".inf", "-.inf", ".nan", "-1", "99999999999999999999", "9007199254740993", "null",
	"~", "", "true", "[3]", "2.5ns", "1.0000000001s", "9007199254740993ns", "0.1KiB",
	"9007199254740993B", "2.5KiB"}

// place is the way to a key: names of keys, "[]" for an item of a list and "{}" for an entry.
type place []string

// Numbers checks all numeric keys of the type that v points to: each holds exactly the number that
// its author wrote, or refuses it with file, line, key and text.
func Numbers(t *testing.T, v any) {
	t.Helper()
	f := finder{tag: "yaml", visited: map[reflect.Type]bool{}, numeric: true}
	places := f.find(reflect.TypeOf(v), nil)
	if len(places) == 0 {
		t.Fatalf("%T has no numeric key", v)
	}
	for _, spot := range places {
		for _, text := range texts {
			if text == "" && spot[len(spot)-1] == "[]" {
				continue // the list is empty
			}
			check(t, spot, text, reflect.New(reflect.TypeOf(v).Elem()))
		}
	}
}

// finder finds places of a type.
type finder struct {
	tag     string // of keys
	numeric bool   // finds places of numbers, otherwise of all keys
	visited map[reflect.Type]bool
}

func (f finder) find(t reflect.Type, path place) (out []place) {
	step := func(name string) place { return append(path[:len(path):len(path)], name) }
	switch t.Kind() {
	case reflect.Pointer:
		return f.find(t.Elem(), path)
	case reflect.Slice, reflect.Array:
		return f.find(t.Elem(), step("[]"))
	case reflect.Map:
		return f.find(t.Elem(), step("{}"))
	case reflect.Struct:
		if f.visited[t] || reflect.PointerTo(t).Implements(textType) {
			return nil
		}
		f.visited[t] = true
		defer delete(f.visited, t)
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get(f.tag), ",")
			switch {
			case strings.Contains(options, "inline") || name == "" && f.tag == "json" &&
				field.Anonymous:
				out = append(out, f.find(field.Type, path)...)
			case name != "" && name != "-":
				if !f.numeric {
					out = append(out, step(name))
				}
				out = append(out, f.find(field.Type, step(name))...)
			}
		}
		return out
	}
	if k := t.Kind(); f.numeric && k >= reflect.Int && k <= reflect.Float64 {
		return []place{path}
	}
	return nil
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// document writes a value at a place.
func (p place) document(text string) string {
	if len(p) == 0 {
		return text
	}
	inner := p[1:].document(text)
	switch p[0] {
	case "[]":
		return "[" + inner + "]"
	case "{}":
		return `{"some": ` + inner + "}"
	}
	return fmt.Sprintf("{%q: %s}", p[0], inner)
}

// key returns the name of the place's key.
func (p place) key() string {
	if last := p[len(p)-1]; last != "[]" && last != "{}" {
		return last
	}
	return p[:len(p)-1].key()
}

// value returns what was decoded at a place.
func (p place) value(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Pointer {
		if v = v.Elem(); !v.IsValid() {
			return v
		}
	}
	if len(p) == 0 {
		return v
	}
	switch p[0] {
	case "[]":
		return p[1:].value(v.Index(0))
	case "{}":
		return p[1:].value(v.MapIndex(reflect.ValueOf("some").Convert(v.Type().Key())))
	}
	for f, field := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == p[0] {
			return p[1:].value(field)
		}
		if strings.Contains(options, "inline") {
			if match := p.value(field); match.IsValid() {
				return match
			}
		}
	}
	return reflect.Value{}
}

// check reads one text as the value of one key.
func check(t *testing.T, spot place, text string, v reflect.Value) {
	t.Helper()
	label := fmt.Sprintf("%s: %s", strings.Join(spot, "."), text)
	err := strictyaml.Decode("file.yaml", []byte("# a\n\n"+spot.document(text)+"\n"), v.Interface())
	if err == nil {
		got, want := spot.value(v), number(text)
		if !got.IsValid() || want == nil || !equal(got, want) {
			t.Errorf("%s is read as %v", label, got)
		}
		return
	}
	var placed *strictyaml.Error
	message := err.Error()
	if !errors.As(err, &placed) || placed.File != "file.yaml" || placed.Line != 3 ||
		!strings.Contains(message, spot.key()) ||
		!strings.Contains(message, strings.Trim(text, "[]")) || strings.Contains(message, "Go ") {
		t.Errorf("%s is refused with %v", label, err)
	}
}

// number returns the number of a text, nil if it has none. Durations are in ns, sizes in bytes.
func number(text string) *big.Rat {
	text = strings.Trim(text, `"'`)
	digits := strings.TrimRight(text, "nsBKi")
	out, ok := new(big.Rat).SetString(digits)
	if !ok || strings.ContainsAny(text, "xob_") || len(text) > 1 && text[0] == '0' &&
		text[1] != '.' {
		return nil
	}
	scale, known := map[string]int64{"": 1, "ns": 1, "s": int64(time.Second), "B": 1,
		"KiB": 1 << 10}[text[len(digits):]]
	if !known {
		return nil
	}
	return out.Mul(out, new(big.Rat).SetInt64(scale))
}

// holds reports whether a decoded value is a number. Decimal numbers are the nearest of float64.
func equal(v reflect.Value, want *big.Rat) bool {
	switch {
	case v.CanInt():
		return want.Cmp(new(big.Rat).SetInt64(v.Int())) == 0
	case v.CanUint():
		return want.Cmp(new(big.Rat).SetInt(new(big.Int).SetUint64(v.Uint()))) == 0
	}
	nearest, _ := want.Float64()
	return v.Float() == nearest
}
