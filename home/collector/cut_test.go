package collector

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestCutBack checks that only files which have grown are cut, and that no file becomes longer.
func TestCutBack(t *testing.T) {
	dir := t.TempDir()
	sizes := map[string]int64{"grown": 2, "same": 3, "shorter": 5, "gone": 1}
	wants := map[string]string{"grown": "ab", "same": "abc", "shorter": "abc", "unknown": "abc"}
	var names []string
	for name := range wants {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, path)
	}
	if err := cutBack(names, sizes); err != nil {
		t.Error(err)
	}
	for name, want := range wants {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	gone := filepath.Join(dir, "gone")
	if err := cutBack([]string{gone}, sizes); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if _, err := sizesOf([]string{gone}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the size of a file that is gone: %v", err)
	}
	if got, err := sizesOf([]string{filepath.Join(dir, "grown")}); err != nil || len(got) != 1 ||
		got["grown"] != 2 {
		t.Errorf("sizes %v, %v", got, err)
	}
}
