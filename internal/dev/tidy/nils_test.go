package tidy

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// A nil pointer in an interface is an interface that is not nil: `if x != nil { x.Stop() }` then
// panics. So no pointer becomes an interface before the error that came with it was checked.
func TestNilPointersInInterfaces(t *testing.T) {
	testsets.Once(t, "nil pointers in interfaces", testsets.Needs{Files: []string{"cmd",
		"internal", "home", "load", "record", "stats", "go.mod", "go.sum"}})
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{".", home} {
		checked, err := compiled(filepath.Join(root, module))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range findNils(checked) {
			t.Error(strings.TrimPrefix(text, root+string(filepath.Separator)))
		}
	}
}

// unit is a package with its types.
type unit struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool

	set   *token.FileSet
	files []*ast.File
	info  types.Info
}

// compiled returns the packages of the module in a folder. The types of imported packages come from
// the compiler.
func compiled(dir string) (own []*unit, err error) {
	cmd := exec.Command("go", slices.Concat([]string{"list", "-deps", "-export",
		"-json=ImportPath,Dir,Export,GoFiles,DepOnly"}, buildflags.Flags, []string{"./..."})...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), buildflags.Lavish), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	exports := map[string]string{}
	for from := json.NewDecoder(strings.NewReader(string(out))); ; {
		var u unit
		if err := from.Decode(&u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if exports[u.ImportPath] = u.Export; !u.DepOnly {
			own = append(own, &u)
		}
	}
	set := token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, u := range own {
		u.set = set
		for _, name := range u.GoFiles {
			file, err := parser.ParseFile(set, filepath.Join(u.Dir, name), nil, 0)
			if err != nil {
				return nil, err
			}
			u.files = append(u.files, file)
		}
		if err := u.check(from); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// check computes the types of a package.
func (u *unit) check(from types.Importer) error {
	u.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: from}
	_, err := config.Check(u.ImportPath, u.set, u.files, &u.info)
	return err
}

// nilFinder finds pointers that may be nil when they become interfaces.
type nilFinder struct {
	*unit
	nilly    map[string]bool // functions with one result that return nil, by their full names
	problems []string
}

// findNils returns the problems of packages, each with its file and line.
func findNils(units []*unit) (problems []string) {
	nilly := map[string]bool{}
	for _, u := range units {
		u.nilReturns(nilly)
	}
	for _, u := range units {
		f := nilFinder{unit: u, nilly: nilly}
		for _, file := range u.files {
			ast.Inspect(file, f.node)
		}
		problems = append(problems, f.problems...)
	}
	return problems
}

// nilReturns adds the functions whose only result is a pointer, and which return nil.
func (u *unit) nilReturns(to map[string]bool) {
	for _, file := range u.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			eachReturn(f.Body, func(r *ast.ReturnStmt) {
				if len(r.Results) == 1 && u.info.Types[r.Results[0]].IsNil() {
					to[u.info.Defs[f.Name].(*types.Func).FullName()] = true
				}
			})
		}
	}
}

// eachReturn calls do for the returns of a function, without those of functions in it.
func eachReturn(body *ast.BlockStmt, do func(*ast.ReturnStmt)) {
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			do(r)
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
}

// node checks all conversions to interfaces of a node.
func (f *nilFinder) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Body != nil {
			f.returns(n.Body, f.info.Defs[n.Name].Type().(*types.Signature).Results())
		}
	case *ast.FuncLit:
		f.returns(n.Body, f.info.TypeOf(n).(*types.Signature).Results())
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			f.value(n.Rhs, i, f.info.TypeOf(to))
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			f.value(n.Values, i, f.info.Defs[name].Type())
		}
	case *ast.CallExpr:
		if s, ok := f.info.TypeOf(n.Fun).(*types.Signature); ok {
			for i := range s.Params().Len() {
				f.value(n.Args, i, s.Params().At(i).Type())
			}
		}
	case *ast.CompositeLit:
		f.literal(n)
	}
	return true
}

// returns checks the results of a function.
func (f *nilFinder) returns(body *ast.BlockStmt, results *types.Tuple) {
	eachReturn(body, func(r *ast.ReturnStmt) {
		last := len(r.Results) - 1
		failed := last > 0 && !f.info.Types[r.Results[last]].IsNil() &&
			isError(results.At(last).Type())
		for i := range results.Len() {
			to := results.At(i).Type()
			f.value(r.Results, i, to)
			if failed && i < last && !fresh(r.Results[i]) &&
				becomes(f.info.TypeOf(r.Results[i]), to) && !isError(to) {
				f.wrong(r.Results[i], "a pointer that comes with an error")
			}
		}
	})
}

