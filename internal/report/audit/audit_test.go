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

// TestPlaces checks that a finding names the table and the row only if the file has several, and
// the row also if it is called otherwise than its table.
func TestPlaces(t *testing.T) {
	check := func(tables, rows int, c Case, want string) {
		t.Helper()
		c.Line, c.Arithmetic = 7, "1 + 1 = 3"
		r := Result{File: "x.md", Tables: tables, Rows: rows,
			Findings: []Finding{{Severity: Doubt, Rule: "sum", Cases: []Case{c}}}}
		var b strings.Builder
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "\n  x.md:7: "+want+"1 + 1 = 3\n") {
			t.Errorf("%d tables, %d rows, %+v: want %q in\n%s", tables, rows, c, want, b.String())
		}
	}
	check(1, 1, Case{Table: "a", Row: "a"}, "")
	check(1, 1, Case{Table: "a", Row: "b"}, "b: ")
	check(1, 2, Case{Table: "a", Row: "a"}, "a: ")
	check(2, 2, Case{Table: "a", Row: "b"}, "a: b: ")
	check(2, 2, Case{}, "")
}
