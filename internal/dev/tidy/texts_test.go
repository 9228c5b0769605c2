package tidy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/base/buildflags"
)

// texts are made for readers: the methods, functions and fields that contain such a text. Other
// packages may print and combine them, and must not look into them: a fact that a program needs has
// a field of its own.
var texts = map[string]string{
	Module + "/internal/analysis/table": "Cell.Text Cell.Number Cell.Range Column.Heading " +
		"Column.FullHeading Group.Heading Group.Short Table.Title Head.String Note.String " +
		"Footnote.String Texts Percentile.Refusal",
	Module + "/internal/analysis/wording": "Against Limit LimitKind Limits",
	Module + "/record":                    "Words.Observed Words.Limit Words.Hint Words.Amount",
}

// printers are the packages that make these texts, or put them into their own, and so may compare
// whether two are equal.
var printers = map[string]string{
	Module + "/record": Module + "/internal/analysis/table " + Module +
		"/internal/analysis/wording",
}

// looks are the functions that look into a text.
var looks = map[string]string{
	"strings": "Compare Contains ContainsAny ContainsFunc ContainsRune Count Cut CutPrefix " +
		"CutSuffix EqualFold Fields FieldsFunc FieldsFuncSeq FieldsSeq HasPrefix HasSuffix Index " +
		"IndexAny IndexByte IndexFunc IndexRune LastIndex LastIndexByte Map NewReader Replace " +
		"ReplaceAll Split SplitAfter SplitN SplitSeq Trim TrimFunc TrimLeft TrimPrefix " +
		"TrimSuffix",
	"strconv":                            "Atoi ParseBool ParseFloat ParseInt ParseUint",
	"fmt":                                "Sscan Sscanf Sscanln",
	"time":                               "ParseDuration",
	"regexp":                             "*",
	Module + "/internal/base/lazyregexp": "*",
	"slices":                             "Compact Contains Index",
	Module + "/internal/analysis/table":  "AddNew",
}

// reader finds where a package looks into texts of another. It follows them through variables,
// fields, concatenation and the package's own functions.
type reader struct {
	own      string // path of the package, whose own texts it may compare
	info     *types.Info
	fset     *token.FileSet
	holds    map[types.Object]bool // contains a text
	more     bool                  // new in this pass
	problems []problem
}

func (r *reader) read(files []*ast.File) []problem {
	r.holds = map[types.Object]bool{}
	for r.more = true; r.more; {
		r.more = false
		for _, f := range files {
			ast.Inspect(f, r.follow)
		}
	}
	for _, f := range files {
		ast.Inspect(f, r.judge)
	}
	return r.problems
}

// follow records what is assigned a text.
func (r *reader) follow(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, rhs := range n.Rhs {
			if len(n.Lhs) == len(n.Rhs) && r.isText(rhs) {
				r.hold(n.Lhs[i])
			}
		}
	case *ast.ValueSpec:
		for i, v := range n.Values {
			if len(n.Names) == len(n.Values) && r.isText(v) {
				r.hold(n.Names[i])
			}
		}
	case *ast.RangeStmt:
		if n.Value != nil && r.isText(n.X) {
			r.hold(n.Value)
		}
	case *ast.CompositeLit:
		for i, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok && r.isText(kv.Value) {
					r.hold(key)
				}
			} else if of, ok := r.info.TypeOf(n).Underlying().(*types.Struct); ok && r.isText(e) {
				r.note(of.Field(i))
			}
		}
	case *ast.FuncDecl:
		ast.Inspect(n, func(in ast.Node) bool {
			if _, literal := in.(*ast.FuncLit); literal {
				return false
			}
			if ret, ok := in.(*ast.ReturnStmt); ok && len(ret.Results) == 1 &&
				r.isText(ret.Results[0]) {
				r.note(r.info.Defs[n.Name])
			}
			return true
		})
	}
	return true
}

func (r *reader) hold(to ast.Expr) {
	switch to := to.(type) {
	case *ast.Ident:
		r.note(r.info.ObjectOf(to))
	case *ast.SelectorExpr:
		r.note(r.info.ObjectOf(to.Sel))
	case *ast.IndexExpr:
		r.hold(to.X)
	}
}

func (r *reader) note(of types.Object) {
	if of != nil && !r.holds[of] {
		r.holds[of], r.more = true, true
	}
}

