//go:build linux && !portable

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/base/cli"
	"prony.example/internal/base/cmdlog"
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
		"prony run --host fit --invalid=pass -x": "run: --host fit --invalid=pass -x",
	} {
		line, verb := repeated(strings.Fields(words), nil)
		got := strings.TrimSpace(verb + ": " + strings.Join(line, " "))
		if verb == "" {
			got = ""
		}
		if got != want {
			t.Errorf("%s is repeated as %q, want %q", words, got, want)
		}
	}
	words := strings.Fields("prony --root r run --host fit --aa --invalid=pass")
	line, _ := repeated(words, []string{"--root", "--host", "--invalid"})
	if text := strings.Join(line, " "); text != "--aa" {
		t.Errorf("with another root, host and exit code, %q is repeated", text)
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

// TestResumeWith checks that flags beside --resume that change no trial have their effect.
func TestResumeWith(t *testing.T) {
	defer cmdlog.Show(nil)
	root, dir := checkout(t), filepath.Join(t.TempDir(), "run")
	w, err := record.Create(dir, record.Run{ID: "run", Command: []string{"prony", "run", "--root",
		root, "--targets", "go-nethttp", "--blocks", "2", "--host", "any"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	unfit := mock{host: record.Grading{Grade: record.Unfit}}
	_, stderr, _ := say(t, unfit, "run", "-x", "--resume", dir, "--host", "fit",
		"--why")
	has(t, "the refusal", stderr, "the host is unfit, but --host requires fit")
	if !cmdlog.Watched() {
		t.Error("-x has no effect")
	}
	head := record.Run{ID: "run", Command: []string{"prony", "versus", "./a", "--get", "/"}}
	other := filepath.Join(t.TempDir(), "run")
	if w, err = record.Create(other, head); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, exit := say(t, mock{}, "run", "--resume", other, "--host", "fit")
	if exit != cli.Misused || !strings.Contains(stderr, "--host is not possible for a run of "+
		"prony versus") {
		t.Errorf("exit %d: %s", exit, stderr)
	}
}
