package shellwords_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/shellwords"
)

// TestSplit checks that quotes are removed and everything else needs a shell. FuzzWords of
// internal/suite/adhoc compares Split with a real shell.
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

// TestCommands checks that every command of a script is found and none is evaluated.
func TestCommands(t *testing.T) {
	check := func(script string, want string) {
		t.Helper()
		named := func(source, _ string) string {
			if name := strings.Trim(source, "${}"); name != "" && strings.ToUpper(name) == name &&
				!strings.ContainsAny(name, " (:1") {
				return "<" + name + ">"
			}
			return source
		}
		commands, err := shellwords.Commands(script, named)
		var got [][]string
		for _, c := range commands {
			got = append(got, c.Words)
		}
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
	check(`a $'b\n\u0041\x42\'é\"\!\\'`, `[["a" "b\nAB'é\"\\!\\"]]`) // as Bash 5.2 does
	check("a \\\n b ^\n c ^\r\n d", `[["a" "b" "c" "d"]]`)
	check("a b?c=d&e=f", `[["a" "b?c=d"] ["e=f"]]`)
	check("a * ~ {b,c}", `[["a" "*" "~" "{b,c}"]]`)
	check("a\nb 'c", "line 2: reached EOF without closing quote `'`")
}

// Lines for cmd.exe, as browsers copy them, and what the words of a script may not be.
func TestOtherShells(t *testing.T) {
	check := func(script string, want string) {
		t.Helper()
		got, err := shellwords.Commands(script, func(source, _ string) string { return source })
		var text []string
		for _, c := range got {
			text = append(text, fmt.Sprintf("%q%s", c.Words, c.Problem))
		}
		if joined := strings.Join(text, " "); err != nil || joined != want {
			t.Errorf("%q: %s, %v, want %s", script, joined, err, want)
		}
	}
	check(`a ^"b?c=d^&e=f^" --g ^"^{^\^"h^\^":^%^20^}^"`,
		`["a" "b?c=d&e=f" "--g" "{\"h\":%20}"]`)
	check("a \"b c\" ^\r\n  -H \"d: e\" ^\r\n  --f \"g\"\r\nh",
		`["a" "b c" "-H" "d: e" "--f" "g"] ["h"]`)
	check("a ^\"b^\n\nc^\" d\\e \"f\\\\\" \"g\"\"h\" \"\"", `["a" "b\nc" "d\\e" "f\\" "g\"h" ""]`)
	check("a ^\"b^\" &\r\nc ^\"d^\"", `["a" "b"] ["c" "d"]`)
	check("a ^\"b^\" c?d&e",
		`["a" "b" "c?d"]an & or ; that is not in quotes: quote the address ["e"]`)
	check("a ^\"b^\" > c", `["a" "b" "c"]a redirection of cmd.exe: take it away`)
	check("a 'b ^\"c'", `["a" "b ^\"c"]`) // of a POSIX shell

	check("a b?c=d&e=f", `["a" "b?c=d"]an & or ; that is not in quotes: quote the address ["e=f"]`)
	check("a b & c", `["a" "b"] ["c"]`)
	check("a b& c;d", `["a" "b"] ["c"] ["d"]`)
	check("a {b,c} '{b,c}' {b} {1..2", `["a" "{b,c}" "{b,c}" "{b}" "{1..2"]braces that the `+
		`shell expands: put them in quotes`)
	check("a {1..2}", `["a" "{1..2}"]braces that the shell expands: put them in quotes`)
	const typographic = "a typographic quote, dash or space, such as “: type it as ASCII"
	check("a “b c”", `["a" "" ""]`+typographic)
	check("a '“b”' \"c — d\"", `["a" "“b”" "c — d"]`)
	check("a –b", `["a" ""]`+typographic)
	check("a > b 2>&1 < c", `["a"]`)
	check("x=$(a b) c", `["x=$(a b)" "c"]`)
}

// The escapes of $'…' are those of Bash.
func TestEscapes(t *testing.T) {
	check := func(text, want string) {
		t.Helper()
		got, err := shellwords.Commands("$'"+text+"'", nil)
		if err != nil || len(got) != 1 || got[0].Words[0]+got[0].Problem != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	check(`\ud83d\ude00 \041\U0001F600`, "\U0001F600 !\U0001F600")
	check(`\a\b\e\E\f\n\r\t\v\\\'\"\?`, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?")
	check(`\cA\c[\q\xg\x41b\xc3\xa9\7\u21x\u00e9z`, "\x01\x1b\\q\\xgAb\u00e9\a!x\u00e9z")
	check(`\1234\x414\u00410`, "S4A4A0")
	check(`a\400b`, `a NUL (\0) in $'…'`)
	check(`a\0b`, `a NUL (\0) in $'…'`)
	for _, half := range []string{`\ud83d`, `\ud83da\ude00`, `\ude00\ud83d`, `\ud83d\n`,
		`\ud83d\ud83d`, `\ud83d\u0041`} {
		check(half, `half a character (such as \ud83d) in $'…'`)
	}
}

// TestValues checks that the values of variables cannot grow without bounds.
func TestValues(t *testing.T) {
	var script strings.Builder
	script.WriteString("A0=12345678\n")
	for i := range 60 {
		fmt.Fprintf(&script, "A%d=$A%d$A%d\nrun $A%d\n", i+1, i, i, i+1)
	}
	got, err := shellwords.Commands(script.String(), func(_, value string) string { return value })
	size := 0
	for _, c := range got {
		for _, w := range c.Words {
			size += len(w)
		}
	}
	if err != nil || size > 1<<22 {
		t.Errorf("%d bytes, %v", size, err)
	}
}
