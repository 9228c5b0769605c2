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

// Keys have the text of the file, and so have values beside what JSON makes of them.
func TestSpellings(t *testing.T) {
	tree, err := strictyaml.DecodeExact("f", []byte(`
1.0: [True, FALSE, true, 0x1F, .5, 1.]
010: {0x10: a, True: b, 1e3: c, ~: d, .inf: e, 1_0: f, "2.0": g}
texts: [!!str True, !!str 0x1F, !!str ~, !!str .inf, !!str x]
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(tree)
	want := `{"010":{".inf":"e","0x10":"a","1_0":"f","1e3":"c","2.0":"g","True":"b","~":"d"},` +
		`"1.0":[true,false,true,31,0.5,1],"texts":["True","0x1F","~",".inf","x"]}`
	if err != nil || string(got) != want {
		t.Errorf("it is  %s, %v\nwant   %s", got, err, want)
	}
	var texts []string
	for _, v := range tree["1.0"].([]any) {
		if s, is := v.(strictyaml.Spelling); is {
			texts = append(texts, s.Text)
		}
	}
	if got := strings.Join(texts, " "); got != "True FALSE 0x1F .5 1." {
		t.Errorf("the spellings are %s", got)
	}
}

// Keys of a mapping replace merged ones wherever they are, and the first of several mappings wins
// (https://yaml.org/type/merge.html).
func TestMerges(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		tree, err := strictyaml.DecodeExact("f", []byte("a: &a {n: 1, m: 1}\nb: &b {n: 2, k: 2}\n"+
			"c: "+text+"\n"))
		got, _ := json.Marshal(tree["c"])
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, %v, want %s", text, got, err, want)
		}
	}
	check("{<<: *a, n: 3}", `{"m":1,"n":3}`)
	check("{n: 3, <<: *a, j: 4}", `{"j":4,"m":1,"n":3}`)
	check("{<<: [*a, *b]}", `{"k":2,"m":1,"n":1}`)
	check("{n: 3, <<: [*b, *a]}", `{"k":2,"m":1,"n":3}`)
	check("{d: &d {i: 5}, <<: *d}", `{"d":{"i":5},"i":5}`)
	check("\n  n: 3\n  <<: *a", `{"m":1,"n":3}`)
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
