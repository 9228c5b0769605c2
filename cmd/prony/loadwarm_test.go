package main

import (
	"path/filepath"
	"strings"
	"testing"

	"prony/internal/cli"
)

// What a warm-up sent is in the record, is told, and is in no number.
func TestLoadWarmsUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, stderr, exit := really("load", null(t), "-n", "100", "-c", "2", "--view", "none",
		"--warmup", "500ms", "--save="+dir)
	if exit == cli.Misused || exit == cli.Failed || !strings.Contains(stderr, "warmed up for ") {
		t.Fatalf("exit %d: %s", exit, stderr)
	}
	rec := only(t, dir)
	if w := rec.Warmup; w.Requests == 0 || w.DurationNs < 300e6 || rec.Loads[0].Answered != 100 {
		t.Errorf("warm-up %+v, answered %d", w, rec.Loads[0].Answered)
	}
	for _, wrong := range []string{"x", "0s", "-1s"} {
		if _, stderr, exit := really("load", null(t), "--warmup", wrong); exit != cli.Misused ||
			!strings.Contains(stderr, "want steady, or some time") {
			t.Errorf("%s: exit %d: %s", wrong, exit, stderr)
		}
	}
}
