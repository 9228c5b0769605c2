package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"prony/internal/result"
	"prony/internal/suite"
)

func TestDivide(t *testing.T) {
	check := func(cores []int, duet, layout, words string) {
		t.Helper()
		s := &suite.Suite{Duet: duet, Limits: suite.Limits{CPUs: 1}}
		r := &run{cores: cores, planned: planned{plan: &suite.Plan{Suite: s}}}
		err := r.divide()
		if words != "" {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%v for %q: %v, want %q", cores, duet, err, words)
			}
			return
		}
		if err != nil || (r.sides != nil) != (duet != "") || fmt.Sprint(r.layout) != layout {
			t.Errorf("%v for %q: %v, %v, error %v", cores, duet, r.layout, r.sides, err)
		}
	}
	check([]int{0, 1}, suite.Apart, "", "takes 4")
	check([]int{0, 1, 2, 3}, suite.Apart, "{[1 3] [0 2] false}", "")
	check([]int{0, 1}, "", "{[1] [0] false}", "")
}

// Runs that begin within a second have folders of their own.
func TestNewFolder(t *testing.T) {
	results := t.TempDir()
	for _, want := range []string{"now", "now-2", "now-3"} {
		id, dir := result.NewFolder(results, "now")
		if id != want || dir != filepath.Join(results, want) {
			t.Fatalf("%s in %s, want %s", id, dir, want)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
