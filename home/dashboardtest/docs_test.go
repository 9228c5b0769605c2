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

var update = flag.Bool("update", false, "write the lists of panels in docs/dashboards.md")

// page is where the panels are listed for readers.
const page = "docs/dashboards.md"

// list finds the list of a dashboard's panels, between two comments that readers do not see.
func list(uid string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)(<!-- panels of ` + uid + ` -->\n).*?(<!-- end -->)`)
}

// TestPage holds docs/dashboards.md to what the dashboards have.
func TestPage(t *testing.T) {
	path := filepath.Join(root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for _, b := range boards(t) {
		if !list(b.UID).MatchString(want) {
			t.Errorf("%s has no list for %s: write <!-- panels of %s --> and <!-- end -->", page,
				b.UID, b.UID)
		}
		want = list(b.UID).ReplaceAllStringFunc(want, func(old string) string {
			m := list(b.UID).FindStringSubmatch(old)
			return m[1] + panels(&b) + m[2]
		})
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s does not list the panels that there are: run go -C home test ./dashboardtest "+
			"-update", page)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// panels lists the titles of a dashboard's panels by row. Grafana shows their descriptions.
func panels(b *board) string {
	var s strings.Builder
	fmt.Fprintf(&s, "\n### %s\n\n`%s`. %s\n", b.Title, b.UID, b.Description)
	separator := "\n- "
	for _, p := range b.Panels {
		if p.Type == "row" {
			fmt.Fprintf(&s, "\n- **%s**", p.Title)
			separator = ": "
			continue
		}
		s.WriteString(separator + p.Title)
		separator = "; "
	}
	return s.String() + "\n\n"
}
