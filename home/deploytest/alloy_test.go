package deploytest

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/grafana/alloy/syntax/ast"
	"github.com/grafana/alloy/syntax/parser"
	"github.com/grafana/alloy/syntax/printer"
	"github.com/grafana/alloy/syntax/token"
)

// alloyFiles are read by Alloy. Parser and formatter of its syntax are a library; Alloy itself is
// not linked.
var alloyFiles = []string{"alloy/config.alloy", "alloy/ebpf.alloy"}

// Alloy's own parser reads its configuration, its formatter leaves it as it is, and its reference
// has all components, blocks, arguments and exports that the configuration uses.
func TestAlloy(t *testing.T) {
	known := readReference(t, "alloy.txt")
	for _, name := range alloyFiles {
		text := file(t, name)
		parsed, err := parser.ParseFile(name, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var formatted bytes.Buffer
		if err := printer.Fprint(&formatted, parsed); err != nil {
			t.Fatal(err)
		}
		if got := formatted.String() + "\n"; got != text {
			t.Errorf("%s is not as alloy fmt writes it: want\n%s", name, got)
		}
		for _, problem := range checkAlloy(known, parsed) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// checkAlloy returns what the reference has not: see TestAlloy.
func checkAlloy(known documented, f *ast.File) []string {
	a := alloyCheck{known: known, components: map[string]string{}}
	for _, s := range f.Body {
		b, ok := s.(*ast.BlockStmt)
		if !ok {
			a.say("the file sets an argument outside of a block")
			continue
		}
		name := b.GetBlockName()
		if b.Label != "" {
			name = strings.TrimSuffix(name, "."+b.Label)
			a.components[name+"."+b.Label] = name
		}
	}
	for _, s := range f.Body {
		if b, ok := s.(*ast.BlockStmt); ok {
			name := strings.Join(b.Name, ".")
			if _, ok := known[name]; !ok {
				a.say("the reference has no %s", name)
				continue
			}
			a.body(name, b.Body)
		}
	}
	return a.problems
}

type alloyCheck struct {
	known      documented
	components map[string]string // names by name and label: "loki.write" by "loki.write.loki"
	problems   []string
}

func (a *alloyCheck) say(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// body checks the statements of a block, whose path is "pyroscope.scrape/profiling_config".
func (a *alloyCheck) body(block string, statements ast.Body) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.BlockStmt:
			name := strings.Join(s.Name, ".")
			inner := path.Join(block, name)
			if a.known[block][name] != "block" {
				a.say("the reference has no block %s", inner)
				continue
			}
			a.body(inner, s.Body)
		case *ast.AttributeStmt:
			kind, ok := a.known[block][s.Name.Name]
			if !ok || kind == "block" {
				a.say("the reference has no argument %s/%s", block, s.Name.Name)
				continue
			}
			a.value(block+"/"+s.Name.Name, kind, s.Value)
		}
	}
}

// literals are the tokens of literal values by documented type; others are references or lists.
var literals = map[string][]token.Token{
	"string": {token.STRING}, "duration": {token.STRING}, "bool": {token.BOOL},
	"boolean": {token.BOOL}, "int": {token.NUMBER}, "number": {token.NUMBER},
}

func (a *alloyCheck) value(where, kind string, e ast.Expr) {
	switch e := e.(type) {
	case *ast.LiteralExpr:
		want := literals[kind]
		if len(want) == 0 || want[0] != e.Kind {
			a.say("%s is %s, want a value of type %s", where, e.Value, kind)
		}
	case *ast.ArrayExpr:
		item, ok := strings.CutPrefix(kind, "list(")
		if !ok {
			a.say("%s is a list, want a value of type %s", where, kind)
			return
		}
		for _, one := range e.Elements {
			a.value(where, strings.TrimSuffix(item, ")"), one)
		}
	case *ast.AccessExpr:
		a.reference(where, kind, e)
	default:
		a.say("%s has a form that this test does not know", where)
	}
}

// reference checks an export of another component, such as loki.write.loki.receiver.
func (a *alloyCheck) reference(where, kind string, e *ast.AccessExpr) {
	var names []string
	var at ast.Expr = e
	for at != nil {
		switch one := at.(type) {
		case *ast.AccessExpr:
			names, at = append([]string{one.Name.Name}, names...), one.Value
		case *ast.IdentifierExpr:
			names, at = append([]string{one.Ident.Name}, names...), nil
		default:
			a.say("%s refers to nothing that has a name", where)
			return
		}
	}
	last := len(names) - 1
	of := strings.Join(names[:last], ".")
	name, ok := a.components[of]
	if !ok {
		a.say("%s refers to %s, which the file does not have", where, of)
		return
	}
	if got := a.known[name]["->"+names[last]]; got != kind {
		a.say("%s wants a value of type %s, %s.%s is %q", where, kind, of, names[last], got)
	}
}

// The check also finds mistakes.
func TestAlloyRefuses(t *testing.T) {
	known := readReference(t, "alloy.txt")
	check := func(text, want string) {
		t.Helper()
		parsed, err := parser.ParseFile("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(checkAlloy(known, parsed), "; "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	write := "pyroscope.write \"p\" {\n endpoint {\n url = \"http://p\"\n }\n}\n"
	scrape := func(inner string) string {
		return write + "pyroscope.scrape \"s\" {\n" + inner + "\n}"
	}
	check(write, "")
	check(scrape("forward_to = [pyroscope.write.p.receiver]"), "")
	check(scrape("forward_to = [pyroscope.write.q.receiver]"),
		"pyroscope.scrape/forward_to refers to pyroscope.write.q, which the file does not have")
	check(scrape("forward_to = [pyroscope.write.p.input]"), "pyroscope.scrape/forward_to wants a "+
		"value of type ProfilesReceiver, pyroscope.write.p.input is \"\"")
	check(scrape("scrape_intervall = \"1s\""),
		"the reference has no argument pyroscope.scrape/scrape_intervall")
	check(scrape("scrape_interval = 1"),
		"pyroscope.scrape/scrape_interval is 1, want a value of type duration")
	check(scrape("profiling {\n}"), "the reference has no block pyroscope.scrape/profiling")
	check("pyroscope.scrap \"s\" {\n}", "the reference has no pyroscope.scrap")
}
