package tidy

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		line string
		want []string
		err  string // part of the error; empty: none
	}{
		{line: "prony run  --seed 42", want: []string{"prony", "run", "--seed", "42"}},
		{line: " prony\trun ", want: []string{"prony", "run"}},
		{line: `prony run 'a b' "c d" e\ f`, want: []string{"prony", "run", "a b", "c d", "e f"}},
		{line: `--name=a" b"c`, want: []string{"--name=a bc"}}, // quotes inside a word join
		{line: `x '' ""`, want: []string{"x", "", ""}},
		{line: `"a\"b\\c\d"`, want: []string{`a"b\c\d`}}, // a backslash stays before plain letters
		{line: `'a\b$c|d'`, want: []string{`a\b$c|d`}},
		{line: "run # in a minute | or so", want: []string{"run"}},
		{line: "a#b", want: []string{"a#b"}}, // a comment starts a word
		{line: "café …", want: []string{"café", "…"}},
		{line: "prony run | tee log", err: "needs a shell"},
		{line: "prony run > log", err: "needs a shell"},
		{line: "prony run $SUITE", err: "needs a shell"},
		{line: `prony run "$SUITE"`, err: "needs a shell"},
		{line: "prony 'run", err: "without closing quote `'`"},
		{line: `prony "run`, err: "without closing quote `\"`"},
		{line: `prony \`, err: "backslash"},
	} {
		got, err := split(row.line)
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("split(%q): error %v, want %q", row.line, err, row.err)
			}
		} else if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("split(%q) = %q, %v, want %q", row.line, got, err, row.want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	for _, row := range []struct{ text, want string }{ // want: the code lines, joined by /
		{"a\n```\nb\n```\nc", "b"},
		{"```sh\n$ x\n```", "$ x"},
		{"~~~\n```\n~~~", "```"},            // another mark does not close
		{"````\n```\n````\nout", "```"},     // a shorter fence does not close
		{"```\n``` go\nx\n```", "``` go/x"}, // a fence with words after it does not close
		{"- item\n\n  ```\n  a\n    b\n  ```\n", "a/  b"},
		{"```inline``` code\ntext", ""},
		{"```\nnever closed", "never closed"},
		{"```\r\nx\r\n```\r\n", "x"},
	} {
		var code []string
		for _, line := range markdown(row.text) {
			if line.code {
				code = append(code, line.text)
			}
		}
		if got := strings.Join(code, "/"); got != row.want {
			t.Errorf("markdown(%q): code %q, want %q", row.text, got, row.want)
		}
	}
}

const guide = `# Guide
$ prony outside of a fence

` + "```" + `
$ prony run suites/a.yaml \
    --seed 42
tier  target
  1   x

$ ls
a
$ prony
$ prony report 'my run'
$
x
` + "```" + `
text
` + "```" + `
$ pronyx no
  $ prony not a prompt
$
$ prony show $RUN
` + "```" + `
`

func TestCommandsIn(t *testing.T) {
	got, err := commandsIn("docs/guide.md", guide)
	want := []Command{
		{"docs/guide.md", 5, []string{"run", "suites/a.yaml", "--seed", "42"},
			[]string{"tier  target", "  1   x"}},
		{"docs/guide.md", 12, []string{}, nil},
		{"docs/guide.md", 13, []string{"report", "my run"}, nil},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("commands\n%+v, want\n%+v", got, want)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "docs/guide.md:22: split") {
		t.Errorf("error %v, want one about line 20", err)
	}
}

func TestCommandsReadsTheRightFiles(t *testing.T) {
	root := t.TempDir()
	block := []byte("```\n$ prony run\n```\n")
	for _, name := range []string{
		"go.mod", "README.md", "CONTRIBUTING.md", "docs/a.md", "docs/formats/b.md", "docs/c.txt",
		"services/x/README.md", "services/x/src/README.md", "STYLE.md", "node_modules/README.md",
		"docs/node_modules/d.md",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, block, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands, err := Commands(root) // without git it walks
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range commands {
		got = append(got, c.File)
	}
	want := []string{
		"CONTRIBUTING.md", "README.md", "docs/a.md", "docs/formats/b.md", "services/x/README.md",
	}
	if !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}
