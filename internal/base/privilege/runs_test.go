package privilege

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRuns(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"real": "\x7fELF", "v/python": "\x7fELF",
		"v/app":  "#!" + dir + "/v/python -s\nimport this\n",
		"by-env": "#!/usr/bin/env -S sh -e\n", "ring": "#!" + dir + "/ring\n", "empty": "#!\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	check := func(want string, args ...string) {
		t.Helper()
		program := args[0]
		if program == "sh" {
			program = sh
		}
		got := Runs(dir, program, args)
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], dir+"/")
		}
		if !slices.Equal(got, strings.Fields(strings.ReplaceAll(want, "sh", sh))) {
			t.Errorf("%q runs %q, want %q", args, got, want)
		}
	}
	check("real", "./real", "--flag", "v/app")
	check("v/app v/python", "v/app", "x")
	check("sh v/app v/python", "sh", "-c", "A=1 v/app --port $PORT no/such 'v'")
	check("sh by-env sh real", "sh", "-c", "./by-env;(./real&)")
	check("empty", "./empty")
	if got := Runs(dir, "./ring", nil); len(got) > maxRuns+1 {
		t.Errorf("a ring of interpreters runs %d files", len(got))
	}
}
