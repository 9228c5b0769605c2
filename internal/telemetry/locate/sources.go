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

// sources are the folders of a checkout's packages that a program links, of its two modules. They
// are read from the imports, as Go's own answer takes a second, which every query would wait.
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

// has says of a path below the checkout whether the program is made of it: the modules' own files,
// those of the packages, and what lies below a package and is no Go, which it may embed.
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
			return true // a folder on the way
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
