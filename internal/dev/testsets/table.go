package testsets

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"prony.example/internal/base/files"
)

// Table compares a table of a page, between the comment that begins it and "<!-- end -->", with the
// computed rows, or writes them with update. It compares floating-point numbers only on amd64,
// because other processors round differently.
func Table(t *testing.T, path, begin string, rows []string, update bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	before, after, ok := strings.Cut(page, begin+"\n")
	if !ok {
		t.Fatalf("%s has no %q", path, begin)
	}
	old, after, ok := strings.Cut(after, "<!-- end -->")
	if !ok {
		t.Fatalf("%s: the table after %q has no end", path, begin)
	}
	table := strings.Join(rows, "\n") + "\n"
	switch {
	case update:
		page = before + begin + "\n" + table + "<!-- end -->" + after
		if err := files.Put(path, []byte(page)); err != nil {
			t.Fatal(err)
		}
	case runtime.GOARCH == "amd64" && old != table:
		t.Errorf("%s shows another table after %q than an update writes:\n%s", path, begin, table)
	}
}
