//go:build linux && !portable

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"prony.example/record"
)

// TestRepeated checks which words of a run's command line a resumption repeats.
func TestRepeated(t *testing.T) {
	for words, want := range map[string]string{
		"prony":                                  "run:",
		"prony run --out d --quick":              "run: --quick",
		"prony --root r run s.yaml --wait=9m":    "run: --root r s.yaml",
		"prony -x versus ./a --out=d --get run":  "versus: -x ./a --get run",
		"prony versus --get / -- ./a --out":      "versus: --get / -- ./a --out",
		"prony load http://127.0.0.1/ --save=d":  "",
		"prony capacity http://127.0.0.1/ -c 4":  "",
		"prony run --root=r --resume=d --seed 1": "run: --root=r --seed 1",
	} {
		line, verb := repeated(strings.Fields(words), false)
		got := strings.TrimSpace(verb + ": " + strings.Join(line, " "))
		if verb == "" {
			got = ""
		}
		if got != want {
			t.Errorf("%s is repeated as %q, want %q", words, got, want)
		}
	}
	if line, _ := repeated([]string{"prony", "--root", "r", "run", "--aa"}, true); len(line) != 1 {
		t.Errorf("with another root, %q is repeated", line)
	}
}

// TestResumeElsewhere checks that a run whose paths are not found in this folder names the remedy.
func TestResumeElsewhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Run{ID: "run",
		Command: []string{"prony", "versus", "./gone", "--get", "/"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, stderr, exit := say(t, mock{}, "run", "--resume", dir); exit == 0 ||
		!strings.Contains(stderr, "resume it in the folder in which it was started") {
		t.Errorf("exits with %d: %s", exit, stderr)
	}
}
