package tidy

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"prony.example/internal/base/buildflags"
	"prony.example/internal/dev/testsets"
)

// Go's own vet has nothing to object to. It looks into all that is linked, which takes longer than
// most tests: make test leaves it to the other set.
func TestVet(t *testing.T) {
	testsets.Once(t, "vet", testsets.Needs{Files: []string{"cmd", "internal", "bench", "contract",
		"go.mod", "go.sum"}})
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(
		"go",
		slices.Concat([]string{"vet"}, buildflags.Flags, []string{"./..."})...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), buildflags.Lavish)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
