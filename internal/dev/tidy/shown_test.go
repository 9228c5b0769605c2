package tidy

import (
	"go/ast"
	"slices"
	"testing"
)

// unseen are the files whose commands -x does not show, with reasons.
var unseen = map[string]string{
	"internal/launch/process/process.go": "it shows what its command becomes instead",
	"internal/launch/guard/guard.go":     "the guard is this program, idle until the lab dies",
	"internal/service/guard.go":          "the guard of a step is idle until the lab dies",
}

// findShown requires that every file that starts commands shows them.
func findShown(t tree) []problem {
	var problems []problem
	for _, s := range t.sources() {
		if s.test || !s.module || s.generated || unseen[s.name] != "" ||
			matches(
				"internal/dev/tidy/... internal/launch/launchtest "+
					"internal/observe/profile/profiletest "+
					"load/engine/enginetest internal/dev/testsets/... cmd/prony",
				s.dir,
			) {
			continue
		}
		called := calls(s.file)
		if slices.ContainsFunc(called, func(name string) bool {
			return name == "exec.Command" || name == "exec.CommandContext"
		}) && !slices.Contains(called, "cmdlog.Command") {
			problems = append(problems, problem{s.name, 0, "starts a command that -x does not " +
				"show: call cmdlog.Command before"})
		}
	}
	return problems
}

// calls returns the functions of packages that a file calls, as PACKAGE.NAME.
func calls(file *ast.File) (names []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if f, ok := c.Fun.(*ast.SelectorExpr); ok {
				if x, ok := f.X.(*ast.Ident); ok {
					names = append(names, x.Name+"."+f.Sel.Name)
				}
			}
		}
		return true
	})
	return names
}

func TestShown(t *testing.T) {
	const text = "package p\nimport \"os/exec\"\nfunc f() { "
	red(t, findShown, tree{"a.go": text + "exec.Command(`x`).Run() }\n"},
		"a.go: starts a command that -x does not show")
	red(t, findShown, tree{"a.go": text + "exec.CommandContext(c, `x`).Run() }\n"},
		"a.go: starts a command that -x does not show")
	red(t, findShown, tree{"a.go": text + "x := exec.Command(`x`); cmdlog.Command(x) }\n"})
	red(t, findShown, tree{"a_test.go": text + "exec.Command(`x`).Run() }\n"})
	red(t, findShown, tree{"internal/dev/tidy/a.go": text + "exec.Command(`x`).Run() }\n"})
}
