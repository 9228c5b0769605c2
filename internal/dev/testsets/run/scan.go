package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// library is the package by whose calls tests declare their kind and their set.
const library = buildflags.Module + "/internal/dev/testsets"

// Calls that decide the kind and the set of a test, by package and function.
var (
	second   = []string{library + ".Whole", library + ".Once"}
	long     = []string{library + ".Long", library + ".More"}
	measures = []string{library + ".Measured"}
	lives    = []string{library + ".Live", library + ".S3", library + ".Tool", library + ".Build",
		"os/exec.Command", "os/exec.CommandContext", "net.Listen", "net.ListenPacket",
		"net.ListenUDP", "net.ListenTCP", "net.Dial", "net.DialTimeout",
		buildflags.Module + "/load/engine/enginetest.Run",
		buildflags.Module + "/load/engine/enginetest.RunSecure",
		buildflags.Module + "/load/engine/enginetest.Serve", "net/http/httptest.NewServer",
		"net/http/httptest.NewTLSServer", "net/http/httptest.NewUnstartedServer"}
)

// kind is how a test depends on its host.
type kind string

const (
	exact    kind = "exact"
	live     kind = "live"
	measured kind = "measured"
)

// suite holds the tests of one package by name. A test may be in several lists, because parts of it
// may measure or be of another set.
type suite struct {
	path, module                       string // import path, folder of its module
	all, live, measuring, second, long []string
	later                              []string // wholly of the third set
}

// kindOf returns the kind of a test.
func (s suite) kindOf(test string) kind {
	switch {
	case slices.Contains(s.measuring, test):
		return measured
	case slices.Contains(slices.Concat(s.live, s.second, s.long), test):
		return live
	}
	return exact
}

// modules are the folders of this repository's modules.
var modules = []string{".", "home"}

// scan reads the tests of packages: all packages of modules, or, by patterns, packages of the
// module in the current folder or packages below ./home.
func scan(ctx context.Context, modules, patterns []string) (suites []suite, err error) {
	for _, module := range modules {
		if _, err := os.Stat(filepath.Join(module, "go.mod")); errors.Is(err, os.ErrNotExist) {
			continue
		}
		in := []string{"./..."}
		if len(patterns) > 0 {
			in = patternsIn(module, patterns)
		}
		if len(in) == 0 {
			continue
		}
		matches, err := scanModule(ctx, module, in)
		if err != nil {
			return nil, err
		}
		suites = append(suites, matches...)
	}
	return suites, nil
}

// patternsIn returns the patterns of packages of a module, as they are written in its folder.
func patternsIn(module string, patterns []string) (in []string) {
	for _, p := range patterns {
		below, isPath := strings.CutPrefix(p+"/", "./home/")
		isName := strings.HasPrefix(p+"/", testsets.Home+"/")
		if (isPath || isName) != (module == "home") {
			continue
		}
		if isPath {
			p = "./" + strings.TrimSuffix(below, "/")
		}
		in = append(in, p)
	}
	return in
}

// scanModule reads the tests of packages of one module.
func scanModule(ctx context.Context, module string, patterns []string) (suites []suite, err error) {
	packages, err := testsets.List[struct {
		ImportPath, Dir           string
		TestGoFiles, XTestGoFiles []string
	}](ctx, module, append([]string{"-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"},
		patterns...)...)
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	for _, p := range packages {
		var files []*ast.File
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				return nil, fmt.Errorf("read the tests of %s: %w", p.ImportPath, err)
			}
			files = append(files, file)
		}
		if len(files) > 0 {
			s := read(p.ImportPath, files)
			s.module = module
			suites = append(suites, s)
		}
	}
	return suites, nil
}

// read sorts the tests of a package.
func read(path string, files []*ast.File) suite {
	s := suite{path: path, all: calling(files, nil), live: calling(files, lives)}
	if path == library { // its own tests call these functions to test them
		return s
	}
	s.measuring = calling(files, measures)
	s.second, s.long = calling(files, second), calling(files, long)
	s.later = first(files, []string{library + ".Long"})
	return s
}

// calling returns the tests among a package's functions that name one of the wanted functions, or
// name a function of the package that does. Without wanted functions, it returns all tests.
func calling(files []*ast.File, want []string) []string {
	names := map[string][]string{} // by function: the identifiers in it
	reached := map[string]bool{}
	for _, file := range files {
		imported := imports(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			reached[f.Name.Name] = reached[f.Name.Name] || want == nil
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if slices.Contains(want, imported.name(n)) {
						reached[f.Name.Name] = true
					}
				case *ast.Ident:
					names[f.Name.Name] = append(names[f.Name.Name], n.Name)
				}
				return true
			})
		}
	}
	for grown := true; grown; {
		grown = false
		for name, named := range names {
			leads := slices.ContainsFunc(named, func(n string) bool { return reached[n] })
			if leads && !reached[name] {
				reached[name], grown = true, true
			}
		}
	}
	var tests []string
	for name, is := range reached {
		if is && isTest(name) {
			tests = append(tests, name)
		}
	}
	slices.Sort(tests)
	return tests
}

func isTest(name string) bool { return strings.HasPrefix(name, "Test") && name != "TestMain" }

// first returns the tests that call one of the wanted functions as a statement of their own, so
// that the whole test is skipped.
func first(files []*ast.File, want []string) (tests []string) {
	for _, file := range files {
		imported := imports(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && isTest(f.Name.Name) && f.Body != nil &&
				slices.ContainsFunc(f.Body.List, func(s ast.Stmt) bool {
					e, _ := s.(*ast.ExprStmt)
					if e == nil {
						return false
					}
					call, _ := e.X.(*ast.CallExpr)
					return call != nil && slices.Contains(want, imported.name(call.Fun))
				}) {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	return tests
}

// imported maps the names that a file gives packages to their paths.
type imported map[string]string

func imports(file *ast.File) imported {
	all := imported{}
	for _, spec := range file.Imports {
		if to, err := strconv.Unquote(spec.Path.Value); err == nil {
			name := path.Base(to)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			all[name] = to
		}
	}
	return all
}

// name returns the full name of a package's function, or nothing.
func (i imported) name(e ast.Expr) string {
	s, _ := e.(*ast.SelectorExpr)
	if s == nil {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || i[x.Name] == "" {
		return ""
	}
	return i[x.Name] + "." + s.Sel.Name
}