// isText reports whether an expression is a text, contains one, or is a list of them.
func (r *reader) isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return r.isText(e.X)
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (r.isText(e.X) || r.isText(e.Y))
	case *ast.IndexExpr:
		return r.isText(e.X)
	case *ast.Ident:
		return r.holds[r.info.ObjectOf(e)]
	case *ast.SelectorExpr:
		field := r.info.Selections[e]
		return r.holds[r.info.ObjectOf(e.Sel)] || field != nil && field.Kind() == types.FieldVal &&
			r.isOne(field.Obj().Pkg(), typeName(field.Recv())+field.Obj().Name())
	case *ast.CallExpr:
		f := r.called(e)
		if f == nil { // append, or a conversion
			return len(e.Args) > 0 && slices.ContainsFunc(e.Args, r.isText) && r.sameKind(e)
		}
		if r.holds[f] || r.isOne(f.Pkg(), nameOf(f)) {
			return true
		}
		return matches("fmt strings", packageOf(f)) && slices.ContainsFunc(e.Args, r.isText)
	}
	return false
}

// isOne reports whether a name is that of a text of another package.
func (r *reader) isOne(of *types.Package, name string) bool {
	return of != nil && of.Path() != r.own && !matches(printers[of.Path()], r.own) &&
		matches(texts[of.Path()], name)
}

// sameKind reports whether a call returns a text or a list of them, and not a number as len does.
func (r *reader) sameKind(e *ast.CallExpr) bool {
	switch t := r.info.TypeOf(e).Underlying().(type) {
	case *types.Basic:
		return t.Info()&types.IsString != 0
	case *types.Slice:
		return true
	}
	return false
}

// called returns the function or method of a call; nil for a built-in one and for a conversion.
func (r *reader) called(e *ast.CallExpr) *types.Func {
	switch f := ast.Unparen(e.Fun).(type) {
	case *ast.Ident:
		of, _ := r.info.ObjectOf(f).(*types.Func)
		return of
	case *ast.SelectorExpr:
		of, _ := r.info.ObjectOf(f.Sel).(*types.Func)
		return of
	case *ast.IndexExpr: // generic
		if id, ok := f.X.(*ast.Ident); ok {
			of, _ := r.info.ObjectOf(id).(*types.Func)
			return of
		}
	}
	return nil
}

func packageOf(f *types.Func) string {
	if f.Pkg() == nil {
		return ""
	}
	return f.Pkg().Path()
}

// nameOf returns a function's name, a method's with its type: "Cell.Text".
func nameOf(f *types.Func) string {
	if recv := f.Signature().Recv(); recv != nil {
		return typeName(recv.Type()) + f.Name()
	}
	return f.Name()
}

// typeName returns the name of a type or of its pointer's type, with a point; empty if it has none.
func typeName(of types.Type) string {
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if named, ok := of.(*types.Named); ok {
		return named.Obj().Name() + "."
	}
	return ""
}

// judge finds comparisons and functions that look into a text. Comparisons with the empty text are
// permitted.
func (r *reader) judge(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op.Precedence() == token.EQL.Precedence() && !r.empty(n.X) && !r.empty(n.Y) &&
			(r.isText(n.X) || r.isText(n.Y)) {
			r.say(n.Pos(), "compares a text")
		}
	case *ast.SwitchStmt:
		if n.Tag != nil && r.isText(n.Tag) {
			r.say(n.Pos(), "compares a text")
		}
	case *ast.SliceExpr:
		if t, ok := r.info.TypeOf(n.X).Underlying().(*types.Basic); ok && r.isText(n.X) {
			r.say(n.Pos(), "cuts a "+t.Name()+" that is a text")
		}
	case *ast.CallExpr:
		f := r.called(n)
		if f == nil || !slices.ContainsFunc(n.Args, r.isText) {
			return true
		}
		// A strings.Replacer escapes printed text; a regular expression looks.
		names := looks[packageOf(f)]
		if names == "*" || matches(names, f.Name()) && f.Signature().Recv() == nil {
			r.say(n.Pos(), f.Name()+" looks into a text")
		}
	}
	return true
}

func (r *reader) empty(e ast.Expr) bool {
	lit, ok := ast.Unparen(e).(*ast.BasicLit)
	return ok && (lit.Value == `""` || lit.Value == "``")
}

func (r *reader) say(at token.Pos, what string) {
	p := r.fset.Position(at)
	r.problems = append(r.problems, problem{p.Filename, p.Line,
		what + " that another package made for people: give the fact a field of its own"})
}

// listed is the output of go list for a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
	Module                  *struct{ Path string }
}

// exported returns the packages of the module with their imports, compiled.
func exported(root string) (map[string]listed, error) {
	cmd := exec.Command("go", slices.Concat([]string{"list"}, buildflags.Flags,
		[]string{"-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Imports,Module",
			"./..."})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), buildflags.Lavish)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// textsReadIn checks the files of one package.
