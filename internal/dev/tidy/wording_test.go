package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wordingFile lists how many banned constructions each file still has. Numbers only decrease.
const wordingFile = "testdata/wording.txt"

// markup matches the parts of Markdown that are code, a comment, or an address.
var markup = regexp.MustCompile("`[^`]*`|<!--.*?-->|\\]\\([^)]*\\)")

// listItem matches a line that begins a paragraph of its own: of a list, a table, or a quotation.
var listItem = regexp.MustCompile(`^\s*([-*+]|\d+\.|>|\|)\s*`)

// findWording finds the banned constructions in the pages for users and in the output of programs.
func findWording(t tree) []problem {
	var problems []problem
	for _, name := range t.names() {
		if name == "README.md" || name == "SECURITY.md" ||
			path.Dir(name) == "docs" && path.Ext(name) == ".md" {
			problems = append(problems, wordingOfPage(name, t[name])...)
		}
	}
	for _, s := range t.sources() {
		if !s.test && s.module && matches("cmd/... internal/...", s.dir) &&
			!matches("internal/dev/...", s.dir) {
			problems = append(problems, wordingOfCode(s)...)
		}
	}
	return problems
}

// wordingOfPage checks the paragraphs of a page, without its headings and code blocks.
func wordingOfPage(name, text string) (problems []problem) {
	eachParagraph(text, func(line int, paragraph string) {
		for cell := range strings.SplitSeq(paragraph, "|") {
			for _, fault := range Wording(strings.Trim(cell, " *_")) {
				problems = append(problems, problem{name, line, fault})
			}
		}
	}, func(code string) string {
		if strings.HasPrefix(code, "`") {
			return "CODE"
		}
		return ""
	})
	return problems
}

// eachParagraph calls a function with the first line and the text of each paragraph of a page:
// headings and code blocks are none. Markup is replaced.
func eachParagraph(text string, do func(line int, paragraph string), replace func(string) string) {
	start, paragraph := 0, ""
	end := func() {
		do(start, paragraph)
		paragraph = ""
	}
	for _, line := range markdown(text) {
		if line.code || strings.HasPrefix(line.text, "#") || strings.TrimSpace(line.text) == "" {
			end()
			continue
		}
		item := listItem.FindString(line.text)
		if item != "" {
			end()
		}
		if paragraph == "" {
			start = line.number
		}
		plain := markup.ReplaceAllStringFunc(line.text[len(item):], replace)
		paragraph += " " + strings.ReplaceAll(plain, "[", "")
	}
	end()
}

// wordingOfCode checks the string literals of a file. Concatenated ones are one text.
func wordingOfCode(s source) (problems []problem) {
	eachText(s, func(at token.Pos, text string) {
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			for _, fault := range Wording(paragraph) {
				problems = append(problems, s.problem(at, "%s", fault))
			}
		}
	})
	return problems
}

// eachText calls a function with each string literal of a file. Those that are added up are one.
func eachText(s source, check func(at token.Pos, text string)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // its tag is no text
			return n.Tag == nil
		case *ast.BinaryExpr:
			if text, ok := added(n); ok {
				check(n.Pos(), text)
				return false
			}
		case *ast.BasicLit:
			if text, ok := added(n); ok {
				check(n.Pos(), text)
			}
		}
		return true
	})
}

// added returns the text of a literal, or of several that are concatenated. Other operands become a
// word.
func added(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, l := added(e.X)
		right, r := added(e.Y)
		return left + right, l || r
	}
	return "VALUE", false
}

// wordingCounts lists the number of problems of each file, one file and number per line.
func wordingCounts(problems []problem) string {
	counts := map[string]int{}
	for _, p := range problems {
		counts[p.file]++
	}
	return namesText(counts)
}

