package audit

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRead checks that no text crashes the program, and that all sums are numbers.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(file), b)
	}
	f.Add("x.md", []byte("| a | RPS | Duration (s) |\n|-|-|-|\n| x | 1e308k | 0 |\n"))
	f.Add("x.csv", []byte("rps,p50,p99,requests,\"cpu\",cores\n0,0ms,0ms,0,0%,0\n"))
	f.Add("x.json", []byte(`[{"rps": 1e999, "p99_us": -1}]`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		d, err := Read(name, string(data), nil)
		if err != nil {
			return
		}
		r := Audit(d)
		if err := r.Write(io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			for _, c := range f.Cases {
				if strings.Contains(c.Arithmetic, "NaN") {
					t.Errorf("%s: %q", f.Rule, c.Arithmetic)
				}
			}
		}
	})
}
