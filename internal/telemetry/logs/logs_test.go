package logs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"prony.example/internal/telemetry/traces"
)

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("l", 3*traces.MaxValueBytes)
	for name, text := range map[string]string{
		"b1-01-a.log": "one\ntwo abc\n", "b1-02-b.log": "three\n" + long + "\nlast",
		"b1-02-b.gc.log": "gc\n", "other.txt": "no",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string, f Filter, keep func(string) bool) {
		t.Helper()
		list, err := ReadFiles(dir, f, keep)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			got = append(got, fmt.Sprintf("%s:%d %.5s %d", l.File, l.Line, l.Text, len(l.Text)))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%+v: %s\nwant %s", f, text, want)
		}
	}
	// The long line keeps what is shown of one, 16 KiB, and an ellipsis of 3 bytes.
	const b = "b1-02-b.gc.log:1 gc 2, b1-02-b.log:1 three 5, b1-02-b.log:2 lllll 16387, " +
		"b1-02-b.log:3 last 4"
	check("b1-01-a.log:1 one 3, b1-01-a.log:2 two a 7, "+b, Filter{}, nil)
	check(b, Filter{Trial: "b1-02-b"}, nil)
	check("b1-01-a.log:2 two a 7", Filter{TraceID: "abc"}, nil)
	check("b1-01-a.log:1 one 3, b1-02-b.log:1 three 5", Filter{Grep: regexp.MustCompile("e$")}, nil)
	check("b1-01-a.log:1 one 3", Filter{Limit: 1}, nil)
	check("b1-01-a.log:1 one 3, b1-01-a.log:2 two a 7", Filter{},
		func(trial string) bool { return trial == "b1-01-a" })
	// A service may have put a link into the folder.
	if err := os.Symlink(filepath.Join(dir, "other.txt"),
		filepath.Join(dir, "b1-03-c.log")); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFiles(dir, Filter{Trial: "b1-03-c"}, nil); err == nil {
		t.Errorf("through a link: %v", got)
	}
}
