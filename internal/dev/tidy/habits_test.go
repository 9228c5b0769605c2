package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

const maxShellLines = 20

// commented are the endings and names of files in whose plain text marks of unfinished work are
// searched. In Go they are searched only in comments, and prose may mention the marks.
const commented = ".css .html .java .js .kt .mjs .mk .py .rs .sh .ts .toml .yaml .yml " +
	"Dockerfile Makefile run"

var (
	mark      = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b(\([^()]+\))?`)
	shebang   = regexp.MustCompile(`^#!.*\b(ba|da|z|k)?sh\b`)
	swallowed = regexp.MustCompile(`\|\|\s*(true|:)(\s|;|\)|$)`)
)

// findScripts forbids orchestration in shell, and ignored failures in the files of the build and
// its checks.
func findScripts(t tree) []problem {
	var problems []problem
	for _, name := range t.names() {
		lines := strings.Split(strings.TrimSuffix(t[name], "\n"), "\n")
		shell := path.Ext(name) == ".sh" || shebang.MatchString(lines[0])
		if shell && len(lines) > maxShellLines {
			problems = append(problems, problem{name, 0, fmt.Sprintf(
				"%d lines of shell, limit %d: write it in Go", len(lines), maxShellLines)})
		}
		if !shell && !buildsOrChecks(name) {
			continue
		}
		for i, line := range lines {
			if swallowed.MatchString(line) {
				problems = append(problems, problem{name, i + 1, "swallows a failure: say which " +
					"one may happen, and test for it"})
			}
		}
	}
	return problems
}

func buildsOrChecks(name string) bool {
	dir, base := path.Split(name)
	return base == "Makefile" || path.Ext(base) == ".mk" || strings.HasPrefix(name, ".ci/") ||
		dir == ".github/workflows/" || base == ".gitlab-ci.yml"
}

// findComments reports unfinished work without a reason, and code that was commented out.
func findComments(t tree) []problem {
	var problems []problem
	for _, s := range t.sources() {
		docs := docComments(s.file)
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				problems = append(problems, commentProblems(s, c, docs[group])...)
			}
		}
	}
	for _, name := range t.names() {
		if !inTestdata(name) &&
			(matches(commented, path.Ext(name)) || matches(commented, path.Base(name))) {
			for i, line := range strings.Split(t[name], "\n") {
				problems = append(problems, unfinished(name, i+1, line)...)
			}
		}
	}
	return problems
}

func commentProblems(s source, c *ast.Comment, doc bool) []problem {
	var problems []problem
	text := strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
	for i, line := range strings.Split(text, "\n") {
		at := s.line(c.Pos()) + i
		problems = append(problems, unfinished(s.name, at, line)...)
		line = strings.TrimPrefix(line, "//")
		// A doc comment's indented block is an example (go.dev/doc/comment).
		if doc && strings.HasPrefix(line, "\t") {
			continue
		}
		if isCode(strings.TrimSpace(line)) {
			problems = append(problems, problem{s.name, at, "is code in a comment: git keeps it; " +
				"an example belongs, indented, into a doc comment"})
		}
	}
	return problems
}

func unfinished(name string, at int, line string) []problem {
	var problems []problem
	for _, m := range mark.FindAllStringSubmatch(line, -1) {
		if m[2] == "" {
			problems = append(problems, problem{name, at, m[1] + " without a reason: do it, or " +
				"write " + m[1] + "(why it waits)"})
		}
	}
	return problems
}

// docComments returns the comments that godoc shows.
func docComments(file *ast.File) map[*ast.CommentGroup]bool {
	docs := map[*ast.CommentGroup]bool{file.Doc: true}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			docs[n.Doc] = true
		case *ast.FuncDecl:
			docs[n.Doc] = true
		case *ast.TypeSpec:
			docs[n.Doc] = true
		case *ast.ValueSpec:
			docs[n.Doc] = true
		case *ast.Field:
			docs[n.Doc] = true
		}
		return true
	})
	return docs
}

// isCode reports whether a line of a comment is a Go statement rather than a sentence or a sum. It
// detects lines that open or close a block, define with := or assign the result of x.f(…); plain
// sums and calls, such as x = max(1, 2), are permitted, because rows of tests show their arithmetic
// so.
func isCode(line string) bool {
	switch {
	case line == "{" || line == "}" || line == "})" || line == "},":
		return true
	case strings.HasSuffix(line, "{"):
		line = strings.TrimPrefix(strings.TrimPrefix(line, "} "), "else ")
		return isStatement(line+"}", blockOrAssignment) || isDeclaration(line+"}") ||
			isStatement(line+"}()", anyStatement) || isStatement(line+"})", anyStatement)
	case strings.HasSuffix(line, "}"):
		return isStatement(line, blockOrAssignment) || isDeclaration(line)
	}
	return isStatement(line, assignment)
}

