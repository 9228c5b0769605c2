package strictyaml_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"prony.example/internal/base/strictyaml"
	"prony.example/internal/base/strictyaml/formattest"
)

// kinds has a key of each numeric kind, in all places.
type kinds struct {
	Whole   int             `yaml:"whole" json:"whole"`
	Small   int8            `yaml:"small" json:"small"`
	Wide    uint64          `yaml:"wide" json:"wide"`
	Short   uint16          `yaml:"short" json:"short"`
	Decimal float64         `yaml:"decimal" json:"decimal"`
	Size    strictyaml.Size `yaml:"size" json:"size"`
	Time    time.Duration   `yaml:"time" json:"-"`
	Maybe   *int            `yaml:"maybe" json:"maybe"`
	List    []int           `yaml:"list" json:"list"`
	Pair    [2]uint64       `yaml:"pair" json:"pair"`
	Named   map[string]int  `yaml:"named" json:"named"`
	Inner   []inner         `yaml:"inner" json:"inner"`
	Shared  `yaml:",inline"`
}

type inner struct {
	Deep map[string][]float64 `yaml:"deep" json:"deep"`
}

// Shared is embedded.
type Shared struct {
	Common int `yaml:"common" json:"common"`
}

func TestNumbersAreExact(t *testing.T) { formattest.Numbers(t, &kinds{}) }

// A text has the spelling of the file, also as a key, and if it looks like a number.
func TestTextsAreExact(t *testing.T) {
	type texts struct {
		Git   string            `yaml:"git"`
		Body  *string           `yaml:"body"`
		List  []string          `yaml:"list"`
		Named map[string]string `yaml:"named"`
		Any   map[string]any    `yaml:"any"`
		Count int               `yaml:"count"`
	}
	check := func(document, want string) {
		t.Helper()
		var v texts
		d, err := strictyaml.Parse("f", []byte(document))
		if err == nil {
			err = d.Decode(&v)
		}
		var second texts
		if err == nil {
			err = strictyaml.Decode("f", []byte(document), &second)
		}
		got, _ := json.Marshal(v)
		if again, _ := json.Marshal(second); err != nil || string(got) != string(again) ||
			!strings.Contains(string(got), want) {
			t.Errorf("%s is %s and %s, %v, want %s", document, got, again, err, want)
		}
	}
	check("git: 1.10", `"Git":"1.10"`)
	check("body: 010", `"Body":"010"`)
	check("body: null", `"Body":null`)
	check("list: [1e3, 0x1F, True, .5, 2020-01-02, ~]",
		`"List":["1e3","0x1F","True",".5","2020-01-02",""]`)
	check("named: {1.10: 1.50, 010: a, TRUE: False}",
		`"Named":{"010":"a","1.10":"1.50","TRUE":"False"}`)
	check("any: {a: 1.5}", `"Any":{"a":1.5}`)
	check("git: &n 010\nbody: *n", `"Git":"010","Body":"010"`)
	check("git: &n 10\ncount: *n", `"Count":10`)
	check("named: &a {b: 1.0}\ngit: x", `"Named":{"b":"1.0"}`)
	check("# a\n", `"Git":""`)
	check("", `"Git":""`)
}

// Aliases and merged mappings are checked where they are written.
func TestNumbersBehindAliases(t *testing.T) {
	check := func(document, want string) {
		t.Helper()
		err := strictyaml.Decode("f", []byte(document), &kinds{})
		if want == "" && err == nil {
			return
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q is read with %v, want %s", document, err, want)
		}
	}
	check("wide: &n 3\nwhole: *n\n", "")
	check("decimal: &n 2.5\nwhole: *n\n", "f:1: whole must be a whole number, not 2.5")
	check("inner: [{deep: {x: &l [1.5]}}]\nlist: *l\n", "f:1: list must be a whole number")
	check("whole: 2.5\nsmall: 300\n", "f:1: whole must be a whole number, not 2.5 in")
	check("whole: 1\nsmall: 300\n", "f:2: small must be at most 127, not 300")
	check("short: -1\n", "f:1: short must be 0 to 65535, not -1")
	check("whole: !!int \"3\"\n", "f:1: whole must be a whole number")
	check(`whole: ""`, `f:1: whole must be a whole number, not ""`) // a text, not a missing value
	check("whole: ''", "f:1: whole must be a whole number, not ''")
	check("whole:", "f:1: whole has no value")
}

// JSON of users has the same numbers, and null is none.
func TestJSONNumbers(t *testing.T) {
	check := func(document, want string) {
		t.Helper()
		err := strictyaml.JSON(strings.NewReader(document), &kinds{})
		if got := "nil"; want == "" && err == nil {
			return
		} else if err != nil {
			got = err.Error()
			if strings.Contains(got, want) && want != "" {
				return
			}
			t.Errorf("%s: %s, want %q", document, got, want)
			return
		}
		t.Errorf("%s is read, want %q", document, want)
	}
	check(`{"whole": 3, "decimal": 1e3, "named": {"a": 2}, "inner": [{"deep": {"a": [2.5]}}]}`, "")
	check(`{"whole": 2.5}`, "whole must be a whole number, not 2.5")
	check(`{"whole": 3.0}`, "whole must be a whole number, not 3.0")
	check(`{"wide": -1}`, "wide must be 0 to 18446744073709551615, not -1")
	check(`{"whole": "3"}`, `whole must be a whole number, not "3"`)
	check(`{"whole": null}`, "whole has no value; write a number, or remove the key")
	check(`{"size": null}`, "size has no value; write a number, or remove the key")
	check(`{"list": [1, null]}`, "list has no value")
	check(`{"named": {"a": 1e3}}`, "a must be a whole number, not 1e3")
	check(`{"inner": [{"deep": {"a": ["1"]}}]}`, `a must be a decimal number, not "1"`)
	check(`{"common": 99999999999999999999}`, "common must be at most 9223372036854775807")
	check(`{"whole": 1} {}`, "more than one JSON value")
	check(`{"hole": 1}`, `unknown field "hole"`)
	check("{\"whole\": 1,\n\"whole\": 2}", `line 2: the key "whole" occurs twice in one object`)
}
