package jsontree_test

import (
	"strings"
	"testing"

	"prony.example/internal/base/jsontree"
)

func TestParse(t *testing.T) {
	n, err := jsontree.Parse([]byte(`{"a": [1,
		2.50, "x", null, true],
		"b": {"c": -1e3}}`), 5)
	if err != nil {
		t.Fatal(err)
	}
	list := n.Path("a")
	if list.Kind != jsontree.List || len(list.Inside) != 5 || list.Inside[1].Text != "2.50" ||
		list.Inside[1].Line != 6 || list.Inside[2].Kind != jsontree.String ||
		list.Inside[3].Kind != jsontree.Null || list.Inside[4].Kind != jsontree.Bool {
		t.Errorf("the list is %+v", list)
	}
	if c := n.Path("b", "c"); c == nil || c.Text != "-1e3" || c.Line != 7 || c.Key != "c" {
		t.Errorf("b.c is %+v", c)
	}
	if n.Path("b", "d", "e") != nil || n.Path("a", "x") != nil {
		t.Error("it has members that the text does not have")
	}
}

func TestParseRefuses(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		_, err := jsontree.Parse([]byte(text), 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("of %q: error %v, want %q", text, err, want)
		}
	}
	check("", "line 1: the text ends before the JSON value does")
	check("{\"a\": 1,\n\"b\": [2,\n\n", "line 2: the text ends before the JSON value does")
	check("{\"a\":\n NaN}", "line 2: invalid character 'N'")
	check("{\"a\": 1}\n{\"a\": 2}", "line 2: there is more text after the end of the JSON value")
	check("[1,\n2 3]", "line 2: ")
	check("{1: 2}", "line 1: ")
	check(strings.Repeat("[", 70), "nested deeper than 64")
}

// FuzzParse checks that every text is an error or a tree, and that lines ascend.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "{}", "[1, {\"a\": null}]", "{\"a\": 1e999}", "[\n\n1\n]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := jsontree.Parse([]byte(text), 1)
		if err != nil {
			return
		}
		last := 1
		var walk func(*jsontree.Node)
		walk = func(n *jsontree.Node) {
			if n.Line < last {
				t.Errorf("line %d follows line %d", n.Line, last)
			}
			last = n.Line
			for _, item := range n.Inside {
				walk(item)
			}
		}
		walk(n)
	})
}
