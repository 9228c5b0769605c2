package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/dev/testsets"
)

// Numbers keep all of their digits, in aliases, merged mappings and lists, too; what only looks
// like a number is a text.
func TestDecodeExact(t *testing.T) {
	tree, err := strictyaml.DecodeExact("f", []byte(`
big: 9007199254740993
huge: 123456789012345678901234567890
list: [12.50, 1e3, 1E+2, "7", '8', -0.0, +5, .5, 5.]
codes: [01234, 1_000, 0x1F, 0o17, 08, 1.2.3, 2020-01-02, 12:30]
others: [true, null, ~, .inf, yes]
one: &one {n: 1.10}
two: *one
three: {<<: *one, m: 2.0}
tagged: !!map {a: !!str 1.10, b: 1.10}
200: ok
`))
	if err != nil {
		t.Fatal(err)
	}
	delete(tree, "others") // infinity has no JSON
	got, err := json.Marshal(tree)
	want := `{"200":"ok","big":9007199254740993,` +
		`"codes":["01234","1_000",31,15,"08","1.2.3","2020-01-02","12:30"],` +
		`"huge":123456789012345678901234567890,` +
		`"list":[12.50,1e3,1E+2,"7","8",-0.0,"+5",0.5,5],"one":{"n":1.10},` +
		`"tagged":{"a":"1.10","b":1.10},` +
		`"three":{"m":2.0,"n":1.10},"two":{"n":1.10}}`
	if err != nil || string(got) != want {
		t.Errorf("it is  %s, %v\nwant   %s", got, err, want)
	}
}

// Brackets and stars of prose are no structure, and a file may have more values than its aliases
// may repeat.
func TestBoundsCountStructure(t *testing.T) {
	testsets.Whole(t, "huge files")
	prose := "a: |\n" + strings.Repeat("  - an interval [0, 1) of **all**\n", 200)
	if _, err := strictyaml.DecodeExact("f", []byte(prose)); err != nil {
		t.Error(err)
	}
	long := "a: '*'\nb: &x 1\nc: *x\nd:\n" + strings.Repeat("- 1\n", 150_000)
	var v map[string]any
	if err := strictyaml.Decode("f", []byte(long), &v); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"# c\n---\na: 1.0\n",
		"%YAML 1.2\n---\na: 1.0\n---\n# c\n"} {
		if tree, err := strictyaml.DecodeExact("f", []byte(text)); fmt.Sprint(tree) !=
			"map[a:1.0]" {
			t.Errorf("%q is %v, %v", text, tree, err)
		}
	}
	for _, text := range []string{"a: " + strings.Repeat("[", 101), "- 1\n", "a: {b: c", "a: *x",
		"a: 1\n---\nb: 2\n"} {
		if _, err := strictyaml.DecodeExact("f", []byte(text)); err == nil ||
			strings.Count(err.Error(), "f:") != 1 {
			t.Errorf("%.20q is read with %v", text, err)
		}
	}
}
