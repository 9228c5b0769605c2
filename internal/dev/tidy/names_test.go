package tidy

import (
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of offenders, which only shrink")

// sayNothing are function words and bare participles, which have no meaning as names.
var sayNothing = strings.Fields(`of by at on off as it its own one ones other others both each such
	so then than there where what which who whose told tell tells asked ask asks said say says seen
	held hold holds kept left made meant had has took taken gave given came went
	found unfound wanted
	wants bare whole rest apart away aside amid beside`)

// namesFile lists how many such names each package still declares. Numbers only decrease.
const namesFile = "testdata/names.txt"

// namesMax is the largest share of such names among all declared identifiers.
const namesMax = 0.01

// namesThatSayNothing counts the identifiers that packages declare outside tests, and by package
// those that say nothing.
func namesThatSayNothing(t tree) (all int, odd map[string]int) {
	odd = map[string]int{}
	for _, s := range t.sources() {
		if s.test || !s.module || !matches("internal/... load/... record/... stats/...", s.dir) {
			continue
		}
		for _, id := range declared(s.file) {
			all++
			if slices.Contains(sayNothing, strings.ToLower(id.Name)) {
				odd[s.dir]++
			}
		}
	}
	return all, odd
}

// declared returns the identifiers that a file declares, without blanks.
func declared(file *ast.File) (ids []*ast.Ident) {
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok && id != nil && id.Name != "_" {
				ids = append(ids, id)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.Field:
			for _, id := range n.Names {
				add(id)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return ids
}

// namesText returns the list in the form of its file: a package and its number per line.
func namesText(odd map[string]int) string {
	var lines []string
	for dir, n := range odd {
		lines = append(lines, fmt.Sprintf("%s %d\n", dir, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func TestNames(t *testing.T) {
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	all, odd := namesThatSayNothing(repository)
	sum := 0
	for _, n := range odd {
		sum += n
	}
	if float64(sum) > namesMax*float64(all) {
		t.Errorf(
			"%d of %d declared names say nothing, at most %.0f %% may: name them by what they "+
				"hold",
			sum,
			all,
			100*namesMax,
		)
	}
	text, err := os.ReadFile(namesFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	known := map[string]int{}
	for line := range strings.Lines(string(text)) {
		dir, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		if known[dir], err = strconv.Atoi(count); err != nil {
			t.Errorf("%s: %q is no package with a number", namesFile, line)
		}
	}
	for dir, n := range odd {
		if n > known[dir] && !(*update && len(text) == 0) {
			t.Errorf("%s declares %d names such as %q, %d are listed: name them by what they hold",
				dir, n, "of, at, told", known[dir])
		}
	}
	if got := namesText(odd); *update && !t.Failed() {
		if err := os.WriteFile(namesFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(text) && !t.Failed() {
		t.Errorf("%s lists more than there are: go test ./internal/dev/tidy -run Names -update",
			namesFile)
	}
}

func TestNamesAreCounted(t *testing.T) {
	files := tree{
		"load/a.go":      "package p\n\nfunc of(at int) { for told := range at { _ = told } }\n",
		"load/b_test.go": "package p\n\nvar said int\n",
		"cmd/prony/c.go": "package p\n\nvar said int\n",
	}
	if all, odd := namesThatSayNothing(files); all != 3 || odd["load"] != 3 || len(odd) != 1 {
		t.Errorf("%d declared, %v; want 3, all in load", all, odd)
	}
}
