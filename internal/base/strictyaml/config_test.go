package strictyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"prony.example/internal/base/strictyaml"
)

type file struct {
	Name  string          `yaml:"name"`
	Count int             `yaml:"count"`
	Size  strictyaml.Size `yaml:"size"`
	Inner []struct {
		Connections int `yaml:"connections"`
	} `yaml:"inner"`
}

func TestErrorsNameThePlaceAndTheRemedy(t *testing.T) {
	check := func(name, document, want string) {
		t.Run(name, func(t *testing.T) {
			err := strictyaml.Decode("s.yaml", []byte(document), &file{})
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
	check("unknown key", "name: a\ncuont: 3\n",
		`s.yaml:2: unknown key "cuont" in "cuont: 3"; did you mean "count"?`)
	check("unknown key below", "inner:\n  - conections: 3\n",
		`s.yaml:2: unknown key "conections" in "- conections: 3"; did you mean "connections"?`)
	check("a key of another place", "name: a\ninner:\n  - name: 3\n",
		`s.yaml:3: unknown key "name" in "- name: 3"; it is a key of the file itself`)
	check("a key from below", "connections: 3\n",
		`s.yaml:1: unknown key "connections" in "connections: 3"; it is a key of inner`)
	check("nothing near", "zebra: 3\n", `s.yaml:1: unknown key "zebra" in "zebra: 3"; `+
		`known keys are count, inner, name, size`)
	check("wrong type", "count: many\n", `s.yaml:1: count must be a whole number, not many `+
		`in "count: many"; write decimal digits, such as 3, without fraction, exponent or quotes`)
	check("a list for a text", "name: [a]\n",
		`s.yaml:1: a text is required, but this is a list in "name: [a]"`)
	check("a mapping for a text", "name: {a: b}\n",
		`s.yaml:1: a text is required, but this is a mapping in "name: {a: b}"`)
	check("twice", "name: a\nname: b\n",
		`s.yaml:2: mapping key "name" already defined at [1:1] in "name: b"`)
	check("deep", strings.Repeat("[", 101), "s.yaml:1: brackets are nested more than 100 levels "+
		"deep; check that this is the right file")
	bomb := "a: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 8 {
		one := fmt.Sprintf("*a%d", i)
		bomb += fmt.Sprintf("b%d: &a%d [%s]\n", i, i+1, strings.Repeat(one+",", 9)+one)
	}
	check("aliases of aliases", bomb, "s.yaml:1: YAML aliases expand the file to more than "+
		"100000 values; check that this is the right file")
	check("an alias of itself", "inner: [&a {<<: *a}]\n", `s.yaml:1: the alias *a stands within `+
		`its own anchor &a in "inner: [&a {<<: *a}]"`)
	check("aliases of each other", "inner: [&a {<<: [*b, &b {<<: *a}]}]\n", `s.yaml:1: the alias `+
		`*a stands within its own anchor &a in "inner: [&a {<<: [*b, &b {<<: *a}]}]"`)
	check("a key without a value", "inner: [{connections: 1,5}]\n",
		`s.yaml:1: unknown key "5" in "inner: [{connections: 1,5}]"; `+
			`known keys are connections`)
	check("braces within braces", "inner: [{connections: x {port}}]\n", `s.yaml:1: ',' or '}' `+
		`must be specified in "inner: [{connections: x {port}}]"; put quotes around a value that `+
		`contains braces or a comma, such as '{port}'`)
	check("broken", "name: [a\n", `s.yaml:1: sequence end token ']' not found in "name: [a"`)
}

func TestAllKeysAndValuesAreReportedAtOnce(t *testing.T) {
	err := strictyaml.Decode("s.yaml", []byte("naem: a\nname: [a]\ncount: 1.5\nsize: 10TB\n"+
		"inner:\n  - conections:\n  - {connections: &n {<<: {zebra: 1}}}\n  - 5\n"), &file{})
	want := `s.yaml:1: unknown key "naem" in "naem: a"; did you mean "name"?
s.yaml:2: a text is required, but this is a list in "name: [a]"
s.yaml:3: count must be a whole number, not 1.5 in "count: 1.5"; write decimal digits, such as ` +
		`3, without fraction, exponent or quotes
s.yaml:4: size "10TB" is not a number with a binary unit, such as 1GiB or 832M in "size: 10TB"
s.yaml:6: unknown key "conections" in "- conections:"; did you mean "connections"?
s.yaml:7: connections must be a whole number, not a mapping in ` +
		`"- {connections: &n {<<: {zebra: 1}}}"; write decimal digits, such as 3, without ` +
		`fraction, exponent or quotes
s.yaml:8: a mapping is required, but this is a whole number in "- 5"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestMergedMappings(t *testing.T) {
	var f file
	text := "inner:\n  - &a {connections: 1}\n  - {<<: *a, connections: 2}\n" +
		"  - {connections: 3, <<: *a}\n  - {<<: *a}\n"
	if err := strictyaml.Decode("s.yaml", []byte(text), &f); err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, x := range f.Inner {
		got = append(got, x.Connections)
	}
	if fmt.Sprint(got) != "[1 2 3 1]" {
		t.Errorf("connections %v", got)
	}
}

func TestATagIsNoPanic(t *testing.T) {
	err := strictyaml.Decode("s.yaml", []byte("inner: !x\n"), &file{})
	if err == nil || !strings.Contains(err.Error(), "s.yaml") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestProblemsNameTheLineOfTheirPath(t *testing.T) {
	d, err := strictyaml.Parse("s.yaml", []byte("a: 1\nrate: 0\nlist:\n  - {rate: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	check := func(d *strictyaml.Document, path, want string) {
		t.Helper()
		if got := d.Problem(path, "rate is not positive", "").Error(); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	check(d, "rate", `s.yaml:2: rate is not positive in "rate: 0"`)
	check(d, "list[0].rate", `s.yaml:4: rate is not positive in "- {rate: 0}"`)
	check(d, "$.list[0].rate", `s.yaml:4: rate is not positive in "- {rate: 0}"`)
	check(d, "list[0].none", `s.yaml:4: rate is not positive in "- {rate: 0}"`)
	check(d, "none", `s.yaml: rate is not positive`)
	check(d, "$", `s.yaml: rate is not positive`)
	check(nil, "list[0].rate", `list[0].rate: rate is not positive`)
}

func TestWhatEditorsAndAliasesMake(t *testing.T) {
	var f file
	err := strictyaml.Decode("s.yaml", []byte("\ufeffname: &n a\ncount: 3\n"), &f)
	if err != nil || f.Name != "a" || f.Count != 3 {
		t.Errorf("%+v, %v", f, err)
	}
}
