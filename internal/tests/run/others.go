package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// library is the package whose calls put a test into the other set.
const library = "prony/internal/tests"

// leaves are its functions that do.
var leaves = []string{"Whole", "Once"}

// left are the tests that make test leaves out, and their packages.
type left struct{ packages, names []string }

// others finds the tests that make test leaves out, in whole or in part: those that call what
// leaves them out, or a function of their package that does.
func others(ctx context.Context, patterns []string) (left, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list",
		"-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return left{}, fmt.Errorf("list the packages: %w: %s", err, &stderr)
	}
	var found left
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return left{}, fmt.Errorf("read the list of packages: %w", err)
		}
		var files []*ast.File
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				return left{}, fmt.Errorf("read the tests of %s: %w", p.ImportPath, err)
			}
			files = append(files, file)
		}
		if names := leaving(files); len(names) > 0 && p.ImportPath != library {
			found.packages = append(found.packages, p.ImportPath)
			found.names = append(found.names, names...)
		}
	}
	slices.Sort(found.names)
	found.names = slices.Compact(found.names)
	return found, nil
}

// leaving names the tests among a package's functions that may leave themselves out.
func leaving(files []*ast.File) []string {
	calls := map[string][]string{} // by function: those of its package that it names
	reached := map[string]bool{}
	for _, file := range files {
		local := localName(file)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && local != "" && x.Name == local &&
						slices.Contains(leaves, n.Sel.Name) {
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
	for name := range reached {
		if strings.HasPrefix(name, "Test") && name != "TestMain" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
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
