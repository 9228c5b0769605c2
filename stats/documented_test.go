package stats

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/slices.md and docs/stalls.md")

// documented holds a table of docs/slices.md to what a simulation gave.
func documented(t *testing.T, name string, rows []string) {
	t.Helper()
	documentedIn(t, "slices.md", name, rows)
}

// documentedIn holds a table of a page, between the comments that name and end it, to what a
// simulation gave.
func documentedIn(t *testing.T, file, name string, rows []string) {
	t.Helper()
	path := filepath.Join("..", "docs", file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	begin := "<!-- simulated " + name + " -->\n"
	before, after, ok := strings.Cut(page, begin)
	if !ok {
		t.Fatalf("%s has no table of %s", path, name)
	}
	old, after, ok := strings.Cut(after, "<!-- end -->")
	if !ok {
		t.Fatalf("%s: the table of %s has no end", path, name)
	}
	table := strings.Join(rows, "\n") + "\n"
	switch {
	case *update:
		page = before + begin + table + "<!-- end -->" + after
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	case runtime.GOARCH == "amd64" && old != table: // others round otherwise
		t.Errorf("%s shows another table of %s than -update writes:\n%s", path, name, table)
	}
}
