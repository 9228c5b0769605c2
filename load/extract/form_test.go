package extract

import (
	"encoding/json"
	"testing"
)

// A form gives the object that it was made from, also after JSON.
func TestForms(t *testing.T) {
	finders := []*Finder{Body()}
	for _, f := range []func() (*Finder, error){
		func() (*Finder, error) { return JSON(`pets.#(kind=="dog").id`) },
		func() (*Finder, error) { return Header("X-Next") },
		func() (*Finder, error) { return HeaderRegex("Location", `/(\d+)$`) },
		func() (*Finder, error) { return Regex(`name="(.*?)"`) },
	} {
		finders = append(finders, must(t)(f()))
	}
	vars := []string{"id"}
	check := func(c Check, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(c.Form())
		if err != nil {
			t.Fatal(err)
		}
		var form CheckForm
		if err := json.Unmarshal(b, &form); err != nil {
			t.Fatal(err)
		}
		again, err := form.Check(vars)
		if err != nil || again.String() != c.String() || again.Of.kind != c.Of.kind ||
			again.kind != c.kind || again.not != c.not || (again.want == nil) != (c.want == nil) {
			t.Errorf("%s: %s, %v", &c, &again, err)
		}
	}
	for _, f := range finders {
		check(Is(f, "a {id}", vars))
		check(Contains(f, "{id}", vars))
		check(Matches(f, "^a+$"))
		check(Exists(f, true), nil)
		check(Exists(f, false), nil)
	}
	for _, bad := range []CheckForm{{}, {Of: Form{Kind: "body"}}, {Of: Form{Kind: "x"}, Verb: "is"},
		{Of: Form{Kind: "regex", Text: "("}, Verb: "exists"},
		{Of: Form{Kind: "body"}, Verb: "is", Text: "{nobody}"}} {
		if _, err := bad.Check(vars); err == nil {
			t.Errorf("%+v makes a check", bad)
		}
	}
}
