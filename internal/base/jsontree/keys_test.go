package jsontree_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/base/jsontree"
)

// A value of another type is named in the words of JSON, not of Go.
func TestDecodeOtherTypes(t *testing.T) {
	for text, want := range map[string]string{
		`{"whole":"1"}`:         "whole must be a whole number, not string",
		`{"share":true}`:        "share must be a number, not bool",
		`{"name":1.5}`:          "name must be a text, not number",
		`{"on":null,"list":{}}`: "list must be a list, not object",
		`{"on":[]}`:             "on must be true or false, not list",
		`{"in":{"whole":300}}`:  "in.whole must be a whole number, not number 300",
		`[]`:                    "the value must be an object, not list",
	} {
		var v struct {
			Whole int8    `json:"whole"`
			Share float64 `json:"share"`
			Name  string  `json:"name"`
			On    bool    `json:"on"`
			List  []int   `json:"list"`
			In    struct {
				Whole uint8 `json:"whole"`
			} `json:"in"`
		}
		for _, err := range []error{jsontree.Decode([]byte(text), &v),
			jsontree.DecodeLine([]byte(text), &v), jsontree.Strict([]byte(text), &v)} {
			if fmt.Sprint(err) != want {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		var v any
		err := jsontree.Decode([]byte(text), &v)
		if fmt.Sprint(err) != want {
			t.Errorf("%.80q: error %v, want %s", text, err, want)
		}
	}
	const twice = "line %d: the key %q occurs twice in one object"
	check(`{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}],"A":"a","d":"\"a\":"}`, "<nil>")
	check(`{"a":1,"a":1}`, fmt.Sprintf(twice, 1, "a"))
	check("{\"a\":{\"x\":1},\n\"b\":[{\"x\":1,\"y\":[],\n\"x\" : 2}]}", fmt.Sprintf(twice, 3, "x"))
	check(`{"a":{},"b":1,"a":{}}`, fmt.Sprintf(twice, 1, "a"))
	check(`{"block":1,"blo\u0063k":2}`, fmt.Sprintf(twice, 1, "block"))
	check(`{"a\\":1,"a\\":2}`, fmt.Sprintf(twice, 1, `a\`))
	check(`{"":1,"":2}`, fmt.Sprintf(twice, 1, ""))
	check(`{"a":1,"a"`, "unexpected end of JSON input")
	// An object with many keys.
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	check("{"+strings.Join(many, ",")+"}", "<nil>")
	for _, again := range []int{0, 40, 99} {
		check("{"+strings.Join(append(many, many[again]), ",\n")+"}",
			fmt.Sprintf(twice, 101, fmt.Sprintf("k%d", again)))
	}
}

// form has keys in all places.
type form struct {
	Rate   int     `json:"rate"`
	Inner  []inner `json:"inner,omitempty"`
	Named  map[string]map[string]*inner
	Any    any    `json:"any"`
	Hidden string `json:"-"`
	Self   *form  `json:"self"`
	Older  older  `json:"older"`
	inner
	*Shared
}

type inner struct {
	Key string `json:"key"`
}

// Shared is embedded.
type Shared struct {
	Common json.RawMessage `json:"common"`
}

// older decodes itself.
type older struct {
	Word string `json:"word"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *older) UnmarshalJSON(data []byte) error {
	type plain older
	return json.Unmarshal(data, (*plain)(o))
}

func TestKeysInAnotherCase(t *testing.T) {
	check := func(text, written, right string) {
		t.Helper()
		want := "<nil>"
		if right != "" {
			want = fmt.Sprintf("line 1: the key %q must be written %q", written, right)
		}
		for _, decode := range []func([]byte, any) error{jsontree.Decode, jsontree.Strict} {
			if err := decode([]byte(text), &form{}); fmt.Sprint(err) != want {
				t.Errorf("%s: error %v, want %s", text, err, want)
			}
		}
	}
	check(`{"rate":1,"inner":[{"key":"Key"}],"any":{"Rate":1,"RATE":2,"rate":3}}`, "", "")
	check(`{"Named":{"rate":{"Rate":{"key":"a"},"RATE":{}},"Key":null},"common":{"Common":1}}`,
		"", "")
	check(`{"Rate":1}`, "Rate", "rate")
	check(`{"rate":1,"RATE":2}`, "RATE", "rate")
	check(`{"RATE":2,"rate":1}`, "RATE", "rate")
	check(`{"\u0052ate":1}`, "Rate", "rate")
	check(`{"inner":[{},{"key":"a"},{"Key":"b"}]}`, "Key", "key")
	check(`{"inner":[{}],"Key":"b"}`, "Key", "key")
	check(`{"named":{}}`, "named", "Named")
	check(`{"Named":{"a":{"b":{"KEY":"a"}}}}`, "KEY", "key")
	check(`{"Common":1}`, "Common", "common")
	check(`{"self":{"self":{"Self":null}}}`, "Self", "self")
	check(`{"older":{"Word":"a"}}`, "Word", "word")
	check(`{"\u212aey":"a"}`, "\u212aey", "key") // KELVIN SIGN, which encoding/json folds
}

func TestStrict(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		err := jsontree.Strict([]byte(text), &form{})
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	check(` {"rate": 1} `, "<nil>")
	check(`{"rate": 1} {}`, "more than one JSON value")
	check(`{"rate": 1} }`, "more than one JSON value")
	check(`{"rat": 1}`, `unknown field "rat"`)
	check(`{"rate": 1, "rate": 1}`, `"rate" occurs twice`)
	check(`{"Rate": "a"}`, `must be written "rate"`)
	check(`{"Rate": 1`, "unexpected EOF")
	check(``, "EOF")
}

// FuzzBadKey checks that a tree and its text have the same opinion on repeated keys.
func FuzzBadKey(f *testing.F) {
	for _, text := range []string{`{"a":1,"a":2}`, `[{"a":{"a":[]}},{"a":0}]`, `{"a":"\"a\":"}`,
		`{"\u0061":1,"a":2}`, `"a"`, `{"a":1,"b":{"c":1},"a":{"c":1}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, line := jsontree.BadKey([]byte(text), nil) // also of a text that is not JSON
		tree, err := jsontree.Parse([]byte(text), 1)
		if err != nil || !json.Valid([]byte(text)) {
			return
		}
		if err := jsontree.DecodeLine([]byte(text), new(any)); (err != nil) != (line > 0) {
			t.Errorf("it is decoded with %v, and line %d has a repeated key", err, line)
		}
		if repeats(tree) != (line > 0) {
			t.Errorf("the tree has a repeated key: %v, the text has one in line %d", repeats(tree),
				line)
		}
	})
}

// repeats reports whether an object of a tree has a key twice.
func repeats(n *jsontree.Node) bool {
	keys := map[string]bool{}
	for _, item := range n.Inside {
		if n.Kind == jsontree.Object && keys[item.Key] || repeats(item) {
			return true
		}
		keys[item.Key] = true
	}
	return false
}
