package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/dev/testsets"
)

// library is the package whose calls put a test into the other set.
const library = "prony.example/internal/dev/testsets"

// The functions of it that put a test into the other set, that say it measures, and that it runs in
// a process of its own.
var (
	leave   = []string{"Whole", "Once"}
	measure = []string{"Cores"}
	beside  = []string{"Apart"}
)

// theirs begin the packages that only the home of telemetry links, and what its tests are held to:
// to compile them takes a third of the time that all tests take on a fresh clone. Of the collector
// prony has the formats, and the home what receives them.
var theirs = []string{
	"github.com/prometheus/prometheus/",
	"go.opentelemetry.io/collector/component",
	"github.com/parquet-go/parquet-go",
	"github.com/minio/minio-go/",
}

// suite is the tests of a package, and those of them that call, or whose helpers call, a function
// of the library. Those of a heavy one link what is theirs. What is left out whole measures in the
// other set alone.
type suite struct {
	path                        string
	heavy                       bool
	all, left, measuring, apart []string
}

// scan reads the tests of packages.
func scan(ctx context.Context, patterns []string) ([]suite, error) {
	packages, err := testsets.List[struct {
		ImportPath, Dir           string
		TestGoFiles, XTestGoFiles []string
	}](ctx, ".", append([]string{"-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	heavy, err := linking(ctx, patterns)
	if err != nil {
		return nil, err
	}
	var suites []suite
	for _, p := range packages {
		var files []*ast.File
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				return nil, fmt.Errorf("read the tests of %s: %w", p.ImportPath, err)
			}
			files = append(files, file)
		}
		s := suite{path: p.ImportPath, all: calling(files, nil), heavy: heavy[p.ImportPath]}
		if s.path != library { // whose own tests are of these functions
			whole := whole(files)
			s.left, s.apart = calling(files, leave), calling(files, beside)
			s.measuring = slices.DeleteFunc(calling(files, measure), func(test string) bool {
				return slices.Contains(whole, test)
			})
		}
		suites = append(suites, s)
	}
	return suites, nil
}

// linking says which packages' tests link what is theirs.
func linking(ctx context.Context, patterns []string) (map[string]bool, error) {
	programs, err := testsets.List[struct {
		ImportPath string
		Deps       []string
	}](ctx, ".", append([]string{"-test", "-json=ImportPath,Deps"}, patterns...)...)
	if err != nil {
		return nil, fmt.Errorf("list what the tests link: %w", err)
	}
	heavy := map[string]bool{}
	for _, p := range programs {
		if path, ok := strings.CutSuffix(p.ImportPath, ".test"); ok {
			heavy[path] = slices.ContainsFunc(p.Deps, func(dep string) bool {
				return slices.ContainsFunc(theirs, func(of string) bool {
					return strings.HasPrefix(dep, of)
				})
			})
		}
	}
	return heavy, nil
}

// named are the tests that of picks, and the packages that have a test of one of these names: go
// test takes one pattern for all packages, and none may be lost where two have one name.
func named(suites []suite, of func(suite) []string) (packages, names []string) {
	for _, s := range suites {
		names = append(names, of(s)...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, s := range suites {
		if slices.ContainsFunc(s.all, func(test string) bool {
			return slices.Contains(names, test)
		}) {
			packages = append(packages, s.path)
		}
	}
	return packages, names
}

// pattern matches tests by name, for -run and -skip.
func pattern(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// calling names the tests among a package's functions that name one of the library's, or a function
// that does; without any to look for, all tests.
func calling(files []*ast.File, wanted []string) []string {
	calls := map[string][]string{} // by function: those of its package that it names
	reached := map[string]bool{}
	for _, file := range files {
		local := localName(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			reached[f.Name.Name] = wanted == nil
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if of(n, local, wanted) {
						reached[f.Name.Name] = true
					}
					calls[f.Name.Name] = append(calls[f.Name.Name], n.Sel.Name)
				case *ast.Ident:
					calls[f.Name.Name] = append(calls[f.Name.Name], n.Name)
				}
				return true
			})
		}
	}
	for grown := true; grown; {
		grown = false
		for name, called := range calls {
			leads := slices.ContainsFunc(called, func(c string) bool { return reached[c] })
			if leads && !reached[name] {
				reached[name], grown = true, true
			}
		}
	}
	var names []string
	for name, reaches := range reached {
		if reaches && strings.HasPrefix(name, "Test") && name != "TestMain" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// whole names the tests that a statement of their own leaves out, with all that is below them.
func whole(files []*ast.File) (names []string) {
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "Test") && f.Body != nil &&
				slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool {
					return leaves(s, localName(file))
				}) {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// leaves says whether a statement is a call of the library that leaves a test out.
func leaves(s ast.Stmt, local string) bool {
	e, _ := s.(*ast.ExprStmt)
	if e == nil {
		return false
	}
	call, _ := e.X.(*ast.CallExpr)
	return call != nil && of(call.Fun, local, leave)
}

// of says whether an expression is one of the library's names.
func of(e ast.Expr, local string, names []string) bool {
	s, _ := e.(*ast.SelectorExpr)
	if s == nil || local == "" {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == local && slices.Contains(names, s.Sel.Name)
}

// localName is what a file calls the library, or nothing.
func localName(file *ast.File) string {
	for _, spec := range file.Imports {
		if to, err := strconv.Unquote(spec.Path.Value); err == nil && to == library {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return filepath.Base(to)
		}
	}
	return ""
}
