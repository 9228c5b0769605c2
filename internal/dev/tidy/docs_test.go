package tidy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const architecture = "ARCHITECTURE.md"

// required are the mandatory documents.
var required = []string{architecture, "CONTRIBUTING.md", "README.md", "STYLE.md"}

var (
	codeSpan = regexp.MustCompile("`+[^`]+`+")
	// A path that starts at the root, and is not the middle of a longer one or of an address.
	ourPath = regexp.MustCompile(`(?:^|[^\w/.@:-])(?:` + regexp.QuoteMeta(Module) + `/)?` +
		`((?:bench|cmd|contract|deploy|docs|home|internal|load|record|services|suites)/\w[\w./-]*)`)
	lineNumber   = regexp.MustCompile(`\.(go|java|js|py|rs|ts):\d`)
	decisionName = regexp.MustCompile(`^(\d+)-[a-z0-9]+(-[a-z0-9]+)*\.md$`)
	heading      = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
)

// mention is a path in a text.
type mention struct {
	path string
	line int
}

// mentions returns the paths in the code spans and fenced blocks of a Markdown text.
func mentions(text string) []mention {
	var all []mention
	for _, line := range markdown(text) {
		code := line.text
		if !line.code {
			code = strings.ReplaceAll(strings.Join(codeSpan.FindAllString(code, -1), " "), "`", " ")
		}
		for _, m := range ourPath.FindAllStringSubmatch(code, -1) {
			all = append(all, mention{strings.TrimRight(m[1], "./-"), line.number})
		}
	}
	return all
}

// findMap compares ARCHITECTURE.md with the tree, both ways, and reports line numbers in it.
func findMap(t tree) []problem {
	var problems []problem
	for _, name := range required {
		if _, ok := t[name]; !ok {
			problems = append(problems, problem{name, 0, "missing"})
		}
	}
	text, ok := t[architecture]
	if !ok {
		return problems
	}
	named := mentions(text)
	for _, m := range named {
		if !t.has(m.path) {
			problems = append(problems, problem{architecture, m.line, "names " + m.path +
				", which does not exist"})
		}
	}
	for i, line := range strings.Split(text, "\n") {
		if lineNumber.MatchString(line) {
			problems = append(problems, problem{architecture, i + 1, "names a line by its " +
				"number, which the next change moves: name the function"})
		}
	}
	known := packages(t)
	for _, room := range rooms {
		inUse := slices.ContainsFunc(known, func(dir string) bool {
			return matches(room+"/...", dir)
		})
		if inUse && !strings.Contains(text, "`"+room+"`") {
			problems = append(problems, problem{architecture, 0, "does not name the room " + room})
		}
	}
	return problems
}

// dependency is a line of go.mod's require blocks.
type dependency struct {
	Path     string
	Indirect bool
}

// dependencies returns the requirements in a go.mod, read by the go command.
func dependencies(gomod string) ([]dependency, error) {
	dir, err := os.MkdirTemp("", "tidy")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(file, []byte(gomod), 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	if err != nil {
		return nil, fmt.Errorf("read go.mod: %w", err)
	}
	var module struct{ Require []dependency }
	err = json.Unmarshal(out, &module)
	return module.Require, err
}

// findDependencies requires that a decision names each direct dependency. Imports of the code
// decide what is direct, including those of tests, because the marks of go.mod are right only after
// go mod tidy.
func findDependencies(t tree) []problem {
	problems := findRequired(t, "go.mod")
	if _, ok := t[home+"/go.mod"]; ok {
		problems = append(problems, findRequired(t, home+"/go.mod")...)
	}
	return problems
}

// findRequired reports direct dependencies in one go.mod that no decision names.
func findRequired(t tree, file string) []problem {
	required, err := dependencies(t[file])
	if err != nil {
		return []problem{{file, 0, err.Error()}}
	}
	imported := map[string]bool{}
	for _, s := range t.sources() {
		for _, spec := range s.file.Imports {
			if whole, err := strconv.Unquote(spec.Path.Value); err == nil && s.module {
				imported[owner(whole, required)] = true
			}
		}
	}
	var decisions strings.Builder
	for _, name := range t.glob("docs/decisions/*.md") {
		decisions.WriteString(t[name])
	}
	var problems []problem
	for _, d := range required {
		name := regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(d.Path) + `($|[^\w/-])`)
		if d.Path != Module && (!d.Indirect || imported[d.Path]) &&
			!name.MatchString(decisions.String()) {
			problems = append(problems, problem{file, 0, "requires " + d.Path +
				", which no page in docs/decisions names"})
		}
	}
	return problems
}

// owner returns the module of a package: the longest path that is a prefix of the package's.
func owner(pkg string, modules []dependency) string {
	longest := ""
	for _, m := range modules {
		if matches(m.Path+"/...", pkg) && len(m.Path) > len(longest) {
			longest = m.Path
		}
	}
	return longest
}

