package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"log": "one\ntwo\nthree",
		"long": strings.Repeat("0123456789abcde\n", 8192) + "z"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(file string, n int, want ...string) {
		t.Helper()
		if got := Tail(filepath.Join(dir, file), n); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	check("log", 2, "two", "three")
	check("log", 9, "one", "two", "three")
	check("long", 2, "0123456789abcde", "z")
	check("none", 2)
	if err := os.Symlink(filepath.Join(dir, "log"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	check("link", 2) // a service may have put it there
	if n := len(Tail(filepath.Join(dir, "long"), 1<<20)); n < 4096-1 || n > 4096+1 {
		t.Errorf("%d lines of 16 bytes, want those of 64 KiB", n)
	}
}

// TestEnd checks that End keeps the end of several writes, completely up to its bound.
func TestEnd(t *testing.T) {
	var e End
	for i := range 3 * endBytes {
		if _, err := e.Write([]byte{byte('a' + i%3)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Write([]byte("last\n")); err != nil {
		t.Fatal(err)
	}
	if s := e.String(); len(s) != endBytes-1 || !strings.HasSuffix(s, "abclast") {
		t.Errorf("%d bytes are kept, %q", len(s), s[max(0, len(s)-20):])
	}
}
