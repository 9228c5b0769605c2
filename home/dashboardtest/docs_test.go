package dashboardtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of dashboards in docs/dashboards.md")

// page lists the dashboards for readers.
const page = "docs/dashboards.md"

// table matches the table of dashboards, between two comments.
var table = regexp.MustCompile(`(?s)(<!-- dashboards -->\n).*?(<!-- end -->)`)

// TestPage checks that docs/dashboards.md lists the dashboards.
func TestPage(t *testing.T) {
	path := filepath.Join(root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !table.Match(text) {
		t.Fatalf("%s has no table: write <!-- dashboards --> and <!-- end -->", page)
	}
	want := table.ReplaceAllStringFunc(string(text), func(old string) string {
		m := table.FindStringSubmatch(old)
		return m[1] + listed(dashboards(t)) + m[2]
	})
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not list the dashboards: run go -C home test ./dashboardtest -update",
			page)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// listed formats the table of dashboards. Grafana shows the descriptions of their panels.
func listed(all []board) string {
	var s strings.Builder
	s.WriteString("\n| dashboard | uid | shows |\n|---|---|---|\n")
	for _, b := range all {
		fmt.Fprintf(&s, "| %s | `%s` | %s |\n", b.Title, b.UID,
			strings.ReplaceAll(b.Description, "|", `\|`))
	}
	s.WriteString("\n")
	return s.String()
}