// isStatement reports whether a text is statements of which the last is of a kind.
func isStatement(text string, kind func(ast.Stmt) bool) bool {
	const before = "package p; func f() { "
	file, err := parser.ParseFile(token.NewFileSet(), "", before+text+"\n}", 0)
	if err != nil || len(file.Decls) != 1 {
		return false
	}
	body := file.Decls[0].(*ast.FuncDecl).Body.List
	return len(body) > 0 && kind(body[len(body)-1])
}

func isDeclaration(text string) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+text, 0)
	return err == nil && len(file.Decls) > 0
}

func anyStatement(ast.Stmt) bool { return true }

// blockOrAssignment excludes types and values, as in "an empty struct{}".
func blockOrAssignment(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.LabeledStmt:
		return false
	}
	return true
}

func assignment(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	if !ok {
		return false
	}
	if a.Tok == token.DEFINE {
		return true
	}
	call, ok := a.Rhs[len(a.Rhs)-1].(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := f.X.(*ast.Ident)
	return !ok || pkg.Name != "math"
}

func TestScripts(t *testing.T) {
	lines := func(n int) string { return strings.Repeat("x\n", n) }
	for _, row := range []struct {
		name, text string
		want       []string
	}{
		{"a.sh", lines(20), nil},
		{"a.sh", lines(21), []string{"a.sh: 21 lines of shell, limit 20"}},
		{".ci/run", "#!/usr/bin/env bash\n" + lines(20), []string{".ci/run: 21 lines of shell"}},
		{"a.py", "#!/usr/bin/env python3\n" + lines(20), nil},
		{"Makefile", "test:\n\tgo test || true\n", []string{"Makefile:2: swallows a failure"}},
		{".ci/run", "x||true;y", []string{".ci/run:1: swallows"}},
		{".github/workflows/ci.yml", "run: x || :", []string{".github/workflows/ci.yml:1: swall"}},
		{"a.sh", "(x || true)", []string{"a.sh:1: swallows"}},
		{"Makefile", "x || exit 1\ny || truelove\n", nil},
		{"a.go", "ok := x || true", nil},
	} {
		red(t, findScripts, tree{row.name: row.text}, row.want...)
	}
}

func TestComments(t *testing.T) {
	const do = "TO" + "DO"
	for _, row := range []struct{ name, text, want string }{
		{"a.go", "package p\n\n// " + do + ": more\n", "a.go:3: " + do + " without a reason"},
		{"a.go", "package p\n\n/* a\n" + do + "() */\n", "a.go:4: " + do + " without a reason"},
		{"a.go", "package p\n\n// " + do + "(needs Go 1.27): more\n", ""},
		{"a.go", "package p\n\nvar s = `" + do + "`\n", ""},
		{"services/x/a.py", "# FIX" + "ME later\n", "services/x/a.py:1: FIX" + "ME without"},
		{"services/x/Dockerfile", "# XX" + "X\n", "services/x/Dockerfile:1: XX" + "X without"},
		{"STYLE.md", "no " + do + " without a reason\n", ""},
		{"a.go", "package p\n\n// Use so:\n//\n//\tx := f()\ntype T int\n", ""},
		{"a.go", "package p\n\n// x := f()\ntype T int\n", "a.go:3: is code in a comment"},
		{"a.go", "package p\n\nfunc f() {\n\t//\tx := f()\n}\n", "a.go:4: is code"},
		{"a.go", "package p\n\nvar a = 1 // x := f()\n", "a.go:3: is code"},
		{"a.go", "package p\n\n/*\nx := f()\n*/\n", "a.go:4: is code"},
	} {
		var want []string
		if row.want != "" {
			want = []string{row.want}
		}
		red(t, findComments, tree{row.name: row.text}, want...)
	}
}

func TestIsCode(t *testing.T) {
	for line, want := range map[string]bool{
		"x := 1":                       true,
		"a, err := s.f(x)":             true,
		"err = s.f(x)":                 true,
		"s.x = pkg.New(y)":             true,
		"if err != nil {":              true,
		"} else {":                     true,
		"} else if x > 1 {":            true,
		"for i := range n {":           true,
		"func (t T) f() {":             true,
		"type T struct {":              true,
		"defer func() {":               true,
		"t.Run(name, func(t *T) {":     true,
		"if x { return }":              true,
		"x = T{1, 2}":                  true,
		"}":                            true,
		"})":                           true,
		"This is a sentence.":          false,
		"for the rest, see below":      false,
		"mean = (1 + 2 + 3) / 3":       false,
		"mean = (1 + 2 + 3) / 3 = 2":   false,
		"se = sqrt(2 / 3)":             false,
		"x = max(1, 2)":                false,
		"y = math.Sqrt(2)":             false,
		"the set {1, 2}":               false,
		"an empty struct{}":            false,
		"struct{}":                     false,
		`{"version": 1}`:               false,
		"{1, 2}":                       false,
		"a route such as /owners/{id}": false,
		"n = 3":                        false,
		"":                             false,
	} {
		if got := isCode(line); got != want {
			t.Errorf("isCode(%q) = %v", line, got)
		}
	}
}