// literal checks the fields of a struct.
func (f *nilFinder) literal(n *ast.CompositeLit) {
	s, ok := f.info.TypeOf(n).Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		to := s.Field(i).Type()
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e, to = pair.Value, f.info.Uses[pair.Key.(*ast.Ident)].Type()
		}
		f.value([]ast.Expr{e}, 0, to)
	}
}

// value checks the value i of a list that becomes a type. The list may be one call that returns all
// values.
func (f *nilFinder) value(list []ast.Expr, i int, to types.Type) {
	if len(list) == 1 {
		if all, ok := f.info.TypeOf(list[0]).(*types.Tuple); ok {
			if i < all.Len() && isError(all.At(all.Len()-1).Type()) &&
				becomes(all.At(i).Type(), to) {
				f.wrong(list[0], "the pointer of a call that also returns an error")
			}
			return
		}
	}
	if i >= len(list) || !becomes(f.info.TypeOf(list[i]), to) {
		return
	}
	if call, ok := ast.Unparen(list[i]).(*ast.CallExpr); ok && f.nilly[f.called(call)] {
		f.wrong(call, "the result of a function that can return a nil pointer")
	}
}

// called returns the full name of the function that a call names; empty: it names none.
func (f *nilFinder) called(call *ast.CallExpr) string {
	name, _ := ast.Unparen(call.Fun).(*ast.Ident)
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		name = s.Sel
	}
	if of, ok := f.info.Uses[name].(*types.Func); ok {
		return of.FullName()
	}
	return ""
}

func (f *nilFinder) wrong(n ast.Node, subject string) {
	at := f.set.Position(n.Pos())
	f.problems = append(f.problems, fmt.Sprintf("%s:%d: %s becomes an interface, which is not nil "+
		"if the pointer is: check the pointer or its error first, and return or assign a plain nil",
		at.Filename, at.Line, subject))
}

// becomes reports whether a value is a pointer and becomes an interface.
func becomes(from, to types.Type) bool {
	if from == nil || to == nil || !types.IsInterface(to) {
		return false
	}
	_, pointer := from.Underlying().(*types.Pointer)
	return pointer
}

func isError(t types.Type) bool { return t == types.Universe.Lookup("error").Type() }

// fresh reports whether an expression makes its pointer: &x.
func fresh(e ast.Expr) bool {
	made, ok := ast.Unparen(e).(*ast.UnaryExpr)
	return ok && made.Op == token.AND
}

// Every way in which a nil pointer becomes an interface is found, and no other.
func TestFindNils(t *testing.T) {
	const head = `package x
type T struct{ next I }
func (*T) M() {}
type I interface{ M() }
func both() (*T, error) { return nil, nil }
func maybe() *T { return nil }
func surely() *T { return &T{} }
func takes(I, error) {}
var i I
var err error
`
	check := func(text string, wants int) {
		t.Helper()
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", head+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		u := &unit{ImportPath: "x", set: set, files: []*ast.File{file}}
		if err := u.check(importer.Default()); err != nil {
			t.Fatal(err)
		}
		if got := findNils([]*unit{u}); len(got) != wants {
			t.Errorf("%s: %d problems, want %d: %q", text, len(got), wants, got)
		}
	}
	check("func f() (I, error) { return both() }", 1)
	check("func f() (I, error) { p, err := both(); return p, err }", 1)
	check("var f = func() (I, error) { return both() }", 1)
	check("func f() { i, err = both() }", 1)
	check("func f() { takes(both()) }", 1)
	check("var k, other = both()", 0)
	check("func f() I { return maybe() }", 1)
	check("func f() { i = maybe() }", 1)
	check("func f() { takes(maybe(), nil) }", 1)
	check("var x = T{next: maybe()}; var y = T{maybe()}", 2)
	check("var k I = maybe()", 1)
	check("func f() (*T, error) { return both() }", 0)
	check("func f() (I, error) { p, err := both(); if err != nil { return nil, err }; "+
		"return p, nil }", 0)
	check("func f() (I, error) { return &T{}, err }", 0)
	check("func f() I { return surely() }", 0)
	check("func f() (I, error) { return i, err }", 0)
	check("func f() I { func() *T { return maybe() }(); return nil }", 0)
}