func textsReadIn(all map[string]listed, path string, files map[string]string) ([]problem, error) {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := parser.ParseFile(fset, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	lookup := func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) }
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types:      map[ast.Expr]types.TypeAndValue{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := conf.Check(path, fset, parsed, info); err != nil {
		return nil, err
	}
	r := &reader{own: path, info: info, fset: fset}
	return r.read(parsed), nil
}

// No package looks into texts that another one has printed.
func TestTextsAreMadeLast(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := exported(root)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for path, p := range all {
		imports := func(of string) bool { return slices.Contains(p.Imports, of) && path != of }
		if p.Module == nil || p.Module.Path != Module ||
			!slices.ContainsFunc(slices.Collect(maps.Keys(texts)), imports) {
			continue
		}
		checked++
		files := map[string]string{}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			short := strings.TrimPrefix(filepath.Join(p.Dir, name), root+"/")
			files[short] = string(text)
		}
		problems, err := textsReadIn(all, path, files)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Error(p)
		}
	}
	if checked < 5 {
		t.Errorf("%d packages were looked at, want those of the report and the program", checked)
	}
	t.Run("oracle", func(t *testing.T) { readTexts(t, all) })
}

// readTexts shows that the check finds each way of looking into a text.
func readTexts(t *testing.T, all map[string]listed) {
	const head = "package p\nimport (\n\"fmt\"\n\"strings\"\n\"prony.example/internal/analysis/" +
		"table\"\n\"prony.example/internal/analysis/wording\"\n\"prony.example/record\")\n" +
		"var _ record.Words\nvar _ = wording.Limit\n" +
		"var _ = fmt.Sprint\nvar _ = strings.Cut\nvar c table.Cell; var n table.Note\n" +
		"type view struct { text, other string; all []string }\nfunc said() string { return " +
		"\"why: \" + n.String() }\nfunc f(v view) any { "
	for _, row := range []struct{ code, want string }{
		{`return c.Text() == "unknown"`, "compares"},
		{`return "–" != c.Number()`, "compares"},
		{`switch c.Text() { case "–": }; return nil`, "compares"},
		{`x := c.Text(); return x == "–"`, "compares"},
		{`var x = c.Text() + "!"; return x == "–!"`, "compares"},
		{`v.text = c.Text(); return v.text == "–"`, "compares"},
		{`v = view{text: c.Range()}; return v.text == "–"`, "compares"},
		{`v = view{c.Range(), "", nil}; return v.text == "–"`, "compares"},
		{`v.all = append(v.all, n.String()); for _, x := range v.all { return x == "a" }; return 1`,
			"compares"},
		{`return said() == "why: "`, "compares"},
		{`return table.Texts(nil)[0] == "a"`, "compares"},
		{`a, _, _ := strings.Cut(c.Text(), " ["); return a`, "Cut"},
		{`return strings.HasPrefix(fmt.Sprintf("%s.", n.String()), "Ratios")`, "HasPrefix"},
		{`return c.Text()[1:]`, "cuts"},
		{`return c.Text() == ""`, ""},
		{`return c.State == table.Unknown`, ""},
		{`v.text, v.other = c.Text(), "a"; return v.other == "a"`, ""},
		{`return "[" + strings.Join(table.Texts(nil), "; ") + c.Text() + "]"`, ""},
		{`return strings.HasPrefix("a", "b")`, ""},
		{`return len(c.Text()) > 4`, ""},
		{`var w record.Words; return w.Observed == "none"`, "compares"},
		{`var w record.Words; x := &w; return strings.Contains(x.Hint, "raise")`, "Contains"},
		{`var w record.Words; n := 0; fmt.Sscan(w.Amount, &n); return n`, "Sscan"},
		{`var f record.Finding; return strings.Contains(wording.Against(f), "no")`, "Contains"},
		{`var l record.Limit; t := wording.Limits(nil); return t[0] == wording.Limit(l) + "!"`,
			"compares"},
		{`var f record.Finding; return f.Rule == "errors"`, ""},
	} {
		problems, err := textsReadIn(all, "p", map[string]string{"p.go": head + row.code + " }\n"})
		if err != nil {
			t.Fatalf("%s: %v", row.code, err)
		}
		if want := row.want != ""; len(problems) > 0 != want ||
			want && !strings.Contains(problems[0].String(), row.want) {
			t.Errorf("%s: %v, want %q", row.code, problems, row.want)
		}
	}
}
