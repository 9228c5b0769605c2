package adhoc

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"prony.example/load/extract"
)

// FuzzWords compares Words with a real sh: the arguments of a command that needs no shell are those
// that sh passes to it.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"", "a b  c",
		`a 'b c' "d e"`, `a\ b`, `"\$x" '\'`, `"a\b\"c"`,
		`A=1 b`, "a\\\nb", "\"a\\\nb\"", "a\tb", "a[bc]", "caf\xe9", "words.g[o]", "a ''",
		"a \"\"x", "a\rb", "a # b", "{a,b} {c}"} {
		f.Add(seed)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\x00") {
			return // a program's argument cannot contain it
		}
		// x is a program whose name is not sh's own, so that the rest are arguments.
		got, err := Words("x " + text)
		if err != nil || got[0] == "sh" || got[0] == "env" {
			return
		}
		const each = "set -- %\nprintf '%s\\0' \"$@\"" // a comment ends with the line
		cmd := exec.Command(sh, "-c", strings.Replace(each, "%", "x "+text, 1))
		cmd.Env = []string{"PATH=/dev/null"} // so that it starts no program
		said, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q are words, and sh refuses them: %v", text, err)
		}
		if want := strings.Join(got, "\x00") + "\x00"; string(said) != want {
			t.Errorf("%q is %q, sh has %q", text, got, said)
		}
	})
}

// FuzzLeaves compares the fields of a response with encoding/json: the same number of leaves, and
// each path finds its value.
func FuzzLeaves(f *testing.F) {
	for _, seed := range []string{`{"a":{"b":[1,"x",null]},"c.d":true}`, `[]`, `[[],{}]`, `1`,
		`{"a":1,"a":2}`, `{"":{"":1}}`, `{"*":1,"?":2,"#":3,"@this":4,"|":5}`, `[{"a":1e400}]`,
		`{"a":null,"b":0.0,"c":10.50,"d":1e3,"e":-0,"f":12345678901234567890,"g":"\u00e9\/"}`,
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := leaves(body)
		for path, value := range got {
			find, err := extract.JSON(path)
			if err != nil {
				t.Fatal(err)
			}
			if is, _ := find.Find(nil, body); string(is) != value && distinct(body) {
				t.Errorf("%s is %q, but a check finds %q", path, value, is)
			}
		}
		var v any
		if json.Unmarshal(body, &v) != nil || !utf8.Valid(body) || !distinct(body) {
			return
		}
		if _, leaf := v.(map[string]any); !leaf {
			if _, leaf = v.([]any); !leaf {
				return
			}
		}
		if want := count(v, 0); len(got) != want {
			t.Errorf("%d leaves, encoding/json has %d: %q", len(got), want, got)
		}
	})
}

// count returns the number of leaves of a document that have a path.
func count(v any, depth int) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			if name != "" && depth < maxDepth {
				n += count(x, depth+1)
			}
		}
	case []any:
		for _, x := range v {
			if depth < maxDepth {
				n += count(x, depth+1)
			}
		}
	default:
		n = 1
	}
	return n
}

// distinct reports that no object of a document has a name twice, because readers differ for those.
func distinct(body []byte) bool {
	if !json.Valid(body) {
		return false
	}
	var walk func(gjson.Result) bool
	walk = func(v gjson.Result) bool {
		seen, good := map[string]bool{}, true
		v.ForEach(func(key, value gjson.Result) bool {
			good = good && (v.IsArray() || !seen[key.String()])
			seen[key.String()] = true
			if value.IsObject() || value.IsArray() {
				good = good && walk(value)
			}
			return good
		})
		return good
	}
	return walk(gjson.ParseBytes(body))
}
