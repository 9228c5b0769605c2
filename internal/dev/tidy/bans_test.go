package tidy

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// bans are the calls that have a better alternative here, and the files that must make them all the
// same.
var bans = []ban{
	{pkg: "time", names: "Now Since Until",
		say: "measure with clock.Mono, date with clock.Wall",
		allow: map[string]string{
			"internal/base/clock/...": "it is the clock",
		}},
	{
		pkg:   "prony.example/internal/base/clock",
		names: "SetWall",
		say:   "it steps the clock of tests",
	},
	{pkg: "time", names: "Sleep",
		say: "wait with a timer and the context, so that the wait can be ended",
		allow: map[string]string{
			"internal/launch/...":          "polls a process, which tells nobody that it is ready",
			"load/...":                     "the pacing waits are what it measures",
			"internal/generator/truth/...": "a wait in virtual time takes none",
			"internal/trial/...":           "lets the host calm down between trials",
			"bench/...":                    "a known service time is a sleep",
		}},
	{pkg: "fmt", names: "Print Printf Println",
		say: "take an io.Writer and use fmt.Fprint",
		allow: map[string]string{
			"cmd/...":             "it owns the terminal",
			"internal/report/...": "it prints",
		}},
	{pkg: "os", names: "Stderr Stdout",
		say: "take an io.Writer",
		allow: map[string]string{
			"cmd/...":                       "it hands the streams to run",
			"internal/dev/testsets/run/...": "as a command",
			"home/cmd/...":                  "as cmd/...",
			"internal/dev/pinimages/...":    "likewise",
			"internal/dev/ready/...":        "likewise",
			"internal/dev/release/...":      "likewise",
			"internal/report/...":           "it prints",
			// This program, started for another purpose.
			"internal/launch/guard/...": "it hands the streams to that",
		}},
	{pkg: "", names: "print println", say: "take an io.Writer and use fmt.Fprint"},
	{pkg: "log", names: "*", but: "Logger New", // http.Server.ErrorLog needs one
		say: "return an error"},
	{pkg: "math/rand", names: "*", tests: true,
		say: "use math/rand/v2 and take a *rand.Rand made from a seed"},
	{pkg: "math/rand/v2", names: "*", tests: true,
		but: "ChaCha8 New NewChaCha8 NewPCG NewZipf PCG Rand Source Zipf",
		say: "take a *rand.Rand made from a seed"},
	{pkg: "os", names: "Create WriteFile",
		say: "write results with files.Write or files.Put: whole, or not at all",
		allow: map[string]string{
			"internal/suite/agents/...":    "copies that a mark, written last, makes good",
			"internal/service/...":         "likewise, and logs of builds",
			"internal/generator/...":       "what other tools are told, for a while",
			"internal/launch/...":          "files of the kernel, and its own journal",
			"internal/observe/profile/...": "what profilers are told",
			"internal/server/site/...":     "copies that a mark, written last, makes good",
			"home/collector/...":           "each second beside a load: no sync",
		}},
	{pkg: "os", names: "Exit",
		say: "return an error to main",
		allow: map[string]string{
			"cmd/prony/main.go":                 "the one place that turns an error into a status",
			"home/cmd/prony-home/main.go":       "likewise",
			"internal/dev/testsets/run/main.go": "as a command",
			"internal/dev/pinimages/main.go":    "likewise",
			"internal/dev/ready/main.go":        "likewise",
			"internal/dev/release/main.go":      "likewise",
			"internal/launch/process/...":       "it ends where the service begins, before main",
			"internal/launch/guard/...":         "the guard ends before main",
		}},
}

// ban is names of a package (* for all), except but, that only the allowed files may use. The keys
// of allow are patterns of files, its values the reasons.
type ban struct {
	pkg, names, but string
	say             string // the alternative
	tests           bool   // also applies to tests
	allow           map[string]string
}

func (b ban) holds(s source, name string) bool {
	if s.test && !b.tests || b.names != "*" && !matches(b.names, name) || matches(b.but, name) {
		return false
	}
	for pattern := range b.allow {
		if matches(pattern, s.name) {
			return false
		}
	}
	return true
}

func findBans(t tree) []problem {
	var problems []problem
	for _, s := range t.sources() {
		if s.module && !s.generated {
			problems = append(problems, bannedIn(s)...)
		}
	}
	return problems
}

