package tidy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// go vet reports nothing. It reads all linked packages, which takes longer than most tests, so make
// test does not run it.
func TestVet(t *testing.T) {
	testsets.Once(t, "vet", testsets.Needs{Files: []string{"cmd", "internal", "bench", "contract",
		"home", "load", "record", "stats", "go.mod", "go.sum"}})
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{".", "home"} {
		cmd := exec.Command("go",
			slices.Concat([]string{"vet"}, buildflags.Flags, []string{"./..."})...)
		cmd.Dir, cmd.Env = filepath.Join(root, module), append(os.Environ(), buildflags.Lavish)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
