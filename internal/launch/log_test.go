package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLog writes lines in pieces of a MiB, with a check of the log after each.
func TestLog(t *testing.T) {
	check := func(name string, mib int, holes bool, dropped int64) {
		t.Run(name, func(t *testing.T) {
			if !holes {
				was := punch
				punch = func(int, uint32, int64, int64) error { return unix.EOPNOTSUPP }
				defer func() { punch = was }()
			}
			name := filepath.Join(t.TempDir(), "log")
			l, err := KeepLog(name)
			if err != nil {
				t.Fatal(err)
			}
			w, err := l.Writer()
			if err != nil {
				t.Fatal(err)
			}
			for range mib {
				if _, err := w.Write(bytes.Repeat([]byte("a line of 16 by\n"), 1<<16)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.WriteString("the end\n"); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if l.Dropped() < dropped || len(text) > LogHead+LogTail+logSpare+200 {
				t.Errorf("%d bytes dropped and %d kept, want %d and more", l.Dropped(), len(text),
					dropped)
			}
			for line := range strings.Lines(string(text)) {
				if line != "a line of 16 by\n" && line != "the end\n" &&
					!strings.HasPrefix(line, "... prony: ") {
					t.Fatalf("torn: %q", line)
				}
			}
			gaps := bytes.Count(text, []byte("... prony: "))
			if want := min(dropped, 1); int64(gaps) != want {
				t.Errorf("%d lines say that others are missing, want %d", gaps, want)
			}
			if holes && !bytes.Contains(text, []byte("the end\n")) {
				t.Error("the last words are missing")
			}
		})
	}
	check("short", 15, true, 0)
	check("long", 20, true, 3<<20)
	check("long without holes", 20, false, 12<<20)
}
