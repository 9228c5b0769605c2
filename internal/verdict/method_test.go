package verdict_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"prony/internal/report"
	"prony/internal/verdict"
)

var update = flag.Bool("update", false, "write the rules into docs/method.md")

const method = "../../docs/method.md"

// The rules in the documentation are those in the code.
func TestMethodListsTheRules(t *testing.T) {
	have, err := os.ReadFile(method)
	if err != nil {
		t.Fatal(err)
	}
	want, err := report.Update(have, "rules", ruleTable())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s does not list the rules as they are: run go test ./internal/verdict -update",
			method)
	}
	if err := os.WriteFile(method, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func ruleTable() []byte {
	var b bytes.Buffer
	b.WriteString("| rule | VALID where | otherwise | source |\n|---|---|---|---|\n")
	for _, r := range verdict.Rules() {
		cells := []string{r.Name, r.Meets, r.Else, r.Source}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.Bytes()
}
