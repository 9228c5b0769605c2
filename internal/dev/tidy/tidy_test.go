package tidy

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// checks lists all checks; each has its own file or half of one.
var checks = []struct {
	name string
	find func(tree) []problem
}{
	{"imports", func(t tree) []problem { return findImports(t, rooms) }},
	{"rules", findRules},
	{"security", findSecurity},
	{"limits", findLimits},
	{"shown", findShown},
	{"bans", findBans},
	{"map", findMap},
	{"dependencies", findDependencies},
	{"decisions", findDecisions},
	{"index", findIndex},
	{"formats", findFormats},
	{"links", findLinks},
	{"commands", findCommands},
	{"services", findServices},
	{"listed", findListed},
	{"sizes", findSizes},
	{"versions", findVersions}, {"modules", findModules},
	{"scripts", findScripts},
	{"comments", findComments},
	{"fuzzed", findUnfuzzed},
	{"places", func(t tree) []problem { return findPlaces(t, ownPlaces()) }},
}

func TestTidy(t *testing.T) {
	repository, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			for _, p := range sorted(check.find(repository)) {
				t.Error(p)
			}
		})
	}
}

// red requires exactly these problems of a check on a small tree: each want is the start of one, in
// order of file and line. No want means that the tree has no problem.
func red(t *testing.T, find func(tree) []problem, files tree, want ...string) {
	t.Helper()
	var got []string
	for _, p := range sorted(find(files)) {
		got = append(got, p.String())
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		const sep = "\n\t"
		t.Errorf("problems\n\t%s\nwant\n\t%s", strings.Join(got, sep), strings.Join(want, sep))
	}
}

// problem is one thing to fix.
type problem struct {
	file string
	line int // from 1; 0: the file as a whole
	text string
}

func (p problem) String() string {
	if p.line == 0 {
		return p.file + ": " + p.text
	}
	return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.text)
}

func sorted(problems []problem) []problem {
	return slices.SortedStableFunc(slices.Values(problems), func(a, b problem) int {
		return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
	})
}

// tree is the text files of a repository: path from its root, with slashes, to content.
type tree map[string]string

// load reads the repository that the test runs in.
func load() (tree, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	files := tree{}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if isText(content) {
			files[name] = string(content)
		}
	}
	return files, nil
}

func (t tree) names() []string {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// has reports whether a path is a file, or a folder that contains a file.
func (t tree) has(name string) bool {
	if _, file := t[name]; file || name == "." {
		return true
	}
	for other := range t {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// glob returns the files that match a pattern of path.Match.
func (t tree) glob(pattern string) []string {
	return slices.DeleteFunc(t.names(), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return err != nil || !ok
	})
}

// home is the folder of the second module.
const home = "home"

// source is one parsed Go file.
type source struct {
	name      string
	dir       string // the package's path from the root
	test      bool
	module    bool // of this repository's modules, not of a service's own
	generated bool
	text      string
	set       *token.FileSet
	file      *ast.File
}

func (s source) line(pos token.Pos) int { return s.set.Position(pos).Line }

func (s source) problem(pos token.Pos, format string, args ...any) problem {
	return problem{s.name, s.line(pos), fmt.Sprintf(format, args...)}
}

// sources parses every Go file outside testdata. It leaves out files with syntax errors, which the
// compiler reports better.
func (t tree) sources() []source {
	var all []source
	for _, name := range t.names() {
		if path.Ext(name) != ".go" || inTestdata(name) {
			continue
		}
		if s := parse(name, t[name]); s.file != nil {
			s.module = !t.nested(name)
			all = append(all, s)
		}
	}
	return all
}

// parsed keeps what parse returned, by name and text: ten checks read the same files.
var parsed sync.Map

// parse parses one file. A file with syntax errors has no syntax tree.
func parse(name, text string) source {
	key := [2]string{name, text}
	if kept, ok := parsed.Load(key); ok {
		return kept.(source) //nolint:errcheck // it holds nothing else
	}
	s := source{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"),
		text: text, set: token.NewFileSet()}
	if file, err := parser.ParseFile(s.set, name, text, parser.ParseComments); err == nil {
		s.file, s.generated = file, ast.IsGenerated(file)
	}
	parsed.Store(key, s)
	return s
}

// nested reports whether a file belongs to another module below the root, such as a service's.
func (t tree) nested(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := t[dir+"/go.mod"]; ok && dir != home {
			return true
		}
	}
	return false
}

func inTestdata(name string) bool {
	return strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/")
}

// matches reports whether a path matches one of the patterns, which are separated by spaces: a path
// stands for itself, with /... also for all below it, and ... alone for everything.
func matches(patterns, name string) bool {
	for pattern := range strings.FieldsSeq(patterns) {
		base, below := strings.CutSuffix(pattern, "/...")
		if pattern == "..." || name == base || below && strings.HasPrefix(name, base+"/") {
			return true
		}
	}
	return false
}

func TestMatches(t *testing.T) {
	for _, row := range []struct {
		patterns, name string
		want           bool
	}{
		{"load", "load", true},
		{"load", "load/engine/http1", false},
		{"load/...", "load/engine/http1", true},
		{"load/...", "load", true},
		{"load/...", "internal/loads", false},
		{"net net/http", "net/http", true},
		{"net net/http", "net/url", false},
		{"...", "anything/at/all", true},
		{"", "load", false},
	} {
		if got := matches(row.patterns, row.name); got != row.want {
			t.Errorf("matches(%q, %q) = %v", row.patterns, row.name, got)
		}
	}
}
