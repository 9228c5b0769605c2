package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// A reader parses foreign data and returns values for the program, or an error.
	takesBytes = regexp.MustCompile(`(?m)^func (?:\(\w+ \*?\w+\) )?((?i:read|parse|decode|import)` +
		`\w*)\([^()]*(?:\[\]byte|\bio\.Reader|\bjson\.RawMessage)`)
	isFuzzed = regexp.MustCompile(`(?m)^func Fuzz\w+\(f \*testing\.F\)`)
)

// unfuzzed are packages whose readers need no fuzzing of their own, with reasons.
var unfuzzed = map[string]string{
	"cmd/prony":                 "what docker compose prints is JSON to a library",
	"load/engine/enginetest":    "its peers read what engines under test send",
	"internal/base/strictyaml":  "suites, scenarios, manifests, agents are read by it, and fuzzed",
	"internal/dev/testsets/run": "it reads what go test prints",
	"internal/generator/truth":  "it is a server for tests",
}

// unfuzzedReaders are exported readers that no fuzz target of their package names, with reasons.
var unfuzzedReaders = map[string]string{
	"record.ReadLines":          "FuzzReadRecords reads through it",
	"distributed.ParseIdentity": "its certificate is read by crypto/tls",
}

// findUnfuzzed requires a fuzz target beside every reader, because a file or a peer may contain
// anything. An exported reader must be named in a file of fuzz targets, in any case of letters.
func findUnfuzzed(t tree) []problem {
	fuzzed := map[string]string{} // texts of the files with fuzz targets, by folder
	for _, name := range t.names() {
		if strings.HasSuffix(name, "_test.go") && isFuzzed.MatchString(t[name]) {
			fuzzed[path.Dir(name)] += strings.ToLower(t[name])
		}
	}
	var problems []problem
	for _, name := range t.names() {
		dir := path.Dir(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			unfuzzed[dir] != "" || strings.HasPrefix(name, "services/") ||
			strings.Contains(name, "testdata/") {
			continue
		}
		for _, at := range takesBytes.FindAllStringSubmatchIndex(t[name], -1) {
			reader := t[name][at[2]:at[3]]
			method := strings.HasPrefix(t[name][at[0]:], "func (")
			if fuzzed[dir] != "" && (method || !ast.IsExported(reader) ||
				unfuzzedReaders[path.Base(dir)+"."+reader] != "" ||
				strings.Contains(fuzzed[dir], strings.ToLower(reader)+"(")) {
				continue
			}
			line := 1 + strings.Count(t[name][:at[0]], "\n")
			problems = append(problems, problem{name, line, fmt.Sprintf("%s reads what others "+
				"wrote, and no test of its package fuzzes it", reader)})
		}
	}
	return problems
}

func TestFindUnfuzzed(t *testing.T) {
	const reads = "package p\n\nfunc Read(b []byte) error { return nil }\n"
	const fuzzes = "package p\n\nfunc FuzzRead(f *testing.F) { Read(nil) }\n"
	red(t, findUnfuzzed, tree{"p/a.go": reads, "p/a_test.go": "package p\n",
		"q/a_test.go": fuzzes}, "p/a.go:3: Read reads what others wrote")
	red(t, findUnfuzzed, tree{"p/a.go": reads, "p/a_test.go": fuzzes})
	red(t, findUnfuzzed, tree{"p/a.go": reads + "\nfunc ReadMore(b []byte) {}\n",
		"p/a_test.go": fuzzes}, "p/a.go:5: ReadMore reads what others wrote")
	red(t, findUnfuzzed, tree{"p/a.go": reads + "\nfunc parse(b []byte) {}\n",
		"p/a_test.go": fuzzes})
	red(t, findUnfuzzed, tree{"p/a.go": "package p\n\nfunc Show(b []byte) {}\n"})
}
