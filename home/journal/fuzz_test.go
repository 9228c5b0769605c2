package journal

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Any file is a journal with an end that is cut off, and has the same records when it is opened
// again.
func FuzzOpen(f *testing.F) {
	record := encode(nil, 'r', []byte("one"))
	f.Add(record)
	f.Add(slices.Concat(record, record, record[:10]))
	f.Add(append(slices.Clone(record), "\xff\xff\xff\xff\x00\x00\x00\x00"...))
	f.Add(make([]byte, 100_000)) // as a power cut may leave the end of a file
	name := filepath.Join(f.TempDir(), "journal")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		j, first, cut := reopened(t, name)
		if n, err := j.Size(); err != nil || n+cut != int64(len(text)) {
			t.Errorf("%d and %d bytes of %d, %v", n, cut, len(text), err)
		}
		if err := j.Close(false); err != nil {
			t.Fatal(err)
		}
		j, again, cut := reopened(t, name)
		if !slices.Equal(first, again) || cut != 0 {
			t.Errorf("%q and %d bytes left out, want %q", again, cut, first)
		}
		if err := j.Close(false); err != nil {
			t.Fatal(err)
		}
	})
}