func TestWording(t *testing.T) {
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(wordingFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	problems := sorted(findWording(repository))
	for _, p := range overListed(t, problems, string(text)) {
		if !*update || len(text) > 0 {
			t.Error(p)
		}
	}
	if got := wordingCounts(problems); *update && !t.Failed() {
		if err := os.WriteFile(wordingFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) && !t.Failed() {
		t.Errorf("%s lists more than there are: go test ./internal/dev/tidy -run Wording -update",
			wordingFile)
	}
}

// overListed returns the problems of files that have more of them than a list permits.
func overListed(t *testing.T, problems []problem, list string) []problem {
	t.Helper()
	known := map[string]int{}
	for line := range strings.Lines(list) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Errorf("%s: %q is no file with a number", wordingFile, line)
		}
		known[name] = n
	}
	counts := map[string]int{}
	for _, p := range problems {
		counts[p.file]++
	}
	return slices.DeleteFunc(slices.Clone(problems), func(p problem) bool {
		return counts[p.file] <= known[p.file]
	})
}

func TestWordingIsFound(t *testing.T) {
	const clean = "# What is no sentence\n\nThe load is `in no number`.\n\n```\nmend\n```\n"
	red(t, findWording, tree{"README.md": clean, "docs/formats/a.md": "Whoever.\n",
		"docs/a.md": "What is it? The [load](anew.md).\n"})
	red(t, findWording, tree{"docs/a.md": "A load.\n- Of all loads, one\n  is measured. Those\n" +
		"  are not.\n\n| a | What it is |\n", "SECURITY.md": "Run it for a time, as `30s`, or,\n" +
		"as 30s.\n"},
		`SECURITY.md:1: ", as 3" in`,
		`docs/a.md:2: "Of" in "Of all loads, one is measured.": begin`,
		`docs/a.md:2: "Those" in`, `docs/a.md:6: "What" in "What it is"`)
	const head = "package p\nimport _ \"anew\"\ntype a struct { b int `json:\"anew\"` }\n"
	red(t, findWording, tree{
		"cmd/a.go":      head + "const c = \"these cannot be \" +\n\"told apart\"\n",
		"cmd/a_test.go": head + "const c = `anew`\n", "load/a.go": head + "const c = `anew`\n",
		"internal/a/b.go": head + "var c = f(`, as '1%`, \"A. \" + d + `Of b`, `Who?`)\n"},
		`cmd/a.go:4: "told apart" in "these cannot be told apart": write sig`,
		`internal/a/b.go:4: ", as '1" in`)
}

func TestWordingIsListed(t *testing.T) {
	problems := []problem{{"a.md", 1, "x"}, {"a.md", 2, "x"}, {"b.md", 1, "x"}}
	if got := wordingCounts(problems); got != "a.md 2\nb.md 1\n" {
		t.Errorf("listed as %q", got)
	}
	for list, want := range map[string]int{"": 3, "a.md 2\nb.md 1\n": 0, "a.md 1\nb.md 9\n": 2} {
		if got := overListed(t, problems, list); len(got) != want {
			t.Errorf("with the list %q: %v", list, got)
		}
	}
}

func TestHelpWording(t *testing.T) {
	long := strings.Repeat("word ", HelpWords)
	for _, row := range []struct {
		text string
		flag bool
		want int
	}{
		{"rate of the load", true, 0},
		{"of a request", true, 1},
		{"with --git: build command", true, 0},
		{"with a build command", true, 1},
		{"", true, 0},
		{"Of a request", false, 1},
		{long, false, 0},
		{long + "more", false, 1},
		{"A " + long + ". A " + long, false, 2},
		{"also print more", true, 0},
		{"Short.\n\n  " + long + "more\n\nShort.", false, 0},
		{"Load it - " + long[:len(long)-10], false, 0},
	} {
		check := HelpWording
		if row.flag {
			check = FlagWording
		}
		if got := check(row.text); len(got) != row.want {
			t.Errorf("%q: %v, want %d", row.text, got, row.want)
		}
	}
	if got := fmt.Sprint(Sentences("Use e.g. 5.5 %. It\n(is) so. \"Why?\" (No.)")); got !=
		`[Use e.g. 5.5 %. It (is) so. "Why?" (No.)]` {
		t.Errorf("sentences: %s", got)
	}
}
