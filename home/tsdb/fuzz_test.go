package tsdb

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// FuzzReadFamilies checks that no content of the file prevents opening a store, and that stored
// families are read again.
func FuzzReadFamilies(f *testing.F) {
	for _, seed := range []string{"", "{}\n", `{"name":"a","type":"counter"}` + "\n" + `{"na`,
		`{"name":"a","help":5}`, "null\n[]\n"} {
		f.Add([]byte(seed))
	}
	f.Add(make([]byte, 100_000)) // as a power cut may leave the end of a file
	dir := f.TempDir()
	path := filepath.Join(dir, familiesFile)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		first, err := openFamilies(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := first.close(); err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")) + 1; len(first.byName) > lines {
			t.Errorf("%d families in %d lines", len(first.byName), lines)
		}
		again, err := readFamilies(dir)
		if err != nil || !maps.Equal(again.byName, first.byName) {
			t.Errorf("read again: %v, %v, want %v", again.byName, err, first.byName)
		}
	})
}
