package adhoc

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"prony.example/internal/dev/testsets"
)

// If git does not find a revision, the error has the next step: the clone of a pipeline often lacks
// history or local branches.
func TestAbsentRevisions(t *testing.T) {
	testsets.Live(t)
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c",
			"user.email=a@b"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	at := t.TempDir()
	whole, shallow := filepath.Join(at, "whole"), filepath.Join(at, "shallow")
	git(at, "init", "-q", "-b", "main", whole)
	git(whole, "commit", "-q", "--allow-empty", "-m", "one")
	git(whole, "commit", "-q", "--allow-empty", "-m", "two")
	git(whole, "branch", "older", "HEAD~1")
	git(at, "clone", "-q", "--depth", "1", "file://"+whole, shallow)
	git(at, "clone", "-q", whole, "all")
	git(at, "clone", "-q", "--bare", whole, "bare")
	for _, c := range []struct{ dir, revision, want string }{
		{"whole", "nothing", "with the revision nothing (git rev-parse: exit status 1)"},
		{"shallow", "HEAD~1", "a shallow clone: get its history with git fetch --unshallow"},
		{"all", "older", "; did you mean origin/older?"},
		{"bare", "main", "is a bare repository; run prony in a clone of it"},
		{".", "main", "not a git repository"},
	} {
		s := Source{Dir: filepath.Join(at, c.dir), Way: Revision{Git: c.revision}}
		_, err := s.Clone(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: error %v, want %q", c.revision, c.dir, err, c.want)
		}
		if c.dir == "whole" && err != nil && strings.Contains(err.Error(), ";") {
			t.Errorf("%v: has a hint without a reason", err)
		}
	}
}
