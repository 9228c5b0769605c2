package shellwords_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/shellwords"
)

// Split removes quotes; what takes more is left to a shell. FuzzWords of internal/suite/adhoc holds
// it against a real one.
func TestSplit(t *testing.T) {
	check := func(command string, want ...string) {
		t.Helper()
		if got, err := shellwords.Split(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", command, got, err, want)
		}
	}
	check("")
	check(" # a comment")
	check("a  b\tc # comment", "a", "b", "c")
	check(`'a b' "c d" e\ f '' ""`, "a b", "c d", "e f", "", "")
	check(`"a\"b\\c\d\$" 'a\b$c|d'`, `a"b\c\d$`, `a\b$c|d`)
	check(`A='b c' B= run {port} a#b {x,y}`, "A=b c", "B=", "run", "{port}", "a#b", "{x,y}")
	check("a \\\n b", "a", "b")
	check(`a \* \~ '*' "~"`, "a", "*", "~", "*", "~")
	for _, command := range []string{"a | b", "a > b", "a &", "a;", "a; b", "a\nb", "! a", "a $b",
		`a "$b"`, "a `b`", "a $(b)", "a *.go", "a [bc]", "a ?", "~/a", "(a)", "if a; then b; fi",
		"a\rb", "a $'b'"} {
		if got, err := shellwords.Split(command); !errors.Is(err, shellwords.ErrNeedsShell) {
			t.Errorf("%q: %q, %v, want that it needs a shell", command, got, err)
		}
	}
	for command, want := range map[string]string{"a )": "line 1: ",
		"a 'b": "line 1: reached EOF without closing quote", "a\n\"b": "line 2: reached EOF",
		`a \`: "the command ends with a backslash that escapes no character"} {
		got, err := shellwords.Split(command)
		if err == nil || errors.Is(err, shellwords.ErrNeedsShell) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %s", command, got, err, want)
		}
	}
}

// Commands finds every command of a script and evaluates none.
func TestCommands(t *testing.T) {
	check := func(script string, want string) {
		t.Helper()
		named := func(name string) string { return "<" + name + ">" }
		got, err := shellwords.Commands(script, named)
		text := fmt.Sprintf("%q", got)
		if err != nil {
			text = err.Error()
		}
		if text != want {
			t.Errorf("%q: %s, want %s", script, text, want)
		}
	}
	check("", `[]`)
	check("a b\n# c\nd | e & f", `[["a" "b"] ["d"] ["e"] ["f"]]`)
	check(`a $B "${C}d" '$E' ${F:-g} $1`, `[["a" "<B>" "<C>d" "$E" "${F:-g}" "$1"]]`)
	check("a \"$(b c)\" `d` $((1+2))", "[[\"a\" \"$(b c)\" \"`d`\" \"$((1+2))\"]]")
	check(`a $'b\n\u0041\x42\'é\"\!\\'`, `[["a" "b\nAB'é\"!\\"]]`)
	check("a \\\n b ^\n c ^\r\n d", `[["a" "b" "c" "d"]]`)
	check("a b?c=d&e=f", `[["a" "b?c=d"] ["e=f"]]`)
	check("a * ~ {b,c}", `[["a" "*" "~" "{b,c}"]]`)
	check("a\nb 'c", "line 2: reached EOF without closing quote `'`")
}
