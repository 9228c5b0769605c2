package verdict_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"prony.example/internal/analysis/verdict"
	"prony.example/internal/report"
)

var update = flag.Bool("update", false, "write docs/formats/verdict-rules.md")

const method = "../../../docs/formats/verdict-rules.md"

// TestMethodListsTheRules checks that the documentation has the rules of the code.
func TestMethodListsTheRules(t *testing.T) {
	have, err := os.ReadFile(method)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "rules", ruleTable(verdict.Rules()))
	if err != nil {
		t.Fatal(err)
	}
	want, err = report.Update(want, "start rules", ruleTable(verdict.ComparisonRules()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf(
			"%s does not list the rules as they are: go test ./internal/analysis/verdict -update",
			method,
		)
	}
	if err := os.WriteFile(method, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// ruleTable returns a table of rules, with a column for bounds if any rule has one.
func ruleTable(rules []verdict.Rule) []byte {
	var b bytes.Buffer
	bounds := slices.ContainsFunc(rules, func(r verdict.Rule) bool { return r.Bound != "" })
	line := func(name, meets, bound, otherwise, source string) {
		cells := []string{name, meets, otherwise, source}
		if bounds {
			cells = slices.Insert(cells, 2, bound)
		}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	line("rule", "VALID if", "bound", "otherwise", "source")
	line("---", "---", "---", "---", "---")
	for _, r := range rules {
		line(r.Name, r.Meets, r.Bound, r.Else, r.Source)
	}
	return b.Bytes()
}

var (
	numbered = regexp.MustCompile(`(?m)^\| (\d+) \|.*$`)
	proof    = regexp.MustCompile("`(\\S+) (Test\\w+)`")
	inBold   = regexp.MustCompile(`\*\*([a-z -]+)\*\*`)
)

// TestChecksNameWhatExists checks that the thirty checks name existing rules and tests, and that
// they have all rules on loads.
func TestChecksNameWhatExists(t *testing.T) {
	page, err := os.ReadFile("../../../docs/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range numbered.FindAllStringSubmatch(string(page), -1) {
		if m[1] != fmt.Sprint(i+1) {
			t.Errorf("row %d has the number %s", i+1, m[1])
		}
	}
	if n := len(numbered.FindAll(page, -1)); n != 30 {
		t.Errorf("there are %d rows, want 30", n)
	}
	for _, m := range proof.FindAllStringSubmatch(string(page), -1) {
		if !testExists(t, m[1], m[2]) {
			t.Errorf("package %s has no %s", m[1], m[2])
		}
	}
	var rules []string
	for _, r := range verdict.Rules() {
		rules = append(rules, r.Name)
	}
	var bold []string
	for _, m := range inBold.FindAllStringSubmatch(string(page), -1) {
		bold = append(bold, m[1])
		if !slices.Contains(rules, m[1]) {
			t.Errorf("there is no rule %q", m[1])
		}
	}
	for _, r := range rules {
		// A trial's failure and limits are not mistakes of a generator.
		if r != "failed" && r != "limits" && r != "answers" && !slices.Contains(bold, r) {
			t.Errorf("rule %q stands against nothing", r)
		}
	}
}

func testExists(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && bytes.Contains(text, []byte("func "+name+"("))
	})
}