// findDecisions requires numbered pages with the three parts. A README.md may list them.
func findDecisions(t tree) []problem {
	var problems []problem
	numbers := map[string]string{}
	for _, name := range t.glob("docs/decisions/*") {
		base := path.Base(name)
		if base == "README.md" {
			continue
		}
		m := decisionName.FindStringSubmatch(base)
		if m == nil {
			problems = append(problems, problem{name, 0, "is not named as 0012-some-words.md is"})
			continue
		}
		number := strings.TrimLeft(m[1], "0")
		if other := numbers[number]; other != "" {
			problems = append(problems, problem{name, 0, "has the number of " + other})
		}
		numbers[number] = name
		for _, part := range []string{"Context", "Decision", "Consequences"} {
			if !slices.Contains(headings(t[name]), part) {
				problems = append(problems, problem{name, 0, "has no heading " + part})
			}
		}
	}
	if len(numbers) == 0 {
		problems = append(problems, problem{"docs/decisions", 0, "holds no decision"})
	}
	return problems
}

func headings(text string) []string {
	var all []string
	for _, line := range markdown(text) {
		if m := heading.FindStringSubmatch(line.text); m != nil && !line.code {
			all = append(all, m[1])
		}
	}
	return all
}

func TestMap(t *testing.T) {
	const text = "# Map\n\nSee `load`, `internal/trial`, `cmd`, `" + Module + "/load/pace`, " +
		"`cmd/prony/main.go`.\n" +
		"Not code: internal/gone. Not ours: `github.com/x/internal/gone`, `/services/gone`.\n" +
		"```\nload/pace/   arrivals\nservices/<name>/\n```\n"
	whole := func(text string) tree {
		return tree{
			"ARCHITECTURE.md": text, "CONTRIBUTING.md": "", "README.md": "", "STYLE.md": "",
			"cmd/prony/main.go": goFile(), "load/a.go": goFile(),
			"internal/trial/lab/a.go": goFile(), "load/pace/a.go": goFile(),
		}
	}
	for _, row := range []struct {
		text string
		want []string
	}{
		{text, nil},
		{text + "`internal/gone`", []string{"ARCHITECTURE.md:9: names internal/gone, which"}},
		{text + "`docs/gone.md`, `docs/off.md`.", []string{
			"ARCHITECTURE.md:9: names docs/gone.md", "ARCHITECTURE.md:9: names docs/off.md"}},
		{text + "```\nservices/gone/  x\n```", []string{"ARCHITECTURE.md:10: names services/gone"}},
		{text + "the loop, a.go:12", []string{"ARCHITECTURE.md:9: names a line by its number"}},
		{strings.ReplaceAll(text, "`internal/trial`", "x"),
			[]string{"ARCHITECTURE.md: does not name the room internal/trial"}},
	} {
		red(t, findMap, whole(row.text), row.want...)
	}
	red(t, findMap, tree{"STYLE.md": ""}, "ARCHITECTURE.md: missing",
		"CONTRIBUTING.md: missing", "README.md: missing")
}

func TestDependencies(t *testing.T) {
	const gomod = "module prony\n\ngo 1.26\n\nrequire (\n\texample.org/a v1.0.0\n" +
		"\texample.org/b v1.0.0 // indirect\n\texample.org/a/c v1.0.0 // indirect\n)\n"
	const needs = "go.mod: requires example.org/"
	for _, row := range []struct {
		decision, imported string
		want               []string
	}{
		{"We use example.org/a.", "fmt", nil},
		{"We use nothing.", "fmt", []string{needs + "a, which"}},
		{"We use example.org/a/c.", "fmt", []string{needs + "a, which"}}, // a longer name
		// Imported, so direct, despite its mark; and the owner is the longest prefix.
		{"We use example.org/a.", "example.org/b/x", []string{needs + "b, which"}},
		{"We use example.org/a.", "example.org/a/c/x", []string{needs + "a/c, which"}},
	} {
		red(t, findDependencies, tree{"go.mod": gomod, "docs/decisions/1-a.md": row.decision,
			"internal/x/x.go": goFile(row.imported)}, row.want...)
	}
	red(t, findDependencies, tree{"go.mod": "module"}, "go.mod: read go.mod: ")
}

func TestDecisions(t *testing.T) {
	const whole = "# Use Go\n\n## Context\n\n## Decision ##\n\n## Consequences\n"
	const at = "docs/decisions/"
	for _, row := range []struct {
		files tree
		want  []string
	}{
		{tree{at + "0001-use-go.md": whole, at + "README.md": ""}, nil},
		{tree{}, []string{"docs/decisions: holds no decision"}},
		{tree{at + "0001-use-go.md": whole, at + "use-go.md": whole},
			[]string{at + "use-go.md: is not named as"}},
		{tree{at + "0001-use-go.md": whole, at + "0002_x.md": whole},
			[]string{at + "0002_x.md: is not named as"}},
		{tree{at + "0001-use-go.md": whole, at + "1-a.md": whole},
			[]string{at + "1-a.md: has the number of " + at + "0001-use-go.md"}},
		{tree{at + "0001-a.md": "# A\n\nContext\n\n## Decision\n\n```\n# Consequences\n```\n"},
			[]string{at + "0001-a.md: has no heading Context",
				at + "0001-a.md: has no heading Consequences"}},
	} {
		red(t, findDecisions, row.files, row.want...)
	}
}
