package audit

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "bless what the goldens differ in")

// text returns the text output for a file.
func text(t *testing.T, file string) string {
	t.Helper()
	d, err := Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := Audit(d).Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGoldens checks each published table of testdata against findings that were verified by hand.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		checked++
		t.Run(filepath.Base(file), func(t *testing.T) {
			got, golden := text(t, file), file+".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("it says\n%s\nand the golden\n%s", got, want)
			}
		})
	}
	if checked < 8 {
		t.Errorf("only %d files in testdata", checked)
	}
}
