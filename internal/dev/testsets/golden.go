package testsets

import (
	"os"
	"strings"
	"testing"

	"prony.example/internal/base/files"
)

// Golden requires that a text is that of a file, and names the first line that differs. With
// update, it writes the file instead.
func Golden(t testing.TB, update bool, file, text string) {
	t.Helper()
	if update {
		if err := files.Put(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(text, "\n"), strings.Split(string(stored), "\n")
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("line %d of %s is\n%s\nwant\n%s\n(bless with -update)", i+1, file, got[i],
				want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, want the %d of %s (bless with -update)", len(got), len(want), file)
	}
}
