package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFindProject checks that the nearest file above is the project's, by either of its names, and
// the first name if a folder has both.
func TestFindProject(t *testing.T) {
	top := t.TempDir()
	below := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	const text = "targets:\n  a: {url: 'http://127.0.0.1:1'}\nrequests: [{request: GET /}]\n"
	check := func(want, dir string) {
		t.Helper()
		p, from, err := findProject()
		if err != nil {
			t.Errorf("want %s: %v", want, err)
			return
		}
		got := ""
		if p != nil {
			got = p.File
		}
		if got != want || from != dir {
			t.Errorf("%q in %q, want %q in %q", got, from, want, dir)
		}
	}
	for _, row := range []struct{ write, want, dir string }{
		{"prony.yml", "../../prony.yml", top},
		{"prony.yaml", "../../prony.yaml", top},
		{"a/prony.yml", "../prony.yml", filepath.Dir(below)},
		{"a/b/prony.yaml", "prony.yaml", below},
	} {
		if err := os.WriteFile(filepath.Join(top, row.write), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		check(row.want, row.dir)
	}
	path := filepath.Join(below, "prony.yaml")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := findProject(); err == nil {
		t.Error("a folder with a project file's name is read")
	}
}
