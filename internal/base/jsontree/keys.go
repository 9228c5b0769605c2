package jsontree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Decode is json.Unmarshal, except that a key that BadKey refuses is an error with its line.
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return inWords(err)
	}
	return keyError(data, v)
}

// DecodeLine is Decode for a line of NDJSON, whose number its caller knows.
func DecodeLine(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return inWords(err)
	}
	if problem, place := BadKey(line, v); place > 0 {
		return errors.New(problem)
	}
	return nil
}

// Strict is Decode for requests: an unknown key and a second value are errors, too.
func Strict(data []byte, v any) error {
	if json.Valid(data) {
		if err := keyError(data, v); err != nil {
			return err // before a decoder complains about the value of another key
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return inWords(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// inWords returns an error about a value of the wrong type without names of Go types.
func inWords(err error) error {
	wrong, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		return err
	}
	want := "an object"
	switch kind := wrong.Type.Kind(); kind {
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	case reflect.Float32, reflect.Float64:
		want = "a number"
	case reflect.Slice, reflect.Array:
		want = "a list"
	default:
		if kind >= reflect.Int && kind <= reflect.Uint64 {
			want = "a whole number"
		}
	}
	got := strings.Replace(wrong.Value, "array", "list", 1) // of number, it has the digits, too
	return fmt.Errorf("%s must be %s, not %s", cmp.Or(wrong.Field, "the value"), want, got)
}

func keyError(data []byte, v any) error {
	if problem, line := BadKey(data, v); line > 0 {
		return fmt.Errorf("line %d: %s", line, problem)
	}
	return nil
}

// BadKey returns what is wrong with the first key of valid JSON that json.Unmarshal into v accepts
// but should not, and the key's line in the text; line 0 if there is none:
//
//   - A key that occurs twice in one object: readers of JSON disagree on which of the two values
//     counts (RFC 8259, section 4).
//   - A key that differs only in case from a key of v, which json.Unmarshal takes for it.
//
// For a nil v, it finds only the first kind.
func BadKey(data []byte, v any) (problem string, line int) {
	around := make([]level, 1, 16) // the objects and arrays around a position
	around[0].value = shapeOf(reflect.TypeOf(v))
	for i := 0; i < len(data); i++ {
		in := &around[len(around)-1]
		switch data[i] {
		case '{':
			around = append(around, level{object: in.value})
		case '[':
			around = append(around, level{value: in.value.item()})
		case '}', ']':
			around = around[:max(len(around)-1, 1)]
		case '"':
			end := EndOfText(data, i)
			if IsKey(data, end) {
				if problem := in.key(data[i : end+1]); problem != "" {
					return problem, 1 + bytes.Count(data[:i], []byte("\n"))
				}
			}
			i = end
		}
	}
	return "", 0
}

// level is an object or an array around a position.
type level struct {
	names
	object *shape // of the object; nil: unknown, or an array
	value  *shape // of the next value
}

// key adds a key with its quotes, and returns what is wrong with it.
func (l *level) key(quoted []byte) (problem string) {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 || !utf8.Valid(name) {
		var content string
		_ = json.Unmarshal(quoted, &content) // the text is valid JSON
		name = []byte(content)
	}
	if !l.add(name) {
		return fmt.Sprintf("the key %q occurs twice in one object", name)
	}
	l.value, problem = l.object.member(name)
	return problem
}

// fewNames is the number of keys up to which names compares all of them.
const fewNames = 32

// names are the keys of one object.
type names struct {
	few  [][]byte
	many map[string]bool // of an object with more than fewNames keys; nil: it has fewer
}

// add adds a key, and reports whether it is new.
func (n *names) add(name []byte) bool {
	switch {
	case n.many != nil && n.many[string(name)]:
		return false
	case n.many != nil:
		n.many[string(name)] = true
		return true
	}
	for _, earlier := range n.few {
		if bytes.Equal(earlier, name) {
			return false
		}
	}
	if n.few = append(n.few, name); len(n.few) > fewNames {
		n.many = make(map[string]bool, 2*len(n.few))
		for _, earlier := range n.few {
			n.many[string(earlier)] = true
		}
	}
	return true
}

// EndOfText returns the position of the quote that ends the string that begins at from, or the
// length of data.
func EndOfText(data []byte, from int) int {
	for i := from + 1; ; {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data)
		}
		i += n
		slashes := 0
		for data[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
}

// IsKey reports whether a colon follows the string that ends at end.
func IsKey(data []byte, end int) bool {
	for i := end + 1; i < len(data); i++ {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
		default:
			return data[i] == ':'
		}
	}
	return false
}
