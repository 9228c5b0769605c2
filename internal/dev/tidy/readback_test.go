package tidy

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// wordingPackage puts facts into words. Whoever needs a fact takes the value: a text is for people.
const wordingPackage = Module + "/internal/analysis/wording"

// wordsFields are the fields of record.Words, which are texts.
var wordsFields = []string{"Observed", "Limit", "Hint", "Amount"}

// takingApart are the functions that look into a text, by package; "" is a method of a pattern.
var takingApart = map[string]string{
	"strings": "Contains ContainsAny ContainsFunc ContainsRune Count Cut CutPrefix CutSuffix " +
		"EqualFold Fields FieldsFunc FieldsFuncSeq FieldsSeq HasPrefix HasSuffix Index IndexAny " +
		"IndexByte IndexFunc IndexRune LastIndex LastIndexByte Map NewReader Replace ReplaceAll " +
		"Split SplitAfter SplitN SplitSeq Trim TrimFunc TrimLeft TrimPrefix TrimRight TrimSuffix",
	"strconv": "Atoi ParseFloat ParseInt ParseUint",
	"fmt":     "Sscan Sscanf Sscanln",
	"time":    "ParseDuration",
	"": "MatchString FindString FindStringIndex FindStringSubmatch FindStringSubmatchIndex " +
		"FindAllString FindAllStringIndex FindAllStringSubmatch FindAllStringSubmatchIndex " +
		"ReplaceAllString ReplaceAllStringFunc",
}

// findReadBack reports code that takes a finding, a limit or a note in words apart, or compares it
// with a text.
func findReadBack(t tree) []problem {
	var problems []problem
	for _, s := range t.sources() {
		if s.test || !s.module || s.generated || s.dir == "internal/analysis/wording" {
			continue
		}
		problems = append(problems, readBackIn(s)...)
	}
	return problems
}

func readBackIn(s source) []problem {
	var problems []problem
	imports := importNames(s.file)
	in := &worded{imports: imports}
	for _, d := range s.file.Decls {
		in.names = nil
		ast.Inspect(d, func(n ast.Node) bool { in.assigned(n); return true })
		ast.Inspect(d, func(n ast.Node) bool {
			if in.readsBack(n) {
				problems = append(problems, s.problem(n.Pos(), "a text is taken apart: use the "+
					"value of the finding, limit or note that it was made from"))
			}
			return true
		})
	}
	return problems
}

// worded knows which expressions of a declaration are texts made of facts.
type worded struct {
	imports map[string]string
	names   []string // variables that hold some
}

// assigned notes the variables that a text is assigned to.
func (w *worded) assigned(n ast.Node) {
	a, ok := n.(*ast.AssignStmt)
	if !ok || !slices.ContainsFunc(a.Rhs, w.has) {
		return
	}
	for _, to := range a.Lhs {
		if id, ok := to.(*ast.Ident); ok && id.Name != "_" {
			w.names = append(w.names, id.Name)
		}
	}
}

// has tells whether a text is part of an expression.
func (w *worded) has(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, isName := n.X.(*ast.Ident)
			inner, isField := n.X.(*ast.SelectorExpr)
			found = found || isName && w.imports[x.Name] == wordingPackage ||
				isField && inner.Sel.Name == "Text" && slices.Contains(wordsFields, n.Sel.Name) ||
				n.Sel.Name == "String" && isNote(n.X)
		case *ast.Ident:
			found = found || slices.Contains(w.names, n.Name)
		}
		return !found
	})
	return found
}

// isNote goes by the name of what is printed: types are not known here.
func isNote(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.EqualFold(name, "note")
}

// readsBack tells whether a call looks into a text, or a comparison holds one against another text.
func (w *worded) readsBack(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || !slices.ContainsFunc(n.Args, w.has) {
			return false
		}
		pkg := ""
		if x, ok := f.X.(*ast.Ident); ok {
			pkg = w.imports[x.Name]
		}
		return slices.Contains(strings.Fields(takingApart[pkg]), f.Sel.Name)
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) &&
			(w.has(n.X) && isQuoted(n.Y) || w.has(n.Y) && isQuoted(n.X))
	case *ast.SwitchStmt:
		return n.Tag != nil && w.has(n.Tag)
	}
	return false
}

// isQuoted tells whether an expression is a text in quotes that is not empty.
func isQuoted(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && len(lit.Value) > 2
}

func TestFindReadBack(t *testing.T) {
	const head = "package p\n\nimport (\n\t\"strings\"\n\n\t\"" + wordingPackage + "\"\n)\n\n"
	check := func(body string, want ...string) {
		t.Helper()
		red(t, findReadBack, tree{"internal/p/p.go": head + body + "\n"}, want...)
	}
	const is = "internal/p/p.go:10: a text is taken apart"
	check("func f(l limit) bool {\n\treturn strings.Contains(wording.Limit(l), \"cpu\")\n}", is)
	check("func f(x finding) bool {\n\tw := wording.Finding(x); return w.Observed == \"none\"\n}",
		is)
	check("func f(x finding) (a string) {\n\ta, _, _ = strings.Cut(x.Text.Observed, \" \")\n"+
		"\treturn a\n}", is)
	check("func f(x finding) []string {\n\treturn amount.FindStringSubmatch(wording.Against(x))\n}",
		is)
	check("func f(n row) bool {\n\treturn strings.HasPrefix(n.Note.String(), \"unknown\")\n}", is)
	check("func f(x finding) int {\n\tswitch wording.Against(x) { case \"no limit\": return 1 }\n"+
		"\treturn 0\n}", is)
	check("func f(x limits) bool {\n\tt := wording.Limits(x); return strings.Contains(t[0], a)\n"+
		"}", is)
	// To print it, to see whether there is one, and to look into something else, is right.
	check("func f(x finding) string {\n\tw := wording.Finding(x)\n\tif w.Hint == \"\" {\n" +
		"\t\treturn \"\"\n\t}\n\treturn w.Observed + wording.Against(x)\n}")
	check("func f(name string) bool {\n\treturn strings.Contains(name, \"cpu\")\n}")
	red(t, findReadBack, tree{"internal/analysis/wording/w.go": "package wording\n\n" +
		"func f(x finding) bool {\n\treturn x.Text.Observed == \"none\"\n}\n"})
}