func bannedIn(s source) []problem {
	var problems []problem
	imports := importNames(s.file)
	say := func(n ast.Node, pkg, name string) {
		for _, b := range bans {
			if b.pkg == pkg && b.holds(s, name) {
				called := strings.TrimPrefix(pkg+"."+name, ".")
				problems = append(problems, s.problem(n.Pos(), "%s is banned here: %s",
					called, b.say))
			}
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			// A variable that hides a package counts as the package: rename the variable.
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				say(n, imports[x.Name], n.Sel.Name)
			}
		case *ast.ExprStmt:
			// The built-in ones return nothing; print(x) as a value is another function.
			if call, ok := n.X.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok {
					say(n, "", f.Name)
				}
			}
		case *ast.ImportSpec:
			if n.Name != nil && n.Name.Name == "." {
				problems = append(problems, s.problem(n.Pos(), "a dot import hides where names "+
					"come from: import it by its name"))
			}
		}
		return true
	})
	return problems
}

// importNames maps the names of packages in a file to their paths.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		whole, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // impossible, because the file parsed
		}
		name := path.Base(strings.TrimSuffix(whole, "/v2"))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = whole
	}
	return names
}

func TestBans(t *testing.T) {
	for _, row := range []struct{ name, imports, code, want string }{
		{"a.go", `"os"`, "os.Create(x)", "os.Create is banned here: write results with files"},
		{"a.go", `"os"`, "os.WriteFile(x, y, 0)", "os.WriteFile is banned here: write results"},
		{"a.go", `"time"`, "time.Now()", "time.Now is banned here: measure with clock.Mono"},
		{"a.go", `"time"`, "time.Since(x)", "time.Since is banned"},
		{"a.go", `"time"`, "time.Until(x)", "time.Until is banned"},
		{"a.go", `"time"`, "use(time.Now)", "time.Now is banned"}, // as a value
		{"a.go", `t "time"`, "t.Now()", "time.Now is banned"},     // by another name
		{"a.go", `"time"`, "time.Unix(0, 0)", ""},
		{"a.go", `"time"`, "x.Now()", ""},
		{"internal/base/clock/clock.go", `"time"`, "time.Now()", ""},
		{"a_test.go", `"time"`, "time.Now()", ""},
		{"a.go", `"prony.example/internal/base/clock"`, "clock.SetWall(1)",
			"prony.example/internal/base/clock.SetWall is"},
		{"a_test.go", `"prony.example/internal/base/clock"`, "clock.SetWall(1)", ""},
		{"a.go", `. "time"`, "Now()", "a dot import"},
		{"internal/server/app/a.go", `"time"`, "time.Sleep(1)", "time.Sleep is banned here: wait"},
		{"internal/launch/docker/a.go", `"time"`, "time.Sleep(1)", ""},
		{"internal/server/app/a.go", `"fmt"`, "fmt.Println()", "fmt.Println is banned here: take"},
		{"internal/server/app/a.go", `"fmt"`, "fmt.Fprintln(w)", ""},
		{"internal/report/a.go", `"fmt"`, "fmt.Println()", ""},
		{"internal/server/app/a.go", `"os"`, "use(os.Stderr)", "os.Stderr is banned here"},
		{"cmd/prony/main.go", `"os"`, "use(os.Stdout)", ""},
		{"a.go", `"os"`, "println()", "println is banned here: take an io.Writer"},
		{"a.go", `"os"`, "x := print(1)", ""},
		{"a.go", `"log"`, "log.Printf(``)", "log.Printf is banned here: return an error"},
		{"a.go", `"log"`, "use(log.New(w, ``, 0))", ""},
		{"a.go", `"math/rand"`, "rand.New(s)", "math/rand.New is banned here: use math/rand/v2"},
		{"a.go", `"math/rand/v2"`, "rand.IntN(2)", "math/rand/v2.IntN is banned here: take a *r"},
		{"a_test.go", `"math/rand/v2"`, "rand.IntN(2)", "math/rand/v2.IntN is banned"},
		{"a.go", `"math/rand/v2"`, "rand.New(rand.NewPCG(1, 2)).IntN(2)", ""},
		{"internal/server/app/a.go", `"os"`, "os.Exit(1)", "os.Exit is banned here: return an"},
		{"cmd/prony/verify.go", `"os"`, "os.Exit(1)", "os.Exit is banned here"},
		{"cmd/prony/main.go", `"os"`, "os.Exit(1)", ""},
		{"internal/launch/process/a.go", `"os"`, "os.Exit(1)", ""},
	} {
		text := "package p\nimport " + row.imports + "\nfunc f() { " + row.code + " }\n"
		want := []string{row.name + ":3: " + row.want}
		if row.want == "" {
			want = nil
		} else if strings.HasPrefix(row.imports, ".") {
			want = []string{row.name + ":2: " + row.want}
		}
		red(t, findBans, tree{row.name: text}, want...)
	}
	service := "package p\nimport \"time\"\nvar x = time.Now()\n"
	red(t, findBans, tree{"services/x/a.go": service, "services/x/go.mod": "module x\n"})
}
