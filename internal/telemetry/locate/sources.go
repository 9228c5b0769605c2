package locate

import (
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"prony.example/internal/base/buildflags"
)

// sources are the folders of a checkout's packages that a program links, in both modules. They come
// from the import statements, because the go command takes a second, which would delay every query.
type sources map[string]bool

func sourcesOf(root, program string) (sources, error) {
	item := sources{}
	for todo := []string{program}; len(todo) > 0; todo = todo[1:] {
		dir := todo[0]
		if item[dir] {
			continue
		}
		item[dir] = true
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			read, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return nil, err
			}
			for _, i := range read.Imports {
				name, err := strconv.Unquote(i.Path.Value)
				if below, ours := strings.CutPrefix(name, buildflags.Module+"/"); err == nil &&
					ours {
					todo = append(todo, below)
				}
			}
		}
	}
	return item, nil
}

// has reports whether a path below the checkout is a source of the program: files of the modules
// and packages, and other files below a package, which it may embed.
func (item sources) has(name string) bool {
	switch name {
	case "go.mod", "go.sum", homeModule + "/go.mod", homeModule + "/go.sum":
		return true
	}
	if strings.HasSuffix(name, "_test.go") || path.Base(name) == "testdata" {
		return false
	}
	for dir := range item {
		if strings.HasPrefix(dir, name+"/") {
			return true // a parent folder
		}
	}
	if strings.HasSuffix(name, ".go") {
		return item[path.Dir(name)]
	}
	for location := name; location != "."; location = path.Dir(location) {
		if item[location] {
			return true
		}
	}
	return false
}
